"""Files of codes: what they say about themselves, how they are written and read.

A Parquet file has ids, kept columns and, in its metadata, the number of bits and the model's digest. An npy file has
codes only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.packages import require
from hashlearn.files.columns import GROUP_ROWS
from hashlearn.files.numpy_files import numpy_array
from hashlearn.files.rows import RowSource, rebatched, require_file
from hashlearn.search.about import require_same_model
from hashlearn.search.arrow import about_codes, from_arrow, ids_from_arrow, read_codes, reading, to_arrow
from hashlearn.search.ids import IdArray
from hashlearn.search.interface import checked_codes

MODEL_NAME, ORIGIN = "hashlearn.model_name", "hashlearn.origin"  # keys of the metadata of a Parquet file
PURPOSE = "Parquet files of codes"


class CodesFile(NamedTuple):
    """What a file of codes says about itself; None: it does not say."""

    rows: int
    n_bits: int | None
    model: str | None  # digest
    model_name: str | None  # name of the model's file
    id_type: str = "int64"
    fields: tuple[str, ...] = ()  # other columns


class Origin(NamedTuple):
    """What a Parquet file of codes was made from."""

    input: str  # path of the rows
    first_id: int
    work_sha256: str  # of the hasher and the rows


def read_origin(path: Path) -> Origin | None:
    """The origin that `write_parquet` wrote into a file; None if it is not there or damaged."""
    arrow, parquet = require("pyarrow", "parquet", PURPOSE), require("pyarrow.parquet", "parquet", PURPOSE)
    try:
        found = Origin(**json.loads((parquet.read_schema(path).metadata or {})[ORIGIN.encode()]))
    except (arrow.ArrowException, OSError, KeyError, TypeError, ValueError, RecursionError):
        return None
    return found if [*map(type, found)] == [str, int, str] else None


def is_whole(path: Path) -> bool:
    """Whether every page of a Parquet file has its checksum."""
    arrow, parquet = require("pyarrow", "parquet", PURPOSE), require("pyarrow.parquet", "parquet", PURPOSE)
    try:
        for _ in parquet.ParquetFile(path, page_checksum_verification=True).iter_batches():
            pass
    except (arrow.ArrowException, OSError):
        return False
    return True


def describe_codes(path: str | os.PathLike[str]) -> CodesFile:
    """What a Parquet or npy file of codes says about itself."""
    file = Path(path)
    require_file(file)
    if file.suffix.lower() == ".parquet":
        parquet = require("pyarrow.parquet", "parquet", PURPOSE)
        with reading(str(file)):
            opened = parquet.ParquetFile(file)
            schema, rows = opened.schema_arrow, opened.metadata.num_rows
        try:
            return _about_table(schema, rows)
        except ValueError as error:
            raise ValueError(f"{file}: is not a file of codes, as encode writes them: {error}") from None
    codes = numpy_array(file)
    if codes.dtype != np.uint8 or codes.ndim != 2:
        raise ValueError(f"{file}: has {codes.dtype} of shape {codes.shape}; codes are uint8 (n, bytes)")
    return CodesFile(len(codes), None, None, None)


def codes_and_ids(
    address: str | os.PathLike[str], n_bits: int, model: str | None = None, model_name: str | None = None
) -> tuple[NDArray[np.uint8], IdArray]:
    """Packed codes and their ids in memory, from what `encode_file` wrote; in an npy the row is the id.

    With ``model``, a digest of `hashlearn.persistence.fingerprint`, a Parquet file with codes of another model is
    refused. ``model_name`` is for the error.
    """
    file = Path(address)
    if file.suffix.lower() not in (".npy", ".parquet"):
        raise ValueError(f"{address}: codes are npy or Parquet files, and no store of hashlearn is there")
    require_file(file)
    try:
        if file.suffix.lower() == ".npy":
            codes = checked_codes(numpy_array(file), n_bits)
            return codes, np.arange(len(codes))
        with read_codes(file, fields=[]) as reader:
            about, name = about_codes(reader.schema), _model_name(reader.schema)
            require_same_model(about.model, model, f"{file}:", stored_name=name, model_name=model_name)
            if about.n_bits != n_bits:
                raise ValueError(f"these are codes of {about.n_bits} bits, the model makes {n_bits}")
            codes, ids, _ = from_arrow(reader.read_all())
            return codes, ids
    except (TypeError, ValueError) as error:
        text = str(error)
        raise ValueError(text if text.startswith(str(file)) else f"{address}: {text}") from None


def _about_table(schema: Any, rows: int) -> CodesFile:
    about = about_codes(schema)
    return CodesFile(
        rows, about.n_bits, about.model, _model_name(schema), str(about.id_type), tuple(about.fields or ())
    )


def _model_name(schema: Any) -> str | None:
    name = (schema.metadata or {}).get(MODEL_NAME.encode())
    return None if name is None else name.decode(errors="replace")


def write_npy(path: Path, codes: Iterable[NDArray[np.uint8]], n_rows: int, n_bits: int) -> None:
    """Write an npy file, uint8 (n_rows, ⌈n_bits/8⌉)."""
    with open(path, "wb") as file:
        shape = (n_rows, -(-n_bits // 8))
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
        file.writelines(part.tobytes() for part in codes)


def write_parquet(
    path: Path,
    codes: Iterable[NDArray[np.uint8]],
    source: RowSource,
    n_bits: int,
    first_id: int = 0,
    model: str | None = None,
    model_name: str = "",
    origin: Origin | None = None,
) -> None:
    """Write a Parquet file of ids, kept columns of the source and codes."""
    parquet = require("pyarrow.parquet", "parquet", "writing Parquet files")
    more = {MODEL_NAME: model_name} if model_name else {}
    if origin is not None:
        more[ORIGIN] = json.dumps(origin._asdict())
    first, beside = first_id, source.beside(GROUP_ROWS)
    with ExitStack() as stack:
        writer = None
        for group in rebatched(codes, GROUP_ROWS):
            ids, fields = _of_group(source, beside, first, len(group))
            table = to_arrow(group, ids, n_bits, model=model, fields=fields)
            table = table.replace_schema_metadata({**table.schema.metadata, **more})
            if writer is None:
                writer = stack.enter_context(parquet.ParquetWriter(path, table.schema, write_page_checksum=True))
            writer.write_table(table, row_group_size=GROUP_ROWS)
            first += len(group)


def _of_group(source: RowSource, beside: Iterator[Any], first: int, count: int) -> tuple[IdArray, dict[str, Any]]:
    """The ids of the next ``count`` rows, and their kept columns."""
    columns = source.columns
    if not columns.beside:
        return np.arange(first, first + count), {}
    table = next(beside, None)
    if table is None or table.num_rows != count:
        raise ValueError(f"{source.name}: changed while it was encoded; run again when it is complete")
    ids = np.arange(first, first + count) if columns.id is None else ids_from_arrow(table[columns.id])
    return ids, {name: table[name] for name in columns.keep}
