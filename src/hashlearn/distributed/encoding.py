"""Files → files of codes, one task a file: each output takes its place whole, and what is done is not done again.

The layout is that of ``hashlearn encode``: Parquet with columns id and code (fixed-size binary), or npy. An id is the
row's number in the whole data set. A file that was cut short goes on where it stopped (`hashlearn.streams`), and one
whose mark (``.NAME.done``) tells of the same model and input is left as it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from collections.abc import Callable
from contextlib import ExitStack
from copy import copy
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import hashlearn
from hashlearn.distributed.cluster import connected
from hashlearn.distributed.tables import found_files
from hashlearn.distributed.tasks import one_core, same
from hashlearn.streams import encode_file, open_rows
from hashlearn.streams.encoding import require_columns
from hashlearn.system.atomic import write_atomically


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
    progress: Callable[[int, int], Any] | None = None,
) -> EncodedFiles:
    """Write the packed codes of every file of ``data`` to a file of the same name in the folder ``output``.

    Parameters
    ----------
    hasher : fitted, or the path of a model file that workers can read
    data : Parquet or npy files: a path, folder, pattern or list of paths
    output : a folder, made where it is missing
    suffix : ``.parquet`` or ``.npy``
    batch_rows : see `hashlearn.streams.encode_file`
    client, address, n_workers, memory_limit : as in `fit`; ``n_workers=0`` encodes in this process
    progress : called with (files done, files in all)
    """
    if suffix not in (".parquet", ".npy"):
        raise ValueError(f"suffix must be .parquet or .npy, got {suffix!r}")
    files = found_files(data)
    folder = Path(output).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    targets = [folder / f"{file.stem}{suffix}" for file in files]
    if len(set(targets)) < len(targets):
        raise ValueError("files of equal names in different folders would overwrite each other's codes")
    model = os.fspath(Path(hasher).absolute()) if isinstance(hasher, str | os.PathLike) else _pickled(hasher)
    loaded, identity = _model(model)
    jobs, first_id = [], 0
    for file, place in zip(files, targets, strict=True):
        source = open_rows(file, names=_names(loaded))
        require_columns(loaded, source)
        jobs.append((identity, str(file.absolute()), str(place), first_id, batch_rows))
        first_id += source.n_rows
    results: list[dict[str, Any]] = []
    with ExitStack() as stack:
        if n_workers == 0 and client is None and address is None:
            pending: Any = (_encode_one(model, *job) for job in jobs)
        else:
            opened = stack.enter_context(connected(client, address, n_workers, memory_limit))
            sent = opened.submit(same, model, pure=False)  # once, not with every file
            futures = [opened.submit(_encode_one, sent, *job, pure=False) for job in jobs]
            pending = (future.result() for future in futures)
        for result in pending:
            results.append(result)
            if progress is not None:
                progress(len(results), len(jobs))
    digest = hashlib.sha256("".join(result["sha256"] for result in results).encode()).hexdigest()
    resumed = sum(result["resumed"] for result in results)
    return EncodedFiles(targets, first_id, resumed, sum(result["bytes"] for result in results), digest)


def _encode_one(
    model: str | bytes, identity: str, file: str, place: str, first_id: int, batch_rows: int | None
) -> dict[str, Any]:
    hasher, _ = _model(model)
    source = open_rows(file, names=_names(hasher))
    work = {"model": identity, "input": source.identity(), "first_id": first_id, "version": hashlearn.__version__}
    mark, output = Path(place).with_name(f".{Path(place).name}.done"), Path(place)
    if mark.exists() and output.exists():
        done = json.loads(mark.read_text("utf-8"))
        if done.get("work") == work and done.get("bytes") == output.stat().st_size:
            return {**done, "resumed": True}
    with one_core():
        made = encode_file(hasher, source, place, batch_rows=batch_rows, identity=identity, first_id=first_id)
    done = {"work": work, "bytes": made.bytes, "sha256": made.sha256}
    write_atomically(mark, [json.dumps(done).encode()])
    return {**done, "resumed": False}


def _pickled(hasher: Any) -> bytes:
    """Without the codes of the rows it was learned from, which may be many."""
    light = copy(hasher)
    for name in ("training_codes", "codes_"):
        vars(light).pop(name, None)
    return pickle.dumps(light)


@lru_cache(maxsize=2)
def _model(model: str | bytes) -> tuple[Any, str]:
    """The hasher and the digest that tells it from others."""
    if isinstance(model, bytes):
        return pickle.loads(model), hashlib.sha256(model).hexdigest()
    return hashlearn.load(model), hashlib.sha256(Path(model).read_bytes()).hexdigest()


def _names(hasher: Any) -> list[str] | None:
    names = getattr(hasher, "feature_names_in_", None)
    return None if names is None else list(names)
