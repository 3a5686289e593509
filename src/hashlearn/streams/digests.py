"""Identifies encoded rows by content: one SHA-256 over the hasher and all rows so far, in order.

File names, sizes and times play no part, so another file under the same name is not mistaken for the old one. The
digest after a batch covers all rows up to it, so it identifies the position of the batch as well.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import Any

import scipy.sparse as sp

import hashlearn
from hashlearn.core.checked_file import bytes_of
from hashlearn.persistence.values import fingerprint


class WorkDigest:
    """The digest of a hasher and of the rows given to `add`; batches of any size give the same digest of dense rows."""

    def __init__(self, hasher: Any, identity: str = "") -> None:
        # A hasher that nothing identifies gets a random name, so that its shards are never reused.
        named = fingerprint(hasher) or (None if identity else secrets.token_hex(32))
        described = [hashlearn.__version__, named, identity, int(hasher.n_bits)]
        self._digest = hashlib.sha256(json.dumps(described).encode())
        self._dtype: Any = None

    def add(self, batch: Any) -> bytes:
        """The digest once these rows have been added."""
        if sp.issparse(batch):
            rows = sp.csr_array(batch)
            parts = (rows.indptr, rows.indices, rows.data)
            self._describe(["sparse", rows.shape, rows.nnz, *(part.dtype.str for part in parts)])
            for part in parts:
                self._digest.update(bytes_of(part))
        else:
            if batch.dtype != self._dtype:
                self._describe(["dense", batch.shape[1], batch.dtype.str])
                self._dtype = batch.dtype
            self._digest.update(bytes_of(batch))
        return self._digest.digest()

    def _describe(self, layout: list[Any]) -> None:
        self._digest.update(json.dumps(layout).encode())
