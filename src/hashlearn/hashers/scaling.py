"""Scaling of features before a fit: none, or square roots of their magnitudes.

Histograms, pixels and filter energies are skewed: a few large entries dominate every distance. With their roots (the
Hellinger map) all entries matter to kernels and neighbors. Measurements are in docs/quality.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from hashlearn.core.arrays import is_tensor
from hashlearn.core.names import require_choice

SCALINGS = ("auto", "none", "root")


def settled_scaling(scaling: Any, X: Any, has_labels: bool) -> str:
    """``"none"`` or ``"root"``; "auto" is "root" if there are labels and no entry is negative.

    >>> settled_scaling("auto", np.array([[0.0, 4.0]]), has_labels=True)
    'root'
    """
    require_choice(scaling, "scaling", SCALINGS)
    if scaling != "auto":
        return scaling
    entries = X.data if sp.issparse(X) else X
    return "root" if has_labels and len(entries) and entries.min() >= 0.0 else "none"


def scaled(X: Any, scaling: str) -> Any:
    """X unchanged, or sgn(x) · √|x| of every entry, with the same dtype and sparsity.

    >>> scaled(np.array([[4.0, -9.0]]), "root")
    array([[ 2., -3.]])
    """
    if scaling == "none":
        return X
    if sp.issparse(X):
        roots = X.copy()
        roots.data = scaled(X.data, scaling)
        return roots
    if is_tensor(X):
        return X.sign() * X.abs().sqrt()
    return np.copysign(np.sqrt(np.abs(X)), X)
