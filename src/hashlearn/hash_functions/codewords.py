"""The distinct codewords among codes. With labels there is one for each class, and their indicators can be fitted.

Bits are indicators times codewords, so least squares gives the same result for bits and for indicators. But scores of
codewords can be sharpened before they become bits (see `sharpened`). O(n log n · n_bits).
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

MOST_WORDS = 1000


class Indicators:
    """Row i has a 1 in the column of its codeword, else 0. Rows are computed on demand.

    >>> Indicators(np.array([0, 2, 0]), 3)[1:]
    array([[0, 0, 1],
           [1, 0, 0]], dtype=int8)
    """

    def __init__(self, member: NDArray[np.intp], n_words: int) -> None:
        self.member = member
        self.shape = (len(member), n_words)

    def __getitem__(self, rows: Any) -> NDArray[np.int8]:
        return (self.member[rows][:, None] == np.arange(self.shape[1])).astype(np.int8)


FittedTo: TypeAlias = NDArray[np.int8] | Indicators  # what least squares is given: codes ±1, or indicators


class Codewords(NamedTuple):
    """``words[member[i]]`` is the code of row i."""

    words: NDArray[np.int8]  # (n_words, n_bits)
    member: NDArray[np.intp]

    @property
    def indicators(self) -> Indicators:
        """Indicators of the codewords, to fit in place of bits."""
        return Indicators(self.member, len(self.words))


def few_codewords(codes: NDArray[np.int8]) -> Codewords | str:
    """The distinct rows of ``codes``, or the reason, in words, why they are too few or too many.

    >>> few_codewords(np.array([[1, -1], [1, 1], [1, -1], [1, 1]], dtype=np.int8)).member
    array([0, 1, 0, 1])
    >>> few_codewords(np.array([[1, -1], [1, 1]], dtype=np.int8))
    '2 of 2 codes are distinct, more than 1'
    """
    if codes.shape[1] == 0 or (codes == codes[0]).all():
        return "all codes are equal"
    packed = np.packbits(codes > 0, axis=1)
    _, first, member = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    most = min(MOST_WORDS, len(codes) // 2)
    if len(first) > most:
        return f"{len(first)} of {len(codes)} codes are distinct, more than {most}"
    return Codewords(codes[first], member.ravel())
