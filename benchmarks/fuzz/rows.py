"""Targets of the files that users give and get: features as npy, npz and Parquet, codes, and shards of an encode."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

from benchmarks.mutated_files import damaged, odd_array, put_odd
from hashlearn.core.progress import Progress
from hashlearn.files import codes_and_ids, encode_file, encode_rows, open_rows
from hashlearn.hashers import LSH
from hashlearn.search.arrow import to_arrow

N_ROWS, N_FEATURES, N_BITS = 60, 8, 12
MODEL = "a" * 64
FORMATS = ["csr", "coo", "xyz", "lil", ""]


class Features:
    """What the targets of features share: a mutated file must be refused, or give codes of all its rows."""

    suffix = ""

    @staticmethod
    def prepare(folder: Path) -> None:
        """Files are made in each worker, in milliseconds."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(0)
        self.hasher = LSH(N_BITS, random_state=0).fit(rng.standard_normal((N_ROWS, N_FEATURES)))

    def data(self, rng: np.random.Generator) -> bytes:
        raise NotImplementedError

    def expected(self, path: Path) -> np.ndarray | None:
        """The rows by other means, None: not known."""
        return None

    def case(self, rng: np.random.Generator, folder: Path) -> str:
        path = folder / f"case{self.suffix}"
        path.write_bytes(self.data(rng))
        try:
            source = open_rows(path)
            codes = encode_rows(self.hasher, source)
        except ValueError as error:
            return "refused" if str(path) in str(error) else f"FAILED: does not name the file: {error}"
        if codes.shape != (source.n_rows, 2):
            return f"FAILED: codes {codes.shape} of {source.n_rows} rows"
        expected = self.expected(path)
        if expected is not None and not np.array_equal(codes, self.hasher.encode(expected)):
            return "FAILED: codes of other rows"
        return "works"


class SparseFeatures(Features):
    """npz of CSR that `scipy.sparse.save_npz` writes."""

    suffix = ".npz"

    def data(self, rng: np.random.Generator) -> bytes:
        rows = sp.random_array((N_ROWS, N_FEATURES), density=0.4, rng=rng, format="csr")
        file = io.BytesIO()
        sp.save_npz(file, rows, compressed=False)
        with np.load(io.BytesIO(file.getvalue())) as stored:
            parts = {name: stored[name] for name in stored.files}
        return _mutated_npz(parts, rng, FORMATS)

    def expected(self, path: Path) -> np.ndarray | None:
        """Entry by entry, in Python."""
        with np.load(path) as stored:
            parts = {name: stored[name].tolist() for name in ("data", "indices", "indptr", "shape")}
        ends, dense = parts["indptr"], np.zeros(parts["shape"])
        lines = ((line, q) for line in range(len(ends) - 1) for q in range(ends[line], ends[line + 1]))
        for line, q in lines:
            dense[line, parts["indices"][q]] += parts["data"][q]
        return dense.astype(np.float32 if np.load(path)["data"].dtype == np.float32 else np.float64)


class DenseFeatures(Features):
    """npz with one array or several."""

    suffix = ".npz"

    def data(self, rng: np.random.Generator) -> bytes:
        parts = {"X": rng.standard_normal((N_ROWS, N_FEATURES)).astype(("f4", "f8")[rng.integers(2)])}
        return _mutated_npz(parts, rng, ["X"])


class NpyFeatures(Features):
    """npy whose header or numbers are changed."""

    suffix = ".npy"

    def data(self, rng: np.random.Generator) -> bytes:
        rows = rng.standard_normal((N_ROWS, N_FEATURES))
        return _mutated_npy(rows, rng)


class ParquetFeatures(Features):
    """Parquet of numeric columns or lists, damaged or with odd columns."""

    suffix = ".parquet"

    def data(self, rng: np.random.Generator) -> bytes:
        rows = rng.standard_normal((N_ROWS, N_FEATURES))
        columns: dict[str, Any] = {f"c{k}": list(rows[:, k]) for k in range(N_FEATURES)}
        if rng.random() < 0.4:
            columns = {"x": [list(row) for row in rows]}
        odd: list[Any] = [None, "x", np.nan, 2**62, [], [1.0], [None] * N_FEATURES, True, b"x"]
        if rng.random() < 0.5:
            name, at = list(columns)[rng.integers(len(columns))], int(rng.integers(N_ROWS))
            value, everywhere = odd[rng.integers(len(odd))], rng.random() < 0.5
            columns[name] = [value if everywhere or i == at else old for i, old in enumerate(columns[name])]
        try:
            table = pa.table(columns)
        except (pa.ArrowException, OverflowError):
            table = pa.table({"a": [1.0]})
        return _mutated_parquet(table, rng)


class CodeFiles:
    """Files of codes, npy and Parquet, as `encode_file` writes them."""

    @staticmethod
    def prepare(folder: Path) -> None:
        """Nothing is needed."""

    def __init__(self, folder: Path) -> None:
        pass

    def case(self, rng: np.random.Generator, folder: Path) -> str:
        codes = np.packbits(rng.random((N_ROWS, N_BITS)) < 0.5, axis=1)
        if rng.random() < 0.5:
            path, data = folder / "case.npy", _mutated_npy(codes, rng)
        else:
            table = to_arrow(codes, np.arange(N_ROWS), N_BITS, model=MODEL)
            metadata = dict(table.schema.metadata)
            if rng.random() < 0.3:
                value = (b"", b"x", b"-1", b"0", b"13", b"1e3", b"99999999999999999999", b"\xff")[rng.integers(8)]
                metadata[list(metadata)[rng.integers(len(metadata))]] = value
            elif rng.random() < 0.5:
                column = pa.array([(None, 1, "x", b"ab", 2.5)[rng.integers(5)]] * N_ROWS)
                at = int(rng.integers(2))
                table = table.set_column(at, table.column_names[at], column)
            path, data = folder / "case.parquet", _mutated_parquet(table.replace_schema_metadata(metadata), rng)
        path.write_bytes(data)
        try:
            found, ids = codes_and_ids(path, N_BITS, MODEL)
        except ValueError as error:
            return "refused" if str(path) in str(error) else f"FAILED: does not name the file: {error}"
        fits = found.ndim == 2 and found.shape[1] == 2 and found.dtype == np.uint8 and ids.shape == found.shape[:1]
        return "works" if fits else f"FAILED: codes {found.dtype} {found.shape} with ids {ids.shape}"


class Shards(Features):
    """The folder of an encode that was interrupted: the next one gives the right codes, whatever became of it."""

    def case(self, rng: np.random.Generator, folder: Path) -> str:
        rows = rng.standard_normal((N_ROWS, N_FEATURES))
        np.save(folder / "rows.npy", rows)
        source, output = open_rows(folder / "rows.npy"), folder / "codes.npy"

        def stop(progress: Progress) -> None:
            if progress.done >= 40:
                raise InterruptedError

        arguments: dict[str, Any] = {"batch_rows": 10, "identity": "fuzz"}
        try:
            encode_file(self.hasher, source, output, progress=stop, **arguments)
        except InterruptedError:
            _damage_one(folder / ".codes.npy.shards", rng)
        try:
            encode_file(self.hasher, source, output, **arguments)
        except ValueError as error:
            return f"FAILED: a damaged shard was not made again: {error}"
        finally:
            shutil.rmtree(folder / ".codes.npy.shards", ignore_errors=True)
        return "works" if np.array_equal(np.load(output), self.hasher.encode(rows)) else "FAILED: codes of other rows"


def _damage_one(folder: Path, rng: np.random.Generator) -> None:
    files = sorted(path for path in folder.iterdir() if path.name != "lock")
    path = files[rng.integers(len(files))]
    way = rng.integers(4)
    if way == 0:
        path.unlink()
    elif way == 1:
        path.write_bytes(files[rng.integers(len(files))].read_bytes())  # a whole shard in the place of another
    elif way == 2:
        (folder / rng.bytes(32).hex()).write_bytes(b"" if rng.random() < 0.5 else rng.bytes(52))
    else:
        path.write_bytes(damaged(path.read_bytes(), rng))


def _mutated_npz(parts: dict[str, np.ndarray], rng: np.random.Generator, words: list[str]) -> bytes:
    for _ in range(rng.integers(1, 4)):
        name = list(parts)[rng.integers(len(parts))]
        way = rng.integers(10)
        if parts[name].dtype.kind in "SU":
            parts[name] = np.array(words[rng.integers(len(words))].encode())
        elif way == 0:
            del parts[name]
        elif way == 1:
            parts[name] = parts[list(parts)[rng.integers(len(parts))]]
        elif way < 5:
            put_odd(parts[name], rng)
        else:
            parts[name] = _or_none(lambda name=name: odd_array(parts[name], rng), parts[name])
        if not parts:
            break
    file = io.BytesIO()
    (np.savez if rng.random() < 0.7 else np.savez_compressed)(file, **parts)
    return damaged(file.getvalue(), rng) if rng.random() < 0.15 else file.getvalue()


def _mutated_npy(array: np.ndarray, rng: np.random.Generator) -> bytes:
    array = _or_none(lambda: odd_array(array, rng), array)
    file = io.BytesIO()
    np.save(file, np.asfortranarray(array) if rng.random() < 0.2 else array)
    data = file.getvalue()
    if rng.random() < 0.4:
        length = int.from_bytes(data[8:10], "little")
        text = data[10 : 10 + length].decode()
        swaps = [("(60", "(2**40"), ("(60", "(-60"), ("(60", "(1152921504606846976"), ("8)", "0)"), ("<f8", "|O"),
                 ("<f8", "<c16"), ("<f8", "|V8"), ("False", "True"), ("shape", "sharp"), ("'<f8'", "[('a','<f8')]"),
                 ("(60,", "(6,"), ("<f8", ">f8"), ("|u1", "|S1"), ("{", "{" * 50)]  # fmt: skip
        before, after = swaps[rng.integers(len(swaps))]
        text = text.replace(before, after, 1).strip()
        text += " " * (-(10 + len(text) + 1) % 64) + "\n"
        data = data[:8] + len(text).to_bytes(2, "little") + text.encode() + data[10 + length :]
    return damaged(data, rng) if rng.random() < 0.3 else data


def _mutated_parquet(table: Any, rng: np.random.Generator) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=int(rng.integers(5, 70)))
    return damaged(file.getvalue(), rng) if rng.random() < 0.5 else file.getvalue()


def _or_none(change: Callable[[], np.ndarray], otherwise: np.ndarray) -> np.ndarray:
    """What ``change`` makes; some changes of dtype are not possible."""
    try:
        with np.errstate(all="ignore"):
            return change()
    except (ValueError, TypeError):
        return otherwise
