"""Methods from outside the package: ``my_module:MyHasher`` is a row of a table like any other.

The class is a `hashlearn.hashers.BaseHasher`, so ``fit`` and ``decision_function`` are all that it needs. A module is
looked for like any other, and then in the current folder. A result stores the digest of its source file.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import sys
from pathlib import Path
from types import ModuleType

from hashlearn.core.names import did_you_mean
from hashlearn.experiments.bench.methods import BOTH, METHODS, SUPERVISED, UNSUPERVISED, Method
from hashlearn.hashers import BaseHasher


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
    module = _imported(module_name, name)
    kind = getattr(module, class_name, None)
    path = Path(getattr(module, "__file__", None) or "built in")
    if not inspect.isclass(kind):
        classes = [key for key, value in vars(module).items() if inspect.isclass(value)]
        raise ValueError(f"{name}: {path.name} has no class {class_name!r}{did_you_mean(class_name, classes)}")
    if not issubclass(kind, BaseHasher):
        raise ValueError(f"{name}: the class must be a hashlearn.hashers.BaseHasher; derive it from that")
    if not hasattr(kind, "fit"):
        raise ValueError(f"{name}: the class has no fit(X) or fit(X, y)")
    try:
        kind(n_bits=8, random_state=0)
    except Exception as error:  # whatever the class does when it is made
        raise ValueError(f"{name}: cannot be made with n_bits and random_state alone: {error}") from None
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    source = {"module": module_name, "file": path.name, "sha256": digest}
    return Method(name, kind, _settings(kind), lambda request: {}, {"hasher": name, "source": source})


def _imported(module_name: str, name: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)  # it stays: the class may import more when it learns, and worker processes inherit it
    importlib.invalidate_caches()
    try:
        return importlib.import_module(module_name)
    except Exception as error:  # whatever the module does when it is imported
        if isinstance(error, ModuleNotFoundError) and error.name and f"{module_name}.".startswith(f"{error.name}."):
            what = f"there is no module {module_name!r}, neither installed nor in the current folder"
        else:
            what = f"module {module_name!r} cannot be imported: {type(error).__name__}: {error}"
        raise ValueError(f"{name}: {what}") from None


def _settings(kind: type[BaseHasher]) -> tuple[str, ...]:
    """With labels if ``fit`` takes y, without them if it needs none."""
    labels = inspect.signature(kind.fit).parameters.get("y")
    if labels is None:
        return (UNSUPERVISED,)
    return (SUPERVISED,) if kind._needs_labels or labels.default is labels.empty else BOTH
