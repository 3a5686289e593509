"""Every compared method by the paper's name: which hasher it is, and with which parameters.

Hashers are looked up in `hashlearn.hashers.HASHERS` when a cell runs. A line in `METHODS` gives a hasher the paper's
name; one without a line has its class name. ``my_module:MyHasher`` is a class from outside the package, a
`hashlearn.hashers.BaseHasher`. Its module is looked for like any other, and then in the current folder.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from hashlearn import bqp, targets
from hashlearn.core.names import did_you_mean
from hashlearn.hashers import HASHERS, BaseHasher

SUPERVISED, UNSUPERVISED = "supervised", "unsupervised"
MIXED = "mixed"  # setting of a table that runs every method in the first of its own settings

# The fraction q of the thresholded target, for each data set. Chosen with queries from the training part (draw 0, 8 to
# 32 bits): docs/reproduction.md.
NEAREST_SHARE: dict[str, float] = {"mnist": 0.02, "cifar10": 0.01}
DEFAULT_NEAREST_SHARE = 0.02
# "hashlearn tuned": what differs from the defaults, chosen the same way (docs/quality.md).
TUNED: dict[str, dict[str, Any]] = {
    "cifar10": {"target": targets.Neighbors(metric="euclidean")},
}


@dataclass(frozen=True, eq=False)
class CellContext:
    """The cell that a hasher is built for."""

    n_bits: int
    seed: int
    setting: str  # SUPERVISED or UNSUPERVISED
    dataset: str
    hash_function: str  # of two-step methods
    labels: NDArray[np.int64]  # of the training samples


Parameters = Callable[[CellContext], dict[str, Any]]


@dataclass(frozen=True)
class Method:
    """One row of a table."""

    name: str
    hasher: str | type[BaseHasher]  # its key in HASHERS, or the class
    settings: tuple[str, ...]
    parameters: Parameters
    configuration: Mapping[str, Any] = field(default_factory=dict, compare=False)  # stored beside the parameters

    def setting_in(self, setting: str, has_labels: bool = True) -> str | None:
        """The method's setting in a table of this setting; None if it does not belong there.

        A method that learns without labels may stand beside those that need them.
        """
        if not has_labels:
            return UNSUPERVISED if UNSUPERVISED in self.settings and setting != SUPERVISED else None
        if setting == MIXED:
            return self.settings[0]
        if setting in self.settings:
            return setting
        return UNSUPERVISED if setting == SUPERVISED else None

    def build(self, context: CellContext) -> BaseHasher:
        """The hasher, not yet fitted."""
        make: Callable[..., BaseHasher] = HASHERS[self.hasher] if isinstance(self.hasher, str) else self.hasher
        return make(n_bits=context.n_bits, random_state=context.seed, **self.parameters(context))


def _two_step(solver: str | Callable[[CellContext], Any], *, distance: bool = False, spread: bool = True) -> Parameters:
    """Parameters of TwoStepHasher: the paper's start and sweeps, the table's hash function.

    ``spread`` is our addition. The published rivals (NOPT, GraphCut) and the rows named "plain" run without it.
    """

    def parameters(context: CellContext) -> dict[str, Any]:
        target: Any = "labels"
        if context.setting == UNSUPERVISED:
            share = NEAREST_SHARE.get(context.dataset, DEFAULT_NEAREST_SHARE)
            target = targets.Distance() if distance else targets.ThresholdedDistance(share)
        settings = {
            "target": target,
            "solver": solver if isinstance(solver, str) else solver(context),
            "hash_function": context.hash_function,
            "init": "pca",
            "arrange": False,
        }
        return settings if spread else {**settings, "spread": False}

    return parameters


def _relaxed(context: CellContext) -> str:
    """The relaxation, solved as far as bits of codes need: thresholded distances are no factor of low rank."""
    return "quick_sdr" if context.setting == SUPERVISED else "coarse_sdr"


def _graph_cut(context: CellContext) -> Any:
    """With labels the blocks of FastHash, which are the classes; without labels the solver finds blocks."""
    return bqp.GraphCut(blocks=context.labels) if context.setting == SUPERVISED else "graph_cut"


def _named(name: str, hasher: str, *settings: str, **parameters: Any) -> Method:
    """The hasher's own defaults, but the table's hash function if that is not RBF-SVM and the hasher has a choice."""

    def with_hash_function(context: CellContext) -> dict[str, Any]:
        has_choice = "hash_function" in HASHERS[hasher]._get_param_names()
        other = {"hash_function": context.hash_function} if has_choice and context.hash_function != "rbf_svm" else {}
        return {**other, **parameters}

    return Method(name, hasher, settings, with_hash_function)


BOTH = (SUPERVISED, UNSUPERVISED)

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("hashlearn", "two_step", BOTH, lambda context: {}),  # the library's defaults
        Method("hashlearn tuned", "two_step", (UNSUPERVISED,), lambda context: TUNED.get(context.dataset, {})),
        Method("SDR", "two_step", BOTH, _two_step(_relaxed)),
        Method("AL", "two_step", BOTH, _two_step("al")),
        Method("SDR plain", "two_step", (SUPERVISED,), _two_step(_relaxed, spread=False)),
        Method("AL plain", "two_step", (SUPERVISED,), _two_step("al", spread=False)),
        Method("SDR distance", "two_step", (UNSUPERVISED,), _two_step("quick_sdr", distance=True)),
        Method("AL distance", "two_step", (UNSUPERVISED,), _two_step("al", distance=True)),
        Method("NOPT", "two_step", BOTH, _two_step("nopt", spread=False)),
        Method("GraphCut", "two_step", BOTH, _two_step(_graph_cut, spread=False)),
        Method("NOPT spread", "two_step", (SUPERVISED,), _two_step("nopt")),
        Method("GraphCut spread", "two_step", (SUPERVISED,), _two_step(_graph_cut)),
        _named("TSH", "tsh", SUPERVISED),
        _named("FastHash", "fasthash", SUPERVISED),
        _named("KSH", "ksh", SUPERVISED),
        _named("BRE", "bre", SUPERVISED, UNSUPERVISED),
        _named("ITQ-CCA", "itq_cca", SUPERVISED),
        _named("ITQ", "itq", UNSUPERVISED),
        _named("BA", "binary_autoencoder", UNSUPERVISED),
        _named("SPH", "spherical_hashing", UNSUPERVISED),
        _named("KMH", "kmeans_hashing", UNSUPERVISED),
        _named("NMF", "nmf_hashing", UNSUPERVISED),
        _named("ALM", "alm_hashing", UNSUPERVISED),
        _named("SDH", "sdh", SUPERVISED),
        _named("LSH", "lsh", UNSUPERVISED),
        _named("Spectral", "spectral_hashing", UNSUPERVISED),
        _named("Sign", "sign_codes", UNSUPERVISED, features="pca"),
    )
}
# A hasher that no line above names is a method under its class name, with its own defaults.
_named_above = {method.hasher for method in METHODS.values()}
for _key, _kind in HASHERS.items():
    if _key not in _named_above:
        _settings = (UNSUPERVISED,) if not _kind._learns_from_labels else (SUPERVISED,) if _kind._needs_labels else BOTH
        METHODS[_kind.__name__] = _named(_kind.__name__, _key, *_settings)


def method_named(name: str) -> Method:
    """A method of the package, or the class that ``module:Class`` names."""
    return own_method(name) if is_own(name) else METHODS[name]


def is_own(name: str) -> bool:
    """Whether a name means a class from outside the package."""
    return ":" in name


_digests: WeakKeyDictionary[ModuleType, str] = WeakKeyDictionary()  # of the code that was imported, not of later edits


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
    source = {"module": module_name, "file": path.name, "sha256": _digests[module]}
    return Method(name, kind, _settings_of(kind), lambda request: {}, {"hasher": name, "source": source})


def _imported(module_name: str, name: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)  # it stays: the class may import more when it learns, and worker processes inherit it
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(module_name)
        if module not in _digests:
            path = Path(getattr(module, "__file__", None) or "")
            _digests[module] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        return module
    except Exception as error:  # whatever the module does when it is imported
        if isinstance(error, ModuleNotFoundError) and error.name and f"{module_name}.".startswith(f"{error.name}."):
            what = f"there is no module {module_name!r}, neither installed nor in the current folder"
        else:
            what = f"module {module_name!r} cannot be imported: {type(error).__name__}: {error}"
        raise ValueError(f"{name}: {what}") from None


def _settings_of(kind: type[BaseHasher]) -> tuple[str, ...]:
    """With labels if ``fit`` takes y, without them if it needs none."""
    labels = inspect.signature(kind.fit).parameters.get("y")
    if labels is None:
        return (UNSUPERVISED,)
    return (SUPERVISED,) if kind._needs_labels or labels.default is labels.empty else BOTH
