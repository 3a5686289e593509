"""Polars: the Hamming distance of codes in a Binary column, as an expression for frames and lazy frames.

Codes are compared as 64-bit words by NumPy, so any width is fast. Polars has no such operation on bytes of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.bits import as_words
from hashlearn.core.packages import require
from hashlearn.search.interface import MOST_BITS

PURPOSE = "a Polars expression"


def hamming_expression(codes: Any, others: Any) -> Any:
    """A Polars expression: the Hamming distance between ``codes`` and ``others``, row by row, as 32-bit integers.

    Parameters
    ----------
    codes : name of a Binary column that holds packed codes, or an expression
    others : one packed code (bytes, or an array of uint8), or a second column (name or expression)

    A missing code has a missing distance. Codes of different widths are refused when the expression is evaluated.

    >>> import polars as pl
    >>> frame = pl.DataFrame({"id": [1, 2], "code": [b"\\x00\\xff", b"\\x01\\xff"]})
    >>> frame.select("id", distance=hamming_expression("code", b"\\x01\\xff"))["distance"].to_list()
    [1, 0]
    """
    polars = require("polars", "polars", PURPOSE)
    require("pyarrow", "polars", PURPOSE)
    columns = [_as_expression(polars, codes, "codes"), _as_expression(polars, others, "others")]
    return polars.map_batches(columns, _distances, return_dtype=polars.Int32, is_elementwise=True)


def _as_expression(polars: Any, given: Any, argument: str) -> Any:
    if isinstance(given, polars.Expr):
        return given
    if isinstance(given, str):
        return polars.col(given)
    if isinstance(given, np.ndarray) and given.dtype == np.uint8 and (given.ndim == 1 or given.shape[:-1] == (1,)):
        given = given.tobytes()
    if isinstance(given, bytes | bytearray) and argument == "others":
        return polars.lit(bytes(given), dtype=polars.Binary)
    kinds = "a column (its name or an expression)" + (" or one packed code" if argument == "others" else "")
    detail = f" of dtype {given.dtype} and shape {given.shape}" if isinstance(given, np.ndarray) else ""
    raise TypeError(f"{argument} must be {kinds}, got {type(given).__name__}{detail}")


def _distances(columns: list[Any]) -> Any:
    """The distances of two columns; one of them may have a single row."""
    polars = require("polars", "polars", PURPOSE)
    for column in columns:
        if column.dtype not in (polars.Binary, polars.Null):
            raise TypeError(
                f"column {column.name!r} must hold packed codes as Binary, as encode and to_arrow write them, got "
                f"{column.dtype}"
            )
    n = 0 if any(len(column) == 0 for column in columns) else max(map(len, columns))
    (a, a_there), (b, b_there) = (_packed(column) for column in columns)
    there = np.broadcast_to(a_there, n) & np.broadcast_to(b_there, n)
    if there.any() and a.shape[1] != b.shape[1]:
        raise ValueError(
            f"columns {columns[0].name!r} and {columns[1].name!r} must have codes of equal width, got {a.shape[1]} and "
            f"{b.shape[1]} byte(s)"
        )
    distances = np.zeros(n, np.int32)
    if there.any():
        for a_words, b_words in zip(as_words(a).T, as_words(b).T, strict=True):
            distances += np.bitwise_count(a_words ^ b_words)
    found = polars.Series(columns[0].name, distances)
    return found if there.all() else found.set(polars.Series(~there), None)


def _packed(column: Any) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Packed codes (n, width), zeros where one is missing, and which rows have one."""
    there = column.is_not_null().to_numpy()
    if not there.any():
        return np.zeros((len(column), 0), np.uint8), there
    array = column.drop_nulls().to_arrow()
    offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
    sizes = np.diff(offsets)
    width = int(sizes[0])
    if (sizes != width).any() or not 0 < width <= MOST_BITS // 8:
        raise ValueError(
            f"column {column.name!r} must have codes of one width, from 1 to {MOST_BITS // 8} bytes, got {sizes.min()} "
            f"to {sizes.max()}"
        )
    found = np.frombuffer(array.buffers()[2], np.uint8)[offsets[0] : offsets[-1]].reshape(-1, width)
    if there.all():
        return found, there
    codes = np.zeros((len(column), width), np.uint8)
    codes[there] = found
    return codes, there
