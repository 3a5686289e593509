"""Marks beside files of codes: ``.NAME.done`` says of what ``NAME`` holds the codes, and its digest.

A mark is written when its file is complete, just before that takes its place. So every file of codes has a mark with
its digest, whenever a kill comes. A mark whose file has another digest counts for nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from hashlearn.core.atomic_files import remove_unfinished, write_atomically
from hashlearn.distributed.blocks import has_no_rows
from hashlearn.streams.shards import discard_shards

KINDS = (str, int, str, int, str)


class Mark(NamedTuple):
    """What is known of a finished file of codes."""

    input: str  # path of the rows
    first_id: int
    work_sha256: str  # of the hasher and the rows
    bytes: int  # of the file of codes, and its digest
    sha256: str

    def is_of(self, output: Path) -> bool:
        """Whether the file is there and has this digest."""
        try:
            if not output.is_file() or output.stat().st_size != self.bytes:
                return False
            with open(output, "rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256
        except FileNotFoundError:
            return False


def write_mark(output: Path, mark: Mark) -> None:
    """Write the mark of ``output``."""
    write_atomically(_place(output), [json.dumps(mark._asdict()).encode()])


def read_mark(output: Path) -> Mark | None:
    """The mark of ``output``; None where there is none, or a damaged one."""
    place = _place(output)
    try:
        found = json.loads(place.read_bytes()) if place.is_file() else None
        mark = Mark(**found) if isinstance(found, dict) else None
    except (ValueError, TypeError, RecursionError, FileNotFoundError):
        return None
    right = mark is not None and all(type(value) is kind for value, kind in zip(mark, KINDS, strict=True))
    return mark if right else None


def remove_stale(folder: Path, targets: Iterable[Path]) -> None:
    """Remove codes of inputs that are gone; refuse a folder with codes of other inputs.

    Only files that have their mark's digest are removed, and what kills left unfinished.
    """
    kept = {place.name for place in targets}
    stale, other = [], []
    for place in sorted(folder.glob(".*.done")):
        output = folder / place.name.removeprefix(".").removesuffix(".done")
        if output.name in kept:
            continue
        mark = read_mark(output)
        if (mark is not None and _is_gone(Path(mark.input)) and mark.is_of(output)) or not output.exists():
            stale.append(output)
        else:
            other.append(output.name)
    if other:
        raise ValueError(
            f"{folder}: holds codes that are not of these inputs ({', '.join(other[:5])}); "
            "give all inputs in one call, name another folder, or remove these files"
        )
    for output in stale:
        output.unlink(missing_ok=True)
        _place(output).unlink(missing_ok=True)
    remove_unfinished(folder, ".*")
    for shards in folder.glob(".*.shards"):
        output = folder / shards.name.removeprefix(".").removesuffix(".shards")
        if output.name not in kept:
            discard_shards(output)


def _is_gone(rows: Path) -> bool:
    return not rows.exists() or has_no_rows(rows)


def _place(output: Path) -> Path:
    return output.with_name(f".{output.name}.done")
