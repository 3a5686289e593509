"""What is done to features before anything else: nothing, or square roots of their sizes.

Histograms, pixels and filter energies are skewed: a few large entries decide every distance. Their roots (the Hellinger
map) make kernels and neighbours judge by all entries; the measurements are in docs/quality.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from hashlearn.core.arrays import is_tensor

SCALINGS = ("auto", "none", "root")


def settled_scaling(scaling: Any, X: Any, has_labels: bool) -> str:
    """``"none"`` or ``"root"``; "auto" takes roots where labels decide what is near and no entry is negative.

    >>> settled_scaling("auto", np.array([[0.0, 4.0]]), has_labels=True)
    'root'
    """
    if not isinstance(scaling, str) or scaling not in SCALINGS:
        raise ValueError(f"scaling must be one of {', '.join(map(repr, SCALINGS))}, got {scaling!r}")
    if scaling != "auto":
        return scaling
    entries = X.data if sp.issparse(X) else X
    return "root" if has_labels and len(entries) and entries.min() >= 0.0 else "none"


def scaled(X: Any, scaling: str) -> Any:
    """X itself, or sgn(x) · √|x| of every entry; dtype and sparsity stay.

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
