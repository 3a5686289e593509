"""A made-up network, and the formula of its margins."""

from __future__ import annotations

from typing import Any

import numpy as np

from hashlearn.hash_functions import NetworkMargins, every_bit
from hashlearn.linalg.unit_rows import ZERO_ROW


def made_up(n_features: int = 20, n_bits: int = 11, n_hidden: int = 7, **changes: Any) -> NetworkMargins:
    """Random weights; ``changes`` replace what the constructor is given."""
    rng = np.random.default_rng([n_features, n_bits, n_hidden])
    parts = {
        "weights": rng.standard_normal((n_features, n_bits)),
        "intercepts": 0.2 * rng.standard_normal(n_bits),
        "hidden_weights": rng.standard_normal((n_features, n_hidden)),
        "hidden_intercepts": 0.2 * rng.standard_normal(n_hidden),
        "output_weights": rng.standard_normal((n_hidden, n_bits)),
        "unit_rows": True,
        "scale": 5.0,
        "bits": every_bit(n_bits),
        "description": "made up",
    }
    return NetworkMargins(**{**parts, **changes})


def direct_margins(functions: NetworkMargins, X: np.ndarray) -> np.ndarray:
    """r·W + c + max(0, r·V + e)·U of every distinct bit, in float64."""
    X = X.astype(np.float64)
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    far = norms > ZERO_ROW * functions.scale
    r = np.where(far, X / np.where(far, norms, 1.0), 0.0) if functions.unit_rows else X / functions.scale
    f = functions
    hidden = np.maximum(r @ f.hidden_weights.astype(np.float64) + f.hidden_intercepts, 0.0)
    return r @ f.weights.astype(np.float64) + f.intercepts + hidden @ f.output_weights.astype(np.float64)
