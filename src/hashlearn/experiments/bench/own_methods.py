"""Methods from outside the package: ``my_module:MyHasher`` is a row of a table like any other.

A class needs a parameter ``n_bits``, a method ``fit(X)`` or ``fit(X, y)``, and ``decision_function(X)`` or
``transform(X)`` that returns (n_samples, n_bits). If it has a parameter ``random_state``, it gets the draw's number.

The bits of ``decision_function`` are 1 where the value is at least 0. Without that method ``transform`` is called. If
it returns nothing but 0 and 1, these are the bits. Else it returns signs or real numbers, with the same rule.

A module is looked for like any other, and then in the current folder. A result stores the digest of its source file.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.bits import pack_bits
from hashlearn.core.names import did_you_mean
from hashlearn.experiments.bench.methods import METHODS, SUPERVISED, UNSUPERVISED, Method, Request

_loaded: dict[str, str] = {}  # module → digest of the source that was imported


def method_named(name: str) -> Method:
    """A method of the package, or the class that ``module:Class`` names."""
    return own_method(name) if is_own(name) else METHODS[name]


def is_own(name: str) -> bool:
    """Whether a name means a class from outside the package."""
    return ":" in name


def own_method(name: str) -> Method:
    """The method that a class from outside is, checked; a ValueError says what is missing."""
    module_name, _, class_name = name.partition(":")
    if not all(part.isidentifier() for part in module_name.split(".")) or not class_name.isidentifier():
        raise ValueError(f"a method of your own is written module:Class, got {name!r}")
    module, digest = _imported(module_name, name)
    kind = getattr(module, class_name, None)
    where = Path(getattr(module, "__file__", None) or "built in").name
    if not inspect.isclass(kind):
        classes = [key for key, value in vars(module).items() if inspect.isclass(value)]
        raise ValueError(f"{name}: {where} has no class {class_name!r}{did_you_mean(class_name, classes)}")
    parameters = _parameters(kind, name)
    makes_codes = [method for method in ("decision_function", "transform") if callable(getattr(kind, method, None))]
    if not makes_codes:
        raise ValueError(f"{name}: the class has neither decision_function(X) nor transform(X)")
    settings = _settings(kind, name)
    configuration = {"hasher": name, "source": {"module": module_name, "file": where, "sha256": digest}}
    return OwnMethod(
        name, name, settings, lambda request: {}, configuration, kind=kind, takes=parameters, output=makes_codes[0]
    )


@dataclass(frozen=True, kw_only=True)
class OwnMethod(Method):
    """One row of a table, made by a class from outside."""

    kind: type
    takes: tuple[str, ...]  # of n_bits and random_state
    output: str  # the name of the method that makes codes

    def build(self, request: Request) -> Any:
        """An adapter around an instance, not yet fitted."""
        given = {"n_bits": request.n_bits, "random_state": request.seed}
        parameters = {name: value for name, value in given.items() if name in self.takes}
        return OwnHasher(self.kind(**parameters), parameters, self.output, self.name)


class OwnHasher:
    """An instance of somebody's class with the methods that a cell calls."""

    def __init__(self, hasher: Any, parameters: dict[str, Any], output: str, name: str) -> None:
        self.n_bits: int = parameters["n_bits"]
        self._hasher, self._parameters, self._output, self._name = hasher, parameters, output, name

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        """All parameters if the class can tell them, else those that it was given."""
        known = getattr(self._hasher, "get_params", None)
        found = known(deep=deep) if callable(known) else self._parameters
        return {name: value for name, value in found.items() if name != "progress"}

    def fit(self, X: Any, y: Any = None) -> OwnHasher:
        """Learn; labels are passed on if there are any."""
        self._hasher.fit(X) if y is None else self._hasher.fit(X, y)
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Margins whose signs are the bits: what the class returns, or -1 and 1 for bits."""
        values = self._values(X)
        if self._output == "transform" and bool(((values == 0.0) | (values == 1.0)).all()):
            return 2.0 * values - 1.0
        return values

    def encode(self, X: Any) -> NDArray[np.uint8]:
        """Packed codes."""
        return pack_bits((self.decision_function(X) >= 0.0).astype(np.uint8))

    def _values(self, X: Any) -> NDArray[np.float64]:
        found = np.asarray(getattr(self._hasher, self._output)(X))
        what = f"{self._output} of {self._name}"
        if found.dtype.kind not in "biuf":
            raise ValueError(f"{what} must return numbers, got type {found.dtype}")
        if self.n_bits == 1 and found.shape == (len(X),):
            found = found[:, None]
        if found.shape != (len(X), self.n_bits):
            raise ValueError(f"{what} must return shape ({len(X)}, {self.n_bits}), got {found.shape}")
        if not np.isfinite(found).all():
            raise ValueError(f"{what} returned NaN or infinity for {len(X)} rows")
        return found.astype(np.float64)


def _imported(module_name: str, name: str) -> tuple[ModuleType, str]:
    """The module, and the digest of its source. A module whose file changed since its import is imported anew."""
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)  # it stays: the class may import more when it learns, and worker processes inherit it
    importlib.invalidate_caches()
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # leave no folder beside somebody's file
    try:
        module = importlib.import_module(module_name)
        digest = _digest(module)
        if _loaded.setdefault(module_name, digest) != digest:
            module = importlib.reload(module)
            _loaded[module_name] = digest
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise ValueError(
                f"{name}: there is no module {module_name!r}, neither installed nor in the current folder"
            ) from None
        raise ValueError(f"{name}: module {module_name!r} cannot be imported: {error}") from None
    except Exception as error:  # whatever the module does when it is imported
        text = f"{type(error).__name__}: {error}"
        raise ValueError(f"{name}: module {module_name!r} cannot be imported: {text}") from None
    finally:
        sys.dont_write_bytecode = writes
    return module, digest


def _digest(module: ModuleType) -> str:
    path = getattr(module, "__file__", None)
    return "" if path is None else hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _parameters(kind: Callable[..., Any], name: str) -> tuple[str, ...]:
    """Which of n_bits and random_state the class takes."""
    try:
        found = inspect.signature(kind).parameters
    except (TypeError, ValueError):
        raise ValueError(f"{name}: the parameters of the class cannot be read; it needs one called n_bits") from None
    if "n_bits" not in found:
        raise ValueError(f"{name}: the class has no parameter n_bits, only {', '.join(found) or 'none'}")
    for key, parameter in found.items():
        variable = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if key not in ("n_bits", "random_state") and parameter.default is parameter.empty and not variable:
            raise ValueError(f"{name}: parameter {key!r} of the class has no default")
    return tuple(key for key in ("n_bits", "random_state") if key in found)


def _settings(kind: type, name: str) -> tuple[str, ...]:
    """With labels if ``fit`` takes a second argument, without them if it needs none."""
    fit = getattr(kind, "fit", None)
    if not callable(fit):
        raise ValueError(f"{name}: the class has no fit(X) or fit(X, y)")
    try:
        _, X, *others = inspect.signature(fit).parameters.values()  # after self
    except (TypeError, ValueError):
        raise ValueError(f"{name}: fit must take X, and y if it learns from labels") from None
    if X.kind == X.VAR_POSITIONAL:
        return (SUPERVISED, UNSUPERVISED)
    places = [p for p in others if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    if not places:
        return (UNSUPERVISED,)
    needed = places[0].default is places[0].empty and places[0].kind != places[0].VAR_POSITIONAL
    return (SUPERVISED,) if needed else (SUPERVISED, UNSUPERVISED)
