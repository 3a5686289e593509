"""Rows from files, codes into files, batch by batch: neither has to fit into memory.

>>> import tempfile
>>> import numpy as np
>>> from hashlearn.hashers import LSH
>>> rows = np.random.default_rng(0).standard_normal((1000, 16))
>>> hasher = LSH(n_bits=12, random_state=0).fit(rows)
>>> with tempfile.TemporaryDirectory() as folder:
...     np.save(folder + "/rows.npy", rows)
...     done = encode_file(hasher, open_rows(folder + "/rows.npy"), folder + "/codes.npy", batch_rows=300)
...     codes = np.load(folder + "/codes.npy")
>>> done.rows, codes.shape, bool((codes == hasher.encode(rows)).all())
(1000, (1000, 2), True)
"""

from __future__ import annotations

from hashlearn.files.code_files import CodesFile, codes_and_ids, describe_codes
from hashlearn.files.encoding import Encoded, codes_table, encode_file, encode_rows
from hashlearn.files.opening import open_rows, read_images, read_labels
from hashlearn.files.row_source import RowSource
from hashlearn.search.arrow import read_codes

__all__ = [
    "CodesFile",
    "Encoded",
    "RowSource",
    "codes_and_ids",
    "codes_table",
    "describe_codes",
    "encode_file",
    "encode_rows",
    "open_rows",
    "read_codes",
    "read_images",
    "read_labels",
]
