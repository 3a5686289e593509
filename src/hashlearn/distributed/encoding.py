"""Files → Parquet files of codes, one task a file: outputs take their places whole, and what is done is not done again.

The layout is that of ``hashlearn encode``. Ids are those of the files (`hashlearn.files.open_rows`); in files without
ids an id is the row's number in the whole data set. Ids that occur in two files are not noticed. A file that was cut
short goes on where it stopped (`hashlearn.files`). The metadata of each output hold the path of its input and one
digest of hasher and rows: `hashlearn.files.encode_file` leaves an output as it is if it is whole and that digest right.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Collection
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

import hashlearn
from hashlearn.core.atomic_files import output_place
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.distributed.executors import connected, one_core, share
from hashlearn.distributed.row_blocks import has_no_rows, list_files
from hashlearn.files import describe_codes, encode_file, open_rows
from hashlearn.files.encoding import discard_shards, require_columns
from hashlearn.persistence.values import fingerprint


class EncodedFiles(NamedTuple):
    """What `encode` did."""

    files: list[Path]
    rows: int
    resumed_files: int  # complete from an earlier call


def encode(
    hasher: Any,
    data: Any,
    output: str | os.PathLike[str],
    *,
    batch_rows: int | None = None,
    client: Any = None,
    address: str | None = None,
    n_workers: int | None = None,
    memory_limit: Any = "auto",
    progress: ProgressCallback | None = None,
) -> EncodedFiles:
    """Write the packed codes of every file of ``data`` to a Parquet file of the same name in the folder ``output``.

    Parameters
    ----------
    hasher : fitted, or the path of a model file
    data : Parquet or npy files: a path, folder, pattern or list of paths. A hasher with feature names finds its columns
        by name. For a hasher without, all files must have the same columns in the same order
    output : a folder, made where it is missing. Codes of inputs that are gone are removed from it. It is refused if it
        holds codes of other inputs that are still there: a folder is read as one data set, whose ids must not repeat
    batch_rows : see `hashlearn.files.encode_file`
    client, address, n_workers, memory_limit : as in `fit`; ``n_workers=0`` encodes in this process
    progress : called with a `hashlearn.core.progress.Progress` after each file
    """
    files = list_files(data)
    folder = Path(output).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    targets = [folder / f"{file.stem}.parquet" for file in files]
    if len(set(targets)) < len(targets):
        raise ValueError("files of equal names in different folders would overwrite each other's codes")
    model = _light(hashlearn.load(hasher) if isinstance(hasher, str | os.PathLike) else hasher)
    identity = fingerprint(model) or hashlib.sha256(pickle.dumps(model)).hexdigest()
    first, jobs, first_id = None, [], 0
    for file, place in zip(files, targets, strict=True):
        output_place(place)
        source = open_rows(file, names=_names(model))
        require_columns(model, source, first)
        first = source if first is None or first.names is None else first
        jobs.append((identity, str(file.absolute()), str(place), first_id, batch_rows))
        first_id += source.n_rows
    remove_stale(folder, targets)
    resumed: list[bool] = []
    with connected(client, address, n_workers, memory_limit) as opened:
        if opened is None:
            pending: Any = (_encode_one(model, *job) for job in jobs)
        else:
            sent = share(opened, model)
            futures = [opened.submit(_encode_on_one_core, sent, *job, pure=False) for job in jobs]
            pending = (future.result() for future in futures)
        for was_whole in pending:
            resumed.append(was_whole)
            tell(progress, "encoding", len(resumed), len(jobs))
    return EncodedFiles(targets, first_id, sum(resumed))


def _encode_on_one_core(*job: Any) -> bool:
    with one_core():
        return _encode_one(*job)


def _encode_one(hasher: Any, identity: str, file: str, output: str, first_id: int, batch_rows: int | None) -> bool:
    """Whether the codes of the file were complete before."""
    source = open_rows(file, names=_names(hasher))
    done = encode_file(hasher, source, output, batch_rows=batch_rows, identity=identity, first_id=first_id, input=file)
    return done.resumed_rows == done.rows


def _light(hasher: Any) -> Any:
    """The hasher without the codes of the rows it was learned from, which may be many."""
    light = copy(hasher)
    for name in ("training_codes", "codes_"):
        vars(light).pop(name, None)
    return light


def _names(hasher: Any) -> list[str] | None:
    names = getattr(hasher, "feature_names_in_", None)
    return None if names is None else list(names)


def _input_of(output: Path) -> str | None:
    """The path of the rows that a file has the codes of; None if it does not say."""
    try:
        return describe_codes(output).input
    except (OSError, ValueError):
        return None


def remove_stale(folder: Path, targets: Collection[Path]) -> None:
    """Remove codes of inputs that are gone; refuse a folder with codes of other inputs."""
    inputs = {output: _input_of(output) for output in sorted(folder.glob("*.parquet")) if output not in targets}
    known = {output: Path(source) for output, source in inputs.items() if source}
    other = [output.name for output, source in known.items() if source.exists() and not has_no_rows(source)]
    if other:
        raise ValueError(
            f"{folder}: holds codes that are not of these inputs ({', '.join(other[:5])}); "
            "give all inputs in one call, name another folder, or remove these files"
        )
    for output in known:
        output.unlink()
    for shards in folder.glob(".*.shards"):
        output = folder / shards.name.removeprefix(".").removesuffix(".shards")
        if output not in targets:
            discard_shards(output)
