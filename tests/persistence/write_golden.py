"""Write golden files of the present format: a small model of every kind, and the codes it gives.

    python -m tests.persistence.write_golden

Run once for each new format version, and never again: old files show that what was written then still loads.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from hashlearn import bqp, hash_functions, targets
from hashlearn.hashers import HASHERS
from hashlearn.persistence import FORMAT_VERSION

GOLDEN = Path(__file__).with_name("golden")
N_BITS = 9
PARAMETERS = {
    "two_step": {
        "solver": bqp.LocalSearch(n_starts=2, max_iter=50),
        "target": targets.ThresholdedDistance(fraction=0.2),
        "hash_function": hash_functions.RBFSVM(gamma=0.02),
    },
    "fasthash": {"n_trees": 3, "max_depth": 2},
    "lsh": {},
    "spectral_hashing": {},
    "spherical_hashing": {},
    "kmeans_hashing": {"bits_per_subspace": 2},
    "binary_autoencoder": {"max_iter": 3},
}
# Kinds of a later format: its number, the hasher, the parameters.
SINCE = {
    "ranking": (3, "ranking", {"hidden": 4, "metric": "euclidean"}),
}


def rows() -> pd.DataFrame:
    """Whole numbers from a formula, so that no library can change them."""
    i, j = np.arange(60)[:, None], np.arange(10)
    return pd.DataFrame(((i * 7 + j * 5 + i * j * 3) % 23).astype(float), columns=[f"feature {k}" for k in range(10)])


def main() -> None:
    folder = GOLDEN / f"format_{FORMAT_VERSION}"
    folder.mkdir(parents=True)
    X = rows()
    labels = np.array(["odd", "even", "prime"])[X.to_numpy().sum(axis=1).astype(int) % 3]
    margins = {}
    models = {name: (name, parameters) for name, parameters in PARAMETERS.items()}
    models |= {name: (method, parameters) for name, (_, method, parameters) in SINCE.items()}
    for name, (method, parameters) in models.items():
        hasher = HASHERS[method](N_BITS, **parameters).set_params(random_state=0).fit(X, labels)
        hasher.save(folder / f"{name}.hashlearn", notes="golden")
        margins[name] = hasher.decision_function(X).round(6).tolist()
    (folder / "margins.json").write_text(json.dumps(margins) + "\n")


if __name__ == "__main__":
    main()
