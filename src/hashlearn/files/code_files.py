"""Files of codes: what they say about themselves, how they are written and read.

A Parquet file has ids, kept columns and, in its metadata, an `About` and what it was made of. An npy file has codes
only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.packages import require
from hashlearn.files.numpy_files import numpy_array
from hashlearn.files.row_source import RowSource, rebatched, require_file
from hashlearn.files.table_files import GROUP_ROWS
from hashlearn.search.about import require_same_model
from hashlearn.search.arrow import about_codes, from_arrow, ids_from_arrow, read_codes, reading, to_arrow
from hashlearn.search.ids import IdArray
from hashlearn.search.interface import checked_codes

ORIGIN = b"hashlearn.origin"  # a key of the metadata of a Parquet file: what it was made of
PURPOSE = "Parquet files of codes"


class CodesFile(NamedTuple):
    """What a file of codes says about itself; None: it does not say."""

    rows: int
    n_bits: int | None = None
    model: str | None = None  # digest
    model_name: str | None = None  # name of the model's file
    id_type: str = "int64"
    fields: tuple[str, ...] = ()  # other columns
    input: str | None = None  # path of the rows
    work_sha256: str | None = None  # `Encoded.work_sha256`


def describe_codes(path: str | os.PathLike[str]) -> CodesFile:
    """What a Parquet or npy file of codes says about itself."""
    file = Path(path)
    require_file(file)
    if file.suffix.lower() == ".parquet":
        parquet = require("pyarrow.parquet", "parquet", PURPOSE)
        with reading(str(file)):
            metadata = parquet.read_metadata(file)
            schema = metadata.schema.to_arrow_schema()
        try:
            return _described(schema, metadata.num_rows)
        except ValueError as error:
            raise ValueError(f"{file}: is not a file of codes, as encode writes them: {error}") from None
    codes = numpy_array(file)
    if codes.dtype != np.uint8 or codes.ndim != 2:
        raise ValueError(f"{file}: has {codes.dtype} of shape {codes.shape}; codes are uint8 (n, bytes)")
    return CodesFile(len(codes))


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
            about = _described(reader.schema)
            require_same_model(about.model, model, f"{file}:", stored_name=about.model_name, model_name=model_name)
            if about.n_bits != n_bits:
                raise ValueError(f"these are codes of {about.n_bits} bits, the model makes {n_bits}")
            codes, ids, _ = from_arrow(reader.read_all())
            return codes, ids
    except (TypeError, ValueError) as error:
        text = str(error)
        raise ValueError(text if text.startswith(str(file)) else f"{address}: {text}") from None


def is_whole(path: Path) -> bool:
    """Whether every page of a Parquet file has its checksum."""
    arrow, parquet = require("pyarrow", "parquet", PURPOSE), require("pyarrow.parquet", "parquet", PURPOSE)
    try:
        for _ in parquet.ParquetFile(path, page_checksum_verification=True).iter_batches():
            pass
    except (arrow.ArrowException, OSError):
        return False
    return True


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
    first_id: int,
    model: str | None,
    origin: dict[str, str],
) -> None:
    """Write a Parquet file of ids, kept columns of the source and codes; ``origin`` are the last of `CodesFile`."""
    parquet = require("pyarrow.parquet", "parquet", PURPOSE)
    tables, columns = source.extra_columns(GROUP_ROWS), source.columns
    with ExitStack() as stack:
        writer = None
        for group in rebatched(codes, GROUP_ROWS):
            ids: Any = np.arange(first_id, first_id + len(group))
            first_id += len(group)
            extra: Any = next(tables, None)
            if columns.extra and (extra is None or extra.num_rows != len(group)):
                raise ValueError(f"{source.name}: changed while it was encoded; run again when it is complete")
            if columns.id is not None:
                ids = ids_from_arrow(extra[columns.id])
            table = to_arrow(group, ids, n_bits, model=model, fields={name: extra[name] for name in columns.keep})
            table = table.replace_schema_metadata({**table.schema.metadata, ORIGIN: json.dumps(origin)})
            if writer is None:
                writer = stack.enter_context(parquet.ParquetWriter(path, table.schema, write_page_checksum=True))
            writer.write_table(table, row_group_size=GROUP_ROWS)


def _described(schema: Any, rows: int = 0) -> CodesFile:
    about = about_codes(schema)
    try:
        origin = json.loads(schema.metadata[ORIGIN])
        parts = {name: origin[name] for name in ("model_name", "input", "work_sha256")}
        known = {name: part for name, part in parts.items() if part and isinstance(part, str)}
    except (KeyError, TypeError, ValueError, RecursionError):
        known = {}
    fields = tuple(about.fields or ())
    return CodesFile(rows, about.n_bits, about.model, id_type=str(about.id_type), fields=fields, **known)
