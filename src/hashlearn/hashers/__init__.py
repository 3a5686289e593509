"""scikit-learn estimators that turn features into binary codes. To add one, write its file and a line in `HASHERS`."""

from __future__ import annotations

from hashlearn.hashers.base import BaseHasher
from hashlearn.hashers.baselines.binary_autoencoder import BinaryAutoencoder
from hashlearn.hashers.baselines.bre import BRE
from hashlearn.hashers.baselines.fasthash import FastHash
from hashlearn.hashers.baselines.itq import ITQ, ITQCCA
from hashlearn.hashers.baselines.kmeans_hashing import KMeansHashing
from hashlearn.hashers.baselines.ksh import KSH
from hashlearn.hashers.baselines.lsh import LSH, SignCodes
from hashlearn.hashers.baselines.nmf_hashing import ALMHashing, NMFHashing
from hashlearn.hashers.baselines.sdh import SDH
from hashlearn.hashers.baselines.spectral_hashing import SpectralHashing
from hashlearn.hashers.baselines.spherical_hashing import SphericalHashing
from hashlearn.hashers.ranking import RankingHasher
from hashlearn.hashers.tuning import Tuned, tune
from hashlearn.hashers.two_step import TSH, TwoStepHasher

HASHERS: dict[str, type[BaseHasher]] = {
    "two_step": TwoStepHasher,
    # with labels
    "tsh": TSH,
    "fasthash": FastHash,
    "ksh": KSH,
    "bre": BRE,
    "itq_cca": ITQCCA,
    "sdh": SDH,
    # without
    "ranking": RankingHasher,
    "itq": ITQ,
    "binary_autoencoder": BinaryAutoencoder,
    "spherical_hashing": SphericalHashing,
    "kmeans_hashing": KMeansHashing,
    "nmf_hashing": NMFHashing,
    "alm_hashing": ALMHashing,
    "lsh": LSH,
    "spectral_hashing": SpectralHashing,
    "sign_codes": SignCodes,
}

__all__ = [
    "BRE",
    "HASHERS",
    "ITQ",
    "ITQCCA",
    "KSH",
    "LSH",
    "SDH",
    "TSH",
    "ALMHashing",
    "BaseHasher",
    "BinaryAutoencoder",
    "FastHash",
    "KMeansHashing",
    "NMFHashing",
    "RankingHasher",
    "SignCodes",
    "SpectralHashing",
    "SphericalHashing",
    "Tuned",
    "TwoStepHasher",
    "tune",
]
__all__ += sorted({hasher.__name__ for hasher in HASHERS.values()} - {*__all__})  # also those not in the list
