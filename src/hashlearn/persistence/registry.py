"""What a model file may hold besides numbers, strings and arrays: the registries' own objects, and nothing else.

A file names them by registry and key. No class is ever looked up by a name from a file in any other way.
"""

from __future__ import annotations

from typing import Any

from hashlearn import bqp
from hashlearn.hash_functions import HASH_FUNCTIONS, STORABLE, FittedHashFunctions
from hashlearn.hashers import HASHERS
from hashlearn.hashers.baselines.binary_autoencoder import Round
from hashlearn.hashers.baselines.kmeans_hashing import CodewordMargins
from hashlearn.hashers.baselines.spectral_hashing import CosineMargins
from hashlearn.hashers.baselines.spherical_hashing import SphereMargins
from hashlearn.inference import Passes
from hashlearn.inference.report import BitRecord, InferenceReport
from hashlearn.targets import TARGETS, Pairs, Similarity

# Dataclasses and named tuples, stored field by field.
RECORDS: dict[str, Any] = {
    **{f"solver/{name}": kind for name, kind in bqp.METHODS.items()},
    "solver/passes": Passes,
    **{f"hash_function/{name}": kind for name, kind in HASH_FUNCTIONS.items()},
    **{f"target/{name}": kind for name, kind in TARGETS.items()},
    "target/similarity": Similarity,
    "target/pairs": Pairs,
    "report/inference": InferenceReport,
    "report/bit": BitRecord,
    "report/round": Round,
}
RECORD_NAMES = {kind: name for name, kind in RECORDS.items()}

FUNCTIONS: dict[str, type[FittedHashFunctions]] = {
    **STORABLE,
    **{kind.kind: kind for kind in (CosineMargins, SphereMargins, CodewordMargins)},
}

HASHER_NAMES = {kind: name for name, kind in HASHERS.items()}
