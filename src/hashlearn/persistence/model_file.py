"""`save`, `load` and `describe`: a fitted hasher as one file that holds numbers and names only.

Loading runs no code from the file: the hasher is one of `HASHERS`, and its parts come from the registries. Checksums
detect accidental damage. A forged file can carry valid checksums, so shapes, indices and numbers are checked as well.
"""

from __future__ import annotations

import datetime
import inspect
import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

import hashlearn
from hashlearn.core.container import Contents, Kind, PersistenceError, read_container, write_container
from hashlearn.hash_functions import FittedHashFunctions
from hashlearn.hashers import HASHERS, BaseHasher
from hashlearn.hashers.base import MAX_BITS
from hashlearn.persistence.values import FITTED_NAME, HASHER_NAMES, Reader, Writer, digest_of

FORMAT_VERSION = 4  # to be increased with every change of what a file holds
MODEL = Kind("model", "hashlearn", FORMAT_VERSION)
LONGEST_NOTE = 10_000
LARGEST_NUMBER = 1e80  # of a hash function; products with entries of rows then never overflow


def save(
    hasher: BaseHasher,
    path: str | os.PathLike[str],
    *,
    codes: bool = True,
    notes: str = "",
    promise: dict[str, Any] | None = None,
) -> None:
    """Write a fitted hasher. The new file is verified, then replaces the old one in one step.

    Parameters
    ----------
    hasher : fitted; one of `hashlearn.hashers.HASHERS`
    path : of the file, ``model.hashlearn`` for example
    codes : store ``codes_``, the codes of the training samples, too; encoding does not need them
    notes : anything that `describe` should tell about the training later
    promise : what was promised about the codes, as plain JSON; `describe` returns it, and `load` ignores it

    Examples
    --------
    >>> import tempfile
    >>> import hashlearn
    >>> from hashlearn.hashers import LSH
    >>> hasher = LSH(n_bits=8, random_state=0).fit([[0.0, 1.0], [1.0, 0.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hasher.save(folder + "/model.hashlearn", notes="two points")
    ...     again = hashlearn.load(folder + "/model.hashlearn")
    >>> (again.encode([[2.0, 1.0]]) == hasher.encode([[2.0, 1.0]])).all()
    np.True_
    """
    if type(hasher) not in HASHER_NAMES:
        raise PersistenceError(f"only hashers of hashlearn.hashers.HASHERS can be saved, got {type(hasher).__name__}")
    if not isinstance(notes, str) or len(notes) > LONGEST_NOTE:
        raise PersistenceError(f"notes must be a string of at most {LONGEST_NOTE} letters")
    promised = {} if promise is None else {"promise": _plain_promise(promise)}
    check_is_fitted(hasher)
    writer, left_out, parameters = Writer(), [], {}
    for name, value in hasher.get_params(deep=False).items():
        if name == "verbose":  # it is about the fit that was, and a loaded hasher is silent
            continue
        if (name == "progress" and value is not None) or isinstance(value, np.random.Generator | np.random.RandomState):
            left_out.append(name)
            value = None
        parameters[name] = _stored_parameter(writer, name, value)
    fitted = {name: value for name, value in vars(hasher).items() if FITTED_NAME.fullmatch(name)}
    if not codes and fitted.pop("codes_", None) is not None:
        left_out.append("codes_")
    stored = {}
    for name, value in fitted.items():
        try:
            stored[name] = writer.json(value, name)
        except PersistenceError:
            if name not in ("target_", "hash_function_"):  # they may hold an object of the user's that only fit needs
                raise
            left_out.append(name)
    model = {
        "method": HASHER_NAMES[type(hasher)],
        "parameters": parameters,
        "fitted": stored,
        "left_out": left_out,
        "provenance": _provenance(hasher, notes),
        **promised,
    }
    try:
        _built(model, writer.arrays)
    except (PersistenceError, ValueError, TypeError) as error:
        raise PersistenceError(f"this hasher cannot be stored, for `load` would refuse it: {error}") from error
    write_container(path, MODEL, model, writer.arrays, check=lambda beside: read_container(beside, MODEL))


def load(path: str | os.PathLike[str]) -> Any:
    """The hasher in a file that `save` wrote; its codes are those of the hasher saved, bit for bit.

    No code from the file is run, and there is no pickle. Checksums detect accidental damage. A forged file can carry
    valid checksums, so shapes, sizes, indices, dtypes and numbers are checked as well; docs/models.md lists the checks.
    A file that fails one, or that has another format, is a `PersistenceError`.
    """
    contents = read_container(path, MODEL)
    with _model_errors(path):
        return _built(contents.description, contents.arrays)


def load_with_description(path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """What `load` and `describe` return, from one read, so that both are about the same file."""
    contents = read_container(path, MODEL)
    with _model_errors(path):
        return _built(contents.description, contents.arrays), _described(contents)


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a model file holds, from its verified header alone; arrays are neither read nor checked.

    Keys: format_version, method, class, n_bits, n_features, digest (the `fingerprint` of the hasher), promise (None if
    there is none), parameters, changed (the parameters that differ from their defaults), left_out, provenance, arrays
    (dtype, shape and SHA-256 of each), bytes. All is JSON.
    """
    contents = read_container(path, MODEL, with_arrays=False)
    with _model_errors(path):
        return _described(contents)


def _described(contents: Contents) -> dict[str, Any]:
    model = contents.description
    _checked_promise(model.get("promise", {}))
    n_bits, sha256 = model["parameters"]["n_bits"], model["sha256"]
    shapes = {name: (dtype, shape) for name, dtype, shape, *_ in contents.header.entries}
    return {
        "format_version": FORMAT_VERSION,
        "method": model["method"],
        "class": HASHERS[model["method"]].__name__,
        "n_bits": n_bits,
        "n_features": model["fitted"]["n_features_in_"],
        "digest": digest_of(model["method"], n_bits, model["fitted"], shapes, sha256),
        "promise": model.get("promise"),
        "parameters": model["parameters"],
        "changed": _changed(model["method"], model["parameters"]),
        "left_out": model["left_out"],
        "provenance": model["provenance"],
        "arrays": {
            name: {"dtype": str(dtype), "shape": list(shape), "sha256": sha256[name]}
            for name, (dtype, shape) in shapes.items()
        },
        "bytes": contents.size,
    }


def _changed(method: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """The stored parameters that differ from the defaults of this version."""
    known = inspect.signature(HASHERS[method]).parameters
    return {
        name: value
        for name, value in parameters.items()
        if name not in known or value != Writer().json(known[name].default, name)
    }


@contextmanager
def _model_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name the file in any error about the model that it describes."""
    try:
        yield
    except PersistenceError as error:
        raise PersistenceError(f"{str(path)!r}: {error}") from error
    except MemoryError:
        raise
    except Exception as error:
        detail = f"{type(error).__name__}: {error}"
        raise PersistenceError(f"{str(path)!r} does not describe a valid model ({detail})") from error


def _plain_promise(promise: Any) -> dict[str, Any]:
    """The promise as JSON reads it back: tuples become lists."""
    try:
        read = json.loads(json.dumps(promise, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise PersistenceError(f"promise must be plain JSON: {error}") from None
    return _checked_promise(read)


def _checked_promise(promise: Any) -> dict[str, Any]:
    if not isinstance(promise, dict):
        raise PersistenceError(f"promise must be a JSON object (a dict), got {type(promise).__name__}")
    return promise


def _stored_parameter(writer: Writer, name: str, value: Any) -> Any:
    try:
        return writer.json(value, f"parameters/{name}")
    except PersistenceError as error:
        raise PersistenceError(
            f"{error}. A parameter does not change the codes of a fitted hasher: set_params({name}=...) to something "
            "that can be stored, then save"
        ) from None


def _provenance(hasher: BaseHasher, notes: str) -> dict[str, Any]:
    return {
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "n_samples": getattr(hasher, "n_samples_fit_", None),
        "versions": {
            "hashlearn": hashlearn.__version__,
            "python": platform.python_version(),
            **{package: version(package) for package in ("numpy", "scipy", "scikit-learn")},
        },
        "notes": notes,
    }


def _built(model: dict[str, Any], arrays: dict[str, Any]) -> BaseHasher:
    _checked_promise(model.get("promise", {}))
    method = model["method"]
    if method not in HASHERS:
        raise PersistenceError(f"unknown method {method!r}; this version of hashlearn has {', '.join(HASHERS)}")
    reader = Reader(arrays)
    hasher = HASHERS[method](**{name: reader.value(value) for name, value in model["parameters"].items()})
    for name, value in model["fitted"].items():
        if not FITTED_NAME.fullmatch(name) or hasattr(type(hasher), name):
            raise PersistenceError(f"{name!r} is no name of a fitted attribute")
        setattr(hasher, name, reader.value(value))
    _require_consistent(hasher)
    return hasher


def _require_consistent(hasher: Any) -> None:
    """Check that the parts of a hasher fit each other, so that encoding cannot fail."""
    get_tags(hasher)  # scikit-learn reads them for every input, and they depend on parameters
    functions = hasher.hash_functions_
    if not isinstance(functions, FittedHashFunctions):
        raise PersistenceError("a model must have hash functions")
    for name, value in functions.state().items():
        size = max(value, 1.0 / value) if type(value) is float else _largest(value)
        if size > LARGEST_NUMBER:
            raise PersistenceError(f"{name} of its hash functions ({functions.kind}) is too large or too small")
    widths = [(hasher.n_features_in_, functions.n_features), (functions.n_bits, hasher.n_bits)]
    names = getattr(hasher, "feature_names_in_", None)
    if names is not None:
        if not isinstance(names, np.ndarray) or names.ndim != 1 or names.dtype.kind not in "UO":
            raise PersistenceError("feature_names_in_ must be strings")
        widths += [(len(names), hasher.n_features_in_)]
    whole = type(hasher.n_bits) is int and type(hasher.n_features_in_) is int
    if not whole or any(a != b for a, b in widths):
        raise PersistenceError("the model's features, functions and bits do not fit each other")
    if hasher.n_features_in_ < 1 or not 1 <= hasher.n_bits <= MAX_BITS:
        raise PersistenceError(f"a model must have at least one feature, and from 1 to {MAX_BITS} bits")


def _largest(value: Any) -> float:
    """The size of the largest finite entry of an array of floats; 0 for anything else."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return 0.0
    largest = float(max(value.max(initial=0.0), -value.min(initial=0.0)))  # without a copy of the array
    return largest if largest < np.inf else float(np.abs(value[np.isfinite(value)]).max(initial=0.0))
