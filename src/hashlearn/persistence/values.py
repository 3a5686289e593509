"""Python values ↔ JSON and arrays. A value that JSON lacks becomes an object whose key "$" names its kind.

Arrays are stored separately, each under the path that leads to it; the JSON holds the path. Objects of our own are
named by registry and key. No class is ever looked up by a name from a file in any other way.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hashlearn import bqp
from hashlearn.core.checks import checked_csr
from hashlearn.core.container import Arrays, PersistenceError, digests, plain
from hashlearn.hash_functions import HASH_FUNCTIONS, STORABLE, FittedHashFunctions
from hashlearn.hashers import HASHERS
from hashlearn.hashers.baselines.kmeans_hashing import CodewordMargins
from hashlearn.hashers.baselines.spectral_hashing import CosineMargins
from hashlearn.hashers.baselines.spherical_hashing import SphereMargins
from hashlearn.hashers.ranking import Check, RankingReport
from hashlearn.inference import BitRecord, InferenceReport, Passes
from hashlearn.targets import TARGETS, Pairs, Similarity

# Dataclasses and named tuples, stored field by field.
RECORDS: dict[str, Any] = {
    **{f"solver/{name}": kind for name, kind in bqp.METHODS.items()},
    "solver/passes": Passes,
    **{f"hash_function/{name}": kind for name, kind in HASH_FUNCTIONS.items()},
    **{f"target/{name}": kind for name, kind in TARGETS.items()},
    "target/similarity": Similarity,
    "target/pairs": Pairs,
    "report/inference": InferenceReport,
    "report/bit": BitRecord,
    "report/ranking": RankingReport,
    "report/check": Check,
}
RECORD_NAMES = {kind: name for name, kind in RECORDS.items()}

FUNCTIONS: dict[str, type[FittedHashFunctions]] = {
    **STORABLE,
    **{kind.kind: kind for kind in (CosineMargins, SphereMargins, CodewordMargins)},
}

HASHER_NAMES = {kind: name for name, kind in HASHERS.items()}


# Fitted attributes that only describe the training. Reports hold seconds, which differ each time.
NOT_NEEDED_TO_ENCODE = ("codes_", "hash_function_", "inference_report_", "ranking_report_", "target_")
FITTED_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*_")

# Python objects take far more memory than they do in a file.
MOST_TEXT, MOST_RECORDS = 2**24, 2**18


class Writer:
    """Turns values into JSON and collects their ``arrays``."""

    def __init__(self) -> None:
        self.arrays: Arrays = {}

    def json(self, value: Any, path: str) -> Any:
        """``value`` as JSON; ``path`` names its arrays, and it in errors."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | str) or type(value) is int:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"$": "float", "value": repr(value)}
        if isinstance(value, np.ndarray):
            return self._array(value, path)
        if sp.issparse(value):
            rows = sp.csr_array(value)
            parts = {part: self._array(getattr(rows, part), f"{path}/{part}") for part in ("data", "indices", "indptr")}
            return {"$": "sparse", "shape": list(rows.shape), **parts}
        if isinstance(value, FittedHashFunctions):
            return {"$": "functions", "state": self._state(value, path)}
        if type(value) in RECORD_NAMES:
            fields = {name: self.json(getattr(value, name), f"{path}/{name}") for name in _field_names(type(value))}
            return {"$": "record", "kind": RECORD_NAMES[type(value)], "fields": fields}
        if type(value) is dict and all(type(key) is str for key in value):
            return {"$": "dict", "items": {key: self.json(item, f"{path}/{key}") for key, item in value.items()}}
        if (
            type(value) is list
            and value
            and isinstance(value[0], tuple)
            and {type(v) for v in value} <= {*RECORD_NAMES}
        ):
            return self._table(value, path)
        if type(value) in (list, tuple):
            items = [self.json(item, f"{path}/{i}") for i, item in enumerate(value)]
            return items if type(value) is list else {"$": "tuple", "items": items}
        raise PersistenceError(
            f"{path} is a {type(value).__name__}, which cannot be stored without pickle; what can be: numbers, "
            "strings, arrays, and hashlearn's own solvers, targets and hash functions"
        )

    def _array(self, value: Any, path: str) -> dict[str, Any]:
        array, how = np.asarray(value), "array"
        if array.dtype.kind in "UO":
            how = "objects" if array.dtype.kind == "O" else "strings"
            if not all(isinstance(item, str) for item in array.flat):
                raise PersistenceError(f"{path} is an array of Python objects, which cannot be stored without pickle")
            array = np.frombuffer(json.dumps(array.tolist()).encode(), np.uint8)
            if len(array) > MOST_TEXT:
                raise PersistenceError(f"{path} has {len(array):,} bytes of text, at most {MOST_TEXT:,} are stored")
        self.arrays[path] = plain(array, path)
        return {"$": how, "name": path}

    def _state(self, functions: FittedHashFunctions, path: str) -> dict[str, Any]:
        try:
            state = functions.state()
        except TypeError as error:
            raise PersistenceError(f"{path}: {error}") from None
        if state["kind"] not in FUNCTIONS:
            raise PersistenceError(f"{path}: hash functions of kind {state['kind']!r} are not hashlearn's own")
        return {name: self.json(value, f"{path}/{name}") for name, value in state.items()}

    def _table(self, rows: list[Any], path: str) -> dict[str, Any]:
        """Many named tuples of one kind, column by column."""
        kind = type(rows[0])
        if any(type(row) is not kind for row in rows) or len(rows) > MOST_RECORDS:
            raise PersistenceError(f"{path} must hold at most {MOST_RECORDS:,} records, all of one kind")
        columns = zip(kind._fields, zip(*rows, strict=True), strict=True)
        stored = {name: self._array(np.array(column), f"{path}/{name}") for name, column in columns}
        return {"$": "table", "kind": RECORD_NAMES[kind], "columns": stored}


class Reader:
    """Turns JSON and arrays back into values. Inconsistent parts are an error."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self._ways: dict[str, Callable[[dict[str, Any]], Any]] = {
            "float": lambda v: {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[v["value"]],
            "array": self._finite_array,
            "strings": lambda v: self._texts(v["name"]).astype(str),
            "objects": lambda v: self._texts(v["name"]),
            "sparse": self._sparse,
            "functions": self._functions,
            "record": self._record,
            "table": self._table,
            "dict": lambda v: {key: self.value(item) for key, item in v["items"].items()},
            "tuple": lambda v: tuple(self.value(item) for item in v["items"]),
        }

    def value(self, stored: Any) -> Any:
        """What `Writer.json` was given."""
        if isinstance(stored, list):
            return [self.value(item) for item in stored]
        return self._ways[stored["$"]](stored) if isinstance(stored, dict) else stored

    def _sparse(self, stored: dict[str, Any]) -> Any:
        data, indices, indptr = (self.value(stored[part]) for part in ("data", "indices", "indptr"))
        return checked_csr(data, indices, indptr, stored["shape"])

    def _finite_array(self, stored: dict[str, Any]) -> NDArray[Any]:
        array = self.arrays[stored["name"]]
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise PersistenceError(f"array {stored['name']!r} holds NaN or infinity")
        return array

    def _texts(self, name: str) -> NDArray[Any]:
        text = self.arrays[name]
        if text.dtype != np.uint8 or len(text) > MOST_TEXT:
            raise PersistenceError(f"strings must be JSON of at most {MOST_TEXT:,} bytes")
        array = np.array(json.loads(text.tobytes()), dtype=object)
        if not all(isinstance(item, str) for item in array.flat):
            raise PersistenceError(f"array {name!r} holds other values than strings")
        return array

    def _as_stored(self, stored: Any) -> Any:
        """An array without the check for infinity, which the reader of the array makes; else as `value`."""
        is_array = isinstance(stored, dict) and stored["$"] == "array"
        return self.arrays[stored["name"]] if is_array else self.value(stored)

    def _functions(self, stored: dict[str, Any]) -> FittedHashFunctions:
        state = {name: self._as_stored(value) for name, value in stored["state"].items()}
        return FUNCTIONS[state["kind"]].from_state(state)

    def _record(self, stored: dict[str, Any]) -> Any:
        fields = {name: self.value(value) for name, value in stored["fields"].items()}
        return RECORDS[stored["kind"]](**fields)

    def _table(self, stored: dict[str, Any]) -> list[Any]:
        kind = RECORDS[stored["kind"]]
        columns = [self._as_stored(stored["columns"][name]) for name in kind._fields]
        if any(column.ndim != 1 or len(column) > MOST_RECORDS for column in columns):
            raise PersistenceError(f"a table must have columns of at most {MOST_RECORDS:,} entries")
        return [kind(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _field_names(kind: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else list(kind._fields)


def fingerprint(hasher: Any) -> str | None:
    """SHA-256 of everything that the codes depend on: kind of hasher, n_bits, fitted attributes and their arrays.

    It is the model's digest, which files and stores of codes hold. A hasher has the same fingerprint after it was saved
    and loaded, and so do two equal fits. The result is None for a hasher that cannot be saved, such as one with a
    classifier of your own.

    >>> from hashlearn.hashers import LSH
    >>> X = [[0.0, 1.0], [1.0, 0.0]]
    >>> one, same, other = (LSH(n_bits=2, random_state=seed).fit(X) for seed in (0, 0, 1))
    >>> fingerprint(one) == fingerprint(same), fingerprint(one) == fingerprint(other)
    (True, False)
    """
    if type(hasher) not in HASHER_NAMES:
        return None
    check_is_fitted(hasher)
    fitted = {
        name: value
        for name, value in sorted(vars(hasher).items())
        if FITTED_NAME.fullmatch(name) and name not in NOT_NEEDED_TO_ENCODE
    }
    writer = Writer()
    try:
        stored = {name: writer.json(value, name) for name, value in fitted.items()}
    except PersistenceError:
        return None
    shapes = {name: (array.dtype, array.shape) for name, array in writer.arrays.items()}
    return digest_of(HASHER_NAMES[type(hasher)], int(hasher.n_bits), stored, shapes, digests(writer.arrays))


def digest_of(
    method: str,
    n_bits: int,
    fitted: Mapping[str, Any],
    arrays: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]],
    sha256: Mapping[str, str],
) -> str:
    """`fingerprint` of a hasher as files describe it: fitted attributes as JSON, dtype, shape and SHA-256 of arrays.

    What encoding does not need is left out, so the arguments may hold all that a file has.
    """
    needed = {name: value for name, value in fitted.items() if name not in NOT_NEEDED_TO_ENCODE}
    kept = {name: shape for name, shape in arrays.items() if name.partition("/")[0] in needed}
    shapes = {name: [str(dtype), shape] for name, (dtype, shape) in kept.items()}
    described = [method, n_bits, needed, shapes, {name: sha256[name] for name in kept}]
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()
