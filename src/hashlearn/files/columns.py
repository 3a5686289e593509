"""Which columns of a table are features, which one holds the ids, and which are carried along."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from hashlearn.core.names import did_you_mean
from hashlearn.core.packages import require

ID = "id"  # the column that is taken for the ids, unless one is named
TAKEN = ("id", "code")  # columns of a table of codes
GROUP_ROWS = 65_536  # read at a time; also the row groups of a Parquet file of codes, for every size of batches
PURPOSE = "columns of a table"


class Columns(NamedTuple):
    """The columns of a table by what they are for."""

    features: list[str]
    id: str | None  # None: rows are numbered
    keep: tuple[str, ...]

    @property
    def beside(self) -> list[str]:
        """The id column and those that are carried along."""
        return [*([] if self.id is None else [self.id]), *self.keep]


class Wanted(NamedTuple):
    """What the caller of `hashlearn.files.open_rows` asks for."""

    part: str | None = None  # names of features, with commas between them
    expected: Sequence[str] | None = None  # features in the order of a model, taken if all are there
    id: str | bool | None = None
    keep: Sequence[str] = ()


def choose(
    wanted: Wanted,
    names: list[str],
    file: str,
    *,
    can_be_id: Callable[[str], bool],
    default: Callable[[list[str]], list[str]],
) -> Columns:
    """The columns that were asked for. ``default`` picks the features among those that are not ids and not kept.

    A column of ids is no feature, unless it is named as one, even if rows are to be numbered.
    """
    if isinstance(wanted.keep, str):
        raise TypeError(f"keep must be a list of column names, got the text {wanted.keep!r}")
    keep = tuple(wanted.keep)
    require_names([*keep, *([wanted.id] if isinstance(wanted.id, str) else [])], names, file)
    require_distinct(list(keep), names, file)
    for name in keep:
        if name in TAKEN:
            raise ValueError(f"{file}: column {name!r} cannot be kept under this name, which codes and ids have")
    features = None if wanted.part is None else split(wanted.part, names, file)
    if features is None and wanted.expected is not None and set(wanted.expected) <= set(names):
        features = list(wanted.expected)
    found = _id_column(wanted.id, features, names, keep, can_be_id, file)
    if features is None:
        features = default([name for name in names if name != found and name not in keep])
    require_distinct(features, names, file)
    return Columns(features, None if wanted.id is False else found, keep)


def _id_column(
    asked: str | bool | None,
    features: list[str] | None,
    names: list[str],
    keep: tuple[str, ...],
    can_be_id: Callable[[str], bool],
    file: str,
) -> str | None:
    if isinstance(asked, str):
        require_distinct([asked], names, file)
        if asked in keep:
            raise ValueError(f"{file}: column {asked!r} is the id column, so it is kept already; leave it out of keep")
        if not can_be_id(asked):
            raise ValueError(f"{file}: column {asked!r} cannot hold ids, which are integers, text or UUIDs")
        return asked
    if asked not in (None, False):
        raise TypeError(f"id_column must be the name of a column, None or False, got {asked!r}")
    free = names.count(ID) == 1 and ID not in (features or ())
    return ID if free and can_be_id(ID) else None


def split(part: str, names: list[str], file: str) -> list[str]:
    """Names with commas between them, or one name that contains commas."""
    wanted = [part] if part in names else part.split(",")
    require_names(wanted, names, file)
    return wanted


def require_names(wanted: Iterable[str], names: list[str], file: str) -> None:
    """Refuse names that no column has."""
    for name in wanted:
        if name not in names:
            hint = did_you_mean(name, names)
            raise ValueError(f"{file}: has no column {name!r}; it has {few(names)}{hint}")


def require_distinct(wanted: list[str], names: list[str], file: str) -> None:
    """Refuse names that several columns have, or that are asked for twice."""
    for name in wanted:
        if names.count(name) > 1:
            raise ValueError(f"{file}: has {names.count(name)} columns named {name!r}; names must differ")
        if wanted.count(name) > 1:
            raise ValueError(f"{file}: column {name!r} is asked for {wanted.count(name)} times; name it once")


def few(names: Sequence[str]) -> str:
    """The first names, for messages."""
    shown = ", ".join(names[:20]) or "nothing"
    return shown if len(names) <= 20 else f"{shown}, and {len(names) - 20} more"


def plain_table(table: Any) -> Any:
    """A table without dictionaries and in one piece."""
    types = require("pyarrow", "parquet", PURPOSE).types
    for place, field in enumerate(table.schema):
        if types.is_dictionary(field.type):
            table = table.set_column(place, field.name, table[field.name].cast(field.type.value_type))
    return table.combine_chunks()
