"""Files → files of codes, one task a file: each output takes its place whole, and what is done is not done again.

The layout is that of ``hashlearn encode``: Parquet with columns id and code (fixed-size binary), or npy. Ids are those
of the files (`hashlearn.streams.open_rows`); in files without ids an id is the row's number in the whole data set. Ids
that occur in two files are not noticed. A file that was cut short goes on where it stopped (`hashlearn.streams`). A
mark beside each output (``.NAME.done``) holds one digest of hasher and rows, and one of the output. An output is left
as it is only if both are still right. The mark is written when its file is complete, just before that takes its place,
so every output has a mark with its digest, whenever a kill comes.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from collections.abc import Iterable
from copy import copy
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import hashlearn
from hashlearn.core.atomic_files import output_place, write_atomically
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.distributed.block_cache import one_core, same
from hashlearn.distributed.blocks import found_files, has_no_rows
from hashlearn.distributed.client import connected
from hashlearn.persistence.values import fingerprint
from hashlearn.streams import Encoded, encode_file, open_rows
from hashlearn.streams.encoding import require_columns, work_digest
from hashlearn.streams.shards import discard_shards

_Result = tuple[int, str, bool]  # bytes and digest of a file of codes, and whether it was complete before


class EncodedFiles(NamedTuple):
    """What `encode` did."""

    files: list[Path]
    rows: int
    resumed_files: int  # found complete from an earlier call
    bytes: int
    sha256: str  # of the digests of all files, in order


def encode(
    hasher: Any,
    data: Any,
    output: str | os.PathLike[str],
    *,
    suffix: str = ".parquet",
    batch_rows: int | None = None,
    client: Any = None,
    address: str | None = None,
    n_workers: int | None = None,
    memory_limit: Any = "auto",
    progress: ProgressCallback | None = None,
) -> EncodedFiles:
    """Write the packed codes of every file of ``data`` to a file of the same name in the folder ``output``.

    Parameters
    ----------
    hasher : fitted, or the path of a model file that workers can read
    data : Parquet or npy files: a path, folder, pattern or list of paths. A hasher with feature names finds its columns
        by name. For a hasher without, all files must have the same columns in the same order
    output : a folder, made where it is missing. Codes of inputs that are gone are removed from it. It is refused if it
        holds codes of other inputs that are still there: a folder is read as one data set, whose ids must not repeat
    suffix : ``.parquet`` or ``.npy``
    batch_rows : see `hashlearn.streams.encode_file`
    client, address, n_workers, memory_limit : as in `fit`; ``n_workers=0`` encodes in this process
    progress : called with a `hashlearn.core.progress.Progress` after each file
    """
    if suffix not in (".parquet", ".npy"):
        raise ValueError(f"suffix must be .parquet or .npy, got {suffix!r}")
    files = found_files(data)
    folder = Path(output).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    targets = [folder / f"{file.stem}{suffix}" for file in files]
    if len(set(targets)) < len(targets):
        raise ValueError("files of equal names in different folders would overwrite each other's codes")
    for place in targets:
        output_place(place)
    model: str | bytes
    if isinstance(hasher, str | os.PathLike):
        model = os.fspath(Path(hasher).absolute())
        loaded = hashlearn.load(model)
    else:
        model, loaded = _pickled(hasher), hasher
    identity = fingerprint(loaded) or hashlib.sha256(model.encode() if isinstance(model, str) else model).hexdigest()
    first, jobs, first_id = None, [], 0
    for file, place in zip(files, targets, strict=True):
        source = open_rows(file, names=_names(loaded))
        require_columns(loaded, source, first)
        first = source if first is None or first.names is None else first
        jobs.append((identity, str(file.absolute()), str(place), first_id, batch_rows))
        first_id += source.n_rows
    remove_stale(folder, targets)
    results: list[_Result] = []
    with connected(client, address, n_workers, memory_limit) as opened:
        if opened is None:
            pending: Any = (_encode_one(model, *job) for job in jobs)
        else:
            sent = opened.submit(same, model, pure=False)  # once, not with every file
            futures = [opened.submit(_encode_one, sent, *job, pure=False) for job in jobs]
            pending = (future.result() for future in futures)
        for result in pending:
            results.append(result)
            tell(progress, "encoding", len(results), len(jobs))
    digest = hashlib.sha256("".join(sha256 for _, sha256, _ in results).encode()).hexdigest()
    resumed, size = sum(whole for _, _, whole in results), sum(count for count, _, _ in results)
    return EncodedFiles(targets, first_id, resumed, size, digest)


def _encode_one(
    model: str | bytes, identity: str, file: str, place: str, first_id: int, batch_rows: int | None
) -> _Result:
    hasher = _model(model, identity)
    source, output = open_rows(file, names=_names(hasher)), Path(place)
    with one_core():
        found = read_mark(output)
        is_whole = found is not None and found.first_id == first_id and found.is_of(output)
        if found is not None and is_whole and work_digest(hasher, source, identity) == found.work_sha256:
            discard_shards(output)  # of another input, cut short
            return found.bytes, found.sha256, True

        def mark(made: Encoded) -> None:
            write_mark(output, Mark(file, first_id, made.work_sha256, made.bytes, made.sha256))

        made = encode_file(
            hasher, source, output, batch_rows=batch_rows, identity=identity, first_id=first_id, finished=mark
        )
    return made.bytes, made.sha256, False


def _pickled(hasher: Any) -> bytes:
    """Without the codes of the rows it was learned from, which may be many."""
    light = copy(hasher)
    for name in ("training_codes", "codes_"):
        vars(light).pop(name, None)
    return pickle.dumps(light)


@lru_cache(maxsize=2)
def _model(model: str | bytes, identity: str) -> Any:
    """The hasher that the caller has; a model file must hold the same one here."""
    if isinstance(model, bytes):
        return pickle.loads(model)
    hasher = hashlearn.load(model)
    if fingerprint(hasher) != identity:
        raise ValueError(f"{model}: holds another model than when this began; call encode again")
    return hasher


def _names(hasher: Any) -> list[str] | None:
    names = getattr(hasher, "feature_names_in_", None)
    return None if names is None else list(names)


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

    Only files that have their mark's digest are removed, and shards that kills left.
    """
    kept = {place.name for place in targets}
    stale, other = [], []
    for place in sorted(folder.glob(".*.done")):
        output = folder / place.name.removeprefix(".").removesuffix(".done")
        if output.name in kept:
            continue
        mark = read_mark(output)
        gone = mark is not None and (not os.path.exists(mark.input) or has_no_rows(Path(mark.input)))
        if not output.exists() or (mark is not None and gone and mark.is_of(output)):
            stale.append(output)
        else:
            other.append(output.name)
    if other:
        raise ValueError(
            f"{folder}: holds codes that are not of these inputs ({', '.join(other[:5])}); "
            "give all inputs in one call, name another folder, or remove these files"
        )
    for output in stale:
        for place in (output, _place(output)):
            place.unlink(missing_ok=True)
    for shards in folder.glob(".*.shards"):
        output = folder / shards.name.removeprefix(".").removesuffix(".shards")
        if output.name not in kept:
            discard_shards(output)


def _place(output: Path) -> Path:
    return output.with_name(f".{output.name}.done")
