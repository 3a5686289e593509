"""`BatchEncoder`: one small object that encodes batches in worker processes of Ray and Spark, in Polars and in DuckDB.

It holds the path and the digest of a model file, so it pickles to a few hundred bytes. Each process reads the file when
it first encodes, and keeps the model for later batches and for other copies of the encoder.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.packages import require
from hashlearn.core.rows import as_rows
from hashlearn.persistence.container import PersistenceError
from hashlearn.persistence.model_file import describe, load, save
from hashlearn.persistence.values import fingerprint
from hashlearn.search.model_digest import SHOWN_DIGITS
from hashlearn.search.stores.arrow import codes_to_arrow, metadata_of

MOST_LOADED = 4  # models that a process keeps
_loaded: dict[str, Any] = {}  # by digest, the model used last at the end
_loading = threading.Lock()


class BatchEncoder:
    """The model in a file, to be sent to worker processes and called on batches there.

    Parameters
    ----------
    path : of a model file. Workers read it at the same path, unless ``portable``
    column : name of the column with vectors, which `on_batch` and `on_batches` encode
    code : name of the new column of codes, each the bytes that ``hasher.encode`` gives
    keep_vectors : keep the column of vectors beside the codes; by default the codes replace it
    portable : carry the bytes of the file, for workers that cannot read the path. A pickle then takes as much as the
        file. ``hasher.save(path, codes=False)`` makes it smaller

    Attributes
    ----------
    digest : the model's `fingerprint`. A file that holds another model when it is read is refused
    n_bits, n_features : of the model

    Examples
    --------
    >>> import pickle, tempfile
    >>> from hashlearn.hashers import LSH
    >>> X = np.eye(4)
    >>> hasher = LSH(n_bits=16, random_state=0).fit(np.tile(X, (4, 1)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hasher.save(folder + "/model.hashlearn")
    ...     encoder = BatchEncoder(folder + "/model.hashlearn", column="x")
    ...     sent = pickle.loads(pickle.dumps(encoder))
    ...     batch = sent.on_batch({"id": np.arange(4), "x": X})
    >>> list(batch), batch["code"][0] == hasher.encode(X)[0].tobytes(), len(pickle.dumps(encoder)) < 1000
    (['id', 'code'], True, True)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        column: str | None = None,
        code: str = "code",
        keep_vectors: bool = False,
        portable: bool = False,
    ) -> None:
        described = describe(path)
        self.path = os.path.abspath(path)
        self.column, self.code, self.keep_vectors = column, code, keep_vectors
        self.digest: str = described["digest"]
        self.n_bits: int = described["n_bits"]
        self.n_features: int = described["n_features"]
        self._content = Path(path).read_bytes() if portable else None

    @classmethod
    def from_hasher(cls, hasher: Any, **options: Any) -> BatchEncoder:
        """A portable encoder of a fitted hasher that has no file. ``options`` are ``column``, ``code`` and so on."""
        with TemporaryDirectory() as folder:
            path = Path(folder, "model.hashlearn")
            save(hasher, path, codes=False)
            return cls(path, **options, portable=True)

    @property
    def hasher(self) -> Any:
        """The loaded model. The first call in a process reads it; threads wait for each other."""
        with _loading:
            hasher = _loaded.pop(self.digest, None)
            if hasher is None:
                hasher = self._read()
            _loaded[self.digest] = hasher
            if len(_loaded) > MOST_LOADED:
                del _loaded[next(iter(_loaded))]
            return hasher

    def encode(self, X: Any) -> NDArray[np.uint8]:
        """Packed codes, shape (n, ⌈n_bits/8⌉), of rows in an array, or of a column of vectors; none for no rows.

        A column may be a pandas or Polars Series, an Arrow array, an array of arrays or a list of arrays.
        """
        name = "X" if self.column is None else f"column {self.column!r}"
        codes: NDArray[np.uint8] = self.hasher.encode(as_rows(X, name))
        return codes

    def on_column(self, vectors: Any) -> Any:
        """A column of vectors as a column of bytes of the same library, for an expression or an SQL function."""
        return _as_column(self.encode(vectors), vectors)

    def on_batch(self, batch: Any) -> Any:
        """A batch with codes in place of its vectors; all other columns are carried through.

        A batch is a dict of arrays, a pandas or Polars DataFrame, or a pyarrow Table or RecordBatch. The result is of
        the same type. Arrow's metadata get the number of bits and the model's digest.
        """
        library, names = _library(batch), _names(batch)
        column = self._column(names)
        codes = self.on_column(batch[column])
        if isinstance(batch, dict):
            kept = {name: values for name, values in batch.items() if self.keep_vectors or name != column}
            return {**kept, self.code: codes}
        if library == "pyarrow":
            kept = batch if self.keep_vectors else batch.remove_column(names.index(column))
            whole = kept.append_column(self.code, codes)
            return whole.replace_schema_metadata(
                {**(whole.schema.metadata or {}), **metadata_of(self.n_bits, self.digest)}
            )
        if library == "polars":
            kept = batch if self.keep_vectors else batch.drop(column)
            return kept.with_columns(codes.alias(self.code))
        kept = batch if self.keep_vectors else batch.drop(columns=column)
        return kept.assign(**{self.code: codes})

    def on_batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """`on_batch` of each batch in turn, as Spark's ``mapInPandas`` wants it."""
        for batch in batches:
            yield self.on_batch(batch)

    def __repr__(self) -> str:
        return f"BatchEncoder({self.path!r}, n_bits={self.n_bits}, model={self.digest[:SHOWN_DIGITS]})"

    def _read(self) -> Any:
        if self._content is None:
            hasher = load(self.path)
        else:
            with TemporaryDirectory() as folder:
                path = Path(folder, "model.hashlearn")
                path.write_bytes(self._content)
                hasher = load(path)
        found = fingerprint(hasher)
        if found != self.digest:
            raise PersistenceError(
                f"{self.path!r} holds model {str(found)[:SHOWN_DIGITS]} now, and this encoder was made for "
                f"{self.digest[:SHOWN_DIGITS]}; put that file back, or make a new BatchEncoder"
            )
        return hasher

    def _column(self, names: list[str]) -> str:
        shown = f"the batch has {', '.join(map(repr, names)) or 'no columns'}"
        if self.column is None:
            raise ValueError(f"column must name the column of vectors: BatchEncoder(path, column=...); {shown}")
        if self.column not in names:
            raise ValueError(f"column is {self.column!r}, and {shown}")
        if self.code in names and (self.keep_vectors or self.code != self.column):
            raise ValueError(f"code is {self.code!r}, and the batch has that column already; choose another name")
        return self.column


def _library(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _names(batch: Any) -> list[str]:
    library = _library(batch)
    if isinstance(batch, dict):
        return list(batch)
    if library == "pyarrow" and hasattr(batch, "schema"):
        return list(batch.schema.names)
    if library in ("pandas", "polars") and hasattr(batch, "columns"):
        return list(batch.columns)
    raise TypeError(
        "batch must be a dict of arrays, a pandas or Polars DataFrame, or a pyarrow Table or RecordBatch, got "
        f"{type(batch).__name__}; encode(X) takes an array"
    )


def _as_column(codes: NDArray[np.uint8], like: Any) -> Any:
    """Codes as a column of bytes in the library of ``like``."""
    library = _library(like)
    if library in ("pyarrow", "polars"):
        column = codes_to_arrow(codes)
        if library == "polars":
            return type(like)(like.name, column)
        pyarrow = require("pyarrow", "parquet", "columns of Arrow")
        return pyarrow.chunked_array([column]) if hasattr(like, "chunks") else column
    values = np.empty(len(codes), dtype=object)  # NumPy's own bytes would lose zeros at the end
    values[:] = [code.tobytes() for code in codes]
    return type(like)(values, index=like.index, name=like.name, dtype=object) if library == "pandas" else values
