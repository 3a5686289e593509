"""What was encoded, known by its content: one SHA-256 over the hasher and all rows so far, in order.

File names, sizes and times play no part, so neither a copy over the input nor a file of the same name can be taken for
another. The digest after a batch names all rows up to there: it tells the place of the batch as well.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import hashlearn
from hashlearn.persistence.fingerprint import fingerprint


class WorkDigest:
    """The digest of a hasher and of the rows given to `add`; batches of any size give the same digest of dense rows."""

    def __init__(self, hasher: Any, identity: str = "") -> None:
        # Without anything that names the hasher, a random name: its codes are taken for nobody else's.
        named = fingerprint(hasher) or (None if identity else secrets.token_hex(32))
        described = [hashlearn.__version__, named, identity, int(hasher.n_bits)]
        self._digest = hashlib.sha256(json.dumps(described).encode())
        self._dtype: Any = None

    def add(self, batch: Any) -> bytes:
        """The digest once these rows have been added."""
        if sp.issparse(batch):
            rows = sp.csr_array(batch)
            self._describe(["sparse", rows.shape, rows.nnz, *(part.dtype.str for part in _parts(rows))])
            for part in _parts(rows):
                self._digest.update(_bytes(part))
        else:
            if batch.dtype != self._dtype:
                self._describe(["dense", batch.shape[1], batch.dtype.str])
                self._dtype = batch.dtype
            self._digest.update(_bytes(batch))
        return self._digest.digest()

    def _describe(self, layout: list[Any]) -> None:
        self._digest.update(json.dumps(layout).encode())


def _parts(rows: Any) -> tuple[Any, Any, Any]:
    return rows.indptr, rows.indices, rows.data


def _bytes(array: NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
