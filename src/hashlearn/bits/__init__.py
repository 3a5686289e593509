"""Signs ±1 ↔ bits 0/1 ↔ packed bytes, for any number of bits, and Hamming distances of packed codes.

>>> import numpy as np
>>> packed = pack_signs(np.array([[1, -1, 1], [1, 1, 1]], dtype=np.int8))
>>> packed
array([[160],
       [224]], dtype=uint8)
>>> unpack_bits(packed, n_bits=3)
array([[1, 0, 1],
       [1, 1, 1]], dtype=uint8)
>>> hamming_distances(packed, packed)
array([[0, 1],
       [1, 0]], dtype=int32)
"""

from __future__ import annotations

from hashlearn.bits.hamming import as_words, hamming_distances
from hashlearn.bits.packing import (
    bits_to_signs,
    pack_bits,
    pack_signs,
    packed_codes,
    signs_to_bits,
    unpack_bits,
    unpack_signs,
)

__all__ = [
    "as_words",
    "bits_to_signs",
    "hamming_distances",
    "pack_bits",
    "pack_signs",
    "packed_codes",
    "signs_to_bits",
    "unpack_bits",
    "unpack_signs",
]
