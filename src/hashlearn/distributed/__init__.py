"""Learning and encoding over blocks of rows: on Dask, or block by block in this process.

>>> import numpy as np
>>> from hashlearn import distributed
>>> X = np.random.default_rng(0).standard_normal((400, 8))
>>> hasher = distributed.fit(X, n_bits=4, chunk_rows=100, n_workers=0)
>>> hasher.transform(X).shape
(400, 4)
"""

from __future__ import annotations

from hashlearn.distributed.encoding import EncodedFiles, encode
from hashlearn.distributed.fitting import fit

__all__ = ["EncodedFiles", "encode", "fit"]
