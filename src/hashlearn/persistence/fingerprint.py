"""`fingerprint`: a digest that identifies a fitted hasher by its content."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from sklearn.utils.validation import check_is_fitted

from hashlearn.persistence.container import digests
from hashlearn.persistence.errors import PersistenceError
from hashlearn.persistence.model_file import FITTED_NAME
from hashlearn.persistence.registry import HASHER_NAMES
from hashlearn.persistence.values import Writer

# Fitted attributes that only describe the training. Reports hold seconds, which differ each time.
NOT_NEEDED_TO_ENCODE = ("codes_", "inference_report_", "target_")


def fingerprint(hasher: Any) -> str | None:
    """SHA-256 of everything that the codes depend on: kind of hasher, n_bits, fitted attributes and their arrays.

    A hasher has the same fingerprint after it was saved and loaded, and so do two equal fits. The result is None for a
    hasher that cannot be saved, such as one with a classifier of your own.

    >>> from hashlearn.hashers import LSH
    >>> X = [[0.0, 1.0], [1.0, 0.0]]
    >>> one, same, other = (LSH(n_bits=2, random_state=seed).fit(X) for seed in (0, 0, 1))
    >>> fingerprint(one) == fingerprint(same), fingerprint(one) == fingerprint(other)
    (True, False)
    """
    if type(hasher) not in HASHER_NAMES:
        return None
    check_is_fitted(hasher)
    fitted = {
        name: value
        for name, value in sorted(vars(hasher).items())
        if FITTED_NAME.fullmatch(name) and name not in NOT_NEEDED_TO_ENCODE
    }
    writer = Writer()
    try:
        stored = {name: writer.json(value, name) for name, value in fitted.items()}
    except PersistenceError:
        return None
    described = [HASHER_NAMES[type(hasher)], int(hasher.n_bits), stored, _shapes(writer), digests(writer.arrays)]
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


def _shapes(writer: Writer) -> dict[str, Any]:
    return {name: [str(array.dtype), array.shape] for name, array in writer.arrays.items()}
