"""Ids as people have them: 64-bit integers or text, one kind in one index or table.

Ids are arrays: int64, or objects that are all `str`. UUIDs are read as text. Text is ordered by code points, which is
also the order of PostgreSQL (collation "C"), SQLite and DuckDB. A place where nothing was found holds −1 among integers
and None among text.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Set
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.names import require_choice

IdArray: TypeAlias = NDArray[Any]  # int64, or objects

INTEGER, TEXT = "int64", "string"
ID_TYPES = (INTEGER, TEXT)
NOTHING = -1  # the id of nothing found, among integers
LARGEST_ID = 2**63 - 1
MOST_ID_BYTES = 2000  # longer keys do not fit into an index of PostgreSQL
DICTIONARY_SHARE = 16  # from this share of all ids on, a dictionary finds objects faster than a bisection
WORDS = {INTEGER: "integers", TEXT: "text"}


def checked_ids(ids: Any, n: int | None = None, id_type: str | None = None, *, distinct: bool = True) -> IdArray:
    """Distinct ids of one kind (``n`` of them, if given), refused if they are of another kind than ``id_type``.

    ``distinct=False`` allows an id more than once.

    >>> checked_ids(["b", "a"]), checked_ids([3, 1])
    (array(['b', 'a'], dtype=object), array([3, 1]))
    >>> checked_ids([1, "a"])
    Traceback (most recent call last):
    TypeError: ids must be all of one kind, got int at place 0 and str at place 1
    """
    array = _of_one_kind(ids)
    if n is not None and len(array) != n:
        raise ValueError(f"ids must have one entry for each of the {n} code(s), got {len(array)}")
    if len(array) == 0:
        return empty_ids(id_type or INTEGER)
    kind = type_of(array)
    if kind != (id_type or kind):
        stored = WORDS[str(id_type)]
        raise TypeError(f"ids must be {stored}, as those that are stored, got {WORDS[kind]}: {shown(array[0])}")
    if distinct and not _are_distinct(array):
        values, counts = np.unique(array, return_counts=True)
        raise ValueError(f"ids must be distinct, got {shown(values[counts > 1][0])} more than once")
    return array


def checked_id_type(id_type: Any) -> str:
    """The name of a kind of ids, refused if it is none."""
    require_choice(id_type, "id_type", ID_TYPES)
    return str(id_type)


def type_of(ids: IdArray) -> str:
    """The kind of checked ids: "int64" or "string"."""
    return INTEGER if ids.dtype.kind == "i" else TEXT


def empty_ids(id_type: str) -> IdArray:
    """No ids of this kind."""
    return no_ids((0,), id_type)


def no_ids(shape: tuple[int, ...], id_type: str) -> IdArray:
    """Places in which nothing has been found yet."""
    return np.full(shape, NOTHING) if id_type == INTEGER else np.full(shape, None, object)


def are_found(ids: IdArray) -> NDArray[np.bool_]:
    """Which places hold an id.

    >>> are_found(np.array([[4, -1]])), are_found(np.array(["a", None], object))
    (array([[ True, False]]), array([ True, False]))
    """
    return np.asarray(ids != NOTHING if ids.dtype.kind == "i" else ids != None)  # noqa: E711


def ids_at(ids: IdArray, rows: NDArray[np.int64]) -> IdArray:
    """The ids of these rows; nothing found where the row is −1."""
    there = rows >= 0
    if there.all():
        return ids[rows]
    taken = no_ids(rows.shape, type_of(ids))
    taken[there] = ids[rows[there]]
    return taken


def order_of(ids: IdArray) -> NDArray[np.int64]:
    """The places of the ids in ascending order."""
    if ids.dtype.kind == "i":
        return np.argsort(ids, kind="stable")
    values = ids.tolist()
    return np.array(sorted(range(len(values)), key=values.__getitem__), np.int64)


def rows_of(items: IdArray, ordered: IdArray) -> NDArray[np.int64]:
    """The row of each item in ``ordered``, which ascends; −1 for an unknown one."""
    if len(ordered) == 0 or len(items) == 0:
        return np.full(len(items), NOTHING)
    if ordered.dtype.kind == "O" and len(items) > len(ordered) // DICTIONARY_SHARE:
        return rows_in_any_order(items, ordered)
    places = np.minimum(np.searchsorted(ordered, items), len(ordered) - 1)
    return np.where(ordered[places] == items, places, NOTHING)


def rows_in_any_order(items: IdArray, ids: IdArray) -> NDArray[np.int64]:
    """The row of each item in ``ids``, which are distinct; −1 for an unknown one."""
    if ids.dtype.kind == items.dtype.kind == "i" and len(ids):
        order = order_of(ids)
        rows = rows_of(items, ids[order])
        return np.where(rows >= 0, order[rows], NOTHING)
    known = dict(zip(ids.tolist(), range(len(ids)), strict=True))
    return np.array([known.get(item, NOTHING) for item in items.tolist()], np.int64)


def shown(item: Any) -> str:
    """An id in a message, cut if it is long."""
    text = repr(item.item() if isinstance(item, np.generic) else str(item) if isinstance(item, uuid.UUID) else item)
    return text if len(text) <= 80 else text[:77] + "…'"


def as_objects(values: Iterable[Any]) -> IdArray:
    """An array of objects, one for each value."""
    listed = list(values)
    array = np.empty(len(listed), object)
    array[:] = listed
    return array


def _of_one_kind(ids: Any) -> IdArray:
    """Ids as an array of int64 or text."""
    if isinstance(ids, str | int | uuid.UUID | np.integer) and not isinstance(ids, bool):
        ids = [ids]
    if isinstance(ids, Set):
        ids = list(ids)
    if hasattr(ids, "to_pylist"):  # of Arrow, whose missing values would become NaN
        ids = ids.to_pylist()
    if not isinstance(ids, list | tuple | range):
        array = np.asarray(ids)
        if array.ndim != 1 and array.size != 1:
            raise ValueError(f"ids must have 1 dimension, got shape {array.shape}")
        array = array.reshape(-1)
        if array.dtype.kind in "iu":
            return _as_int64(array, array.min(initial=0), array.max(initial=0))
        ids = array.tolist()
        if array.dtype.kind in "fbSc" and len(ids):
            raise TypeError(f"ids must be integers or text, got dtype {array.dtype}{_remedy(ids[0])}")
    return _from_values(ids)


def _from_values(values: Any) -> IdArray:
    kinds = set(map(type, values))
    if kinds and bool not in kinds and all(issubclass(kind, int | np.integer) for kind in kinds):
        return _as_int64([int(item) for item in values], min(values), max(values))
    if all(issubclass(kind, str | uuid.UUID) for kind in kinds):
        texts = list(values) if kinds == {str} else [str.__str__(v) if isinstance(v, str) else str(v) for v in values]
        _require_usable(texts)
        return as_objects(texts)
    for place, item in enumerate(values):
        if item is None:
            raise ValueError(f"ids must not be missing, got None at place {place}")
        if not isinstance(item, int | str | uuid.UUID | np.integer) or isinstance(item, bool):
            kind = type(item).__name__
            raise TypeError(f"ids must be integers or text, got {kind} at place {place}{_remedy(item)}")
    of_text = isinstance(values[0], str | uuid.UUID)
    place = next(place for place, item in enumerate(values) if isinstance(item, str | uuid.UUID) != of_text)
    first, other = type(values[0]).__name__, type(values[place]).__name__
    raise TypeError(f"ids must be all of one kind, got {first} at place 0 and {other} at place {place}")


def _as_int64(values: Any, least: Any, largest: Any) -> NDArray[np.int64]:
    if least < 0 or largest > LARGEST_ID:
        raise ValueError(
            f"ids must be from 0 to 2**63 - 1 if they are integers, got {least if least < 0 else largest}; give others "
            "as text, because -1 stands for nothing found"
        )
    return np.array(values, np.int64)


def _require_usable(texts: list[str]) -> None:
    """Refuse text that some engine would refuse or change."""
    together = "".join(texts)
    try:
        together.encode()
    except UnicodeEncodeError:
        raise ValueError("ids must be valid Unicode text, got a lone surrogate") from None
    if "\0" not in together and all(0 < length <= MOST_ID_BYTES // 4 for length in set(map(len, texts))):
        return
    for place, text in enumerate(texts):
        if "\0" in text:
            raise ValueError(f"ids must be text without NUL characters, got {shown(text)} at place {place}")
        if not 0 < len(text.encode()) <= MOST_ID_BYTES:
            raise ValueError(
                f"ids must not be empty text, and have at most {MOST_ID_BYTES:,} bytes, got {shown(text)} of "
                f"{len(text.encode()):,} bytes at place {place}"
            )


def _are_distinct(array: IdArray) -> bool:
    if array.dtype.kind == "O":
        return len(set(array.tolist())) == len(array)
    ordered = array if (array[1:] > array[:-1]).all() else np.sort(array)
    return bool((ordered[1:] > ordered[:-1]).all())


def _remedy(item: Any) -> str:
    if isinstance(item, bytes):
        return "; decode bytes to text, or make a UUID of 16 bytes with uuid.UUID(bytes=...)"
    if isinstance(item, float):
        return "; integers become floats where one is missing: fill or drop those rows"
    return ""
