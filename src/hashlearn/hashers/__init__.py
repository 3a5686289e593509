"""scikit-learn estimators that turn features into binary codes. Adding one is its file and one line in `HASHERS`."""

from __future__ import annotations

from hashlearn.hashers.alm_hashing import ALMHashing
from hashlearn.hashers.base import BaseHasher
from hashlearn.hashers.binary_autoencoder import BinaryAutoencoder
from hashlearn.hashers.bre import BRE
from hashlearn.hashers.class_score_lsh import ClassScoreLSH
from hashlearn.hashers.cosdish import COSDISH
from hashlearn.hashers.fasthash import FastHash
from hashlearn.hashers.itq import ITQ
from hashlearn.hashers.itq_cca import ITQCCA
from hashlearn.hashers.kmeans_hashing import KMeansHashing
from hashlearn.hashers.ksh import KSH
from hashlearn.hashers.lsh import LSH
from hashlearn.hashers.nmf_hashing import NMFHashing
from hashlearn.hashers.one_hot_class import OneHotClass
from hashlearn.hashers.sdh import SDH
from hashlearn.hashers.sign_codes import SignCodes
from hashlearn.hashers.spectral_hashing import SpectralHashing
from hashlearn.hashers.spherical_hashing import SphericalHashing
from hashlearn.hashers.tsh import TSH
from hashlearn.hashers.tuning import Tuned, tune
from hashlearn.hashers.two_step import TwoStepHasher

HASHERS: dict[str, type[BaseHasher]] = {
    "two_step": TwoStepHasher,
    # with labels
    "tsh": TSH,
    "fasthash": FastHash,
    "ksh": KSH,
    "bre": BRE,
    "itq_cca": ITQCCA,
    "sdh": SDH,
    "cosdish": COSDISH,
    "one_hot_class": OneHotClass,
    "class_score_lsh": ClassScoreLSH,
    # without
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

__all__ = ["HASHERS", "BaseHasher", "Tuned", "tune", *sorted(hasher.__name__ for hasher in HASHERS.values())]
