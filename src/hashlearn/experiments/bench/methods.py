"""Every compared method by the paper's name: which hasher it is, and with which parameters.

Hashers are looked up in `hashlearn.hashers.HASHERS` when a cell runs. A line in `METHODS` gives a hasher the paper's
name; one without a line has its class name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn import bqp, targets
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
class Request:
    """The cell that a hasher is built for."""

    n_bits: int
    seed: int
    setting: str  # SUPERVISED or UNSUPERVISED
    dataset: str
    hash_function: str  # of two-step methods
    labels: NDArray[np.int64]  # of the training samples


Parameters = Callable[[Request], dict[str, Any]]


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

    def build(self, request: Request) -> BaseHasher:
        """The hasher, not yet fitted."""
        make: Callable[..., BaseHasher] = HASHERS[self.hasher] if isinstance(self.hasher, str) else self.hasher
        return make(n_bits=request.n_bits, random_state=request.seed, **self.parameters(request))


def _two_step(solver: str | Callable[[Request], Any], *, distance: bool = False, spread: bool = True) -> Parameters:
    """Parameters of TwoStepHasher: the paper's start and sweeps, the table's hash function.

    ``spread`` is our addition. The published rivals (NOPT, GraphCut) and the rows named "plain" run without it.
    """

    def parameters(request: Request) -> dict[str, Any]:
        target: Any = "labels"
        if request.setting == UNSUPERVISED:
            share = NEAREST_SHARE.get(request.dataset, DEFAULT_NEAREST_SHARE)
            target = targets.Distance() if distance else targets.ThresholdedDistance(share)
        chosen = {
            "target": target,
            "solver": solver if isinstance(solver, str) else solver(request),
            "hash_function": request.hash_function,
            "init": "pca",
            "arrange": False,
        }
        return chosen if spread else {**chosen, "spread": False}

    return parameters


def _relaxed(request: Request) -> str:
    """The relaxation, solved as far as bits of codes need: thresholded distances are no factor of low rank."""
    return "quick_sdr" if request.setting == SUPERVISED else "coarse_sdr"


def _graph_cut(request: Request) -> Any:
    """With labels the blocks of FastHash, which are the classes; without labels the solver finds blocks."""
    return bqp.GraphCut(blocks=request.labels) if request.setting == SUPERVISED else "graph_cut"


def _named(name: str, hasher: str, *settings: str, **parameters: Any) -> Method:
    """The hasher's own defaults, but the table's hash function if that is not RBF-SVM and the hasher has a choice."""

    def chosen(request: Request) -> dict[str, Any]:
        has_choice = "hash_function" in HASHERS[hasher]._get_param_names()
        other = {"hash_function": request.hash_function} if has_choice and request.hash_function != "rbf_svm" else {}
        return {**other, **parameters}

    return Method(name, hasher, settings, chosen)


BOTH = (SUPERVISED, UNSUPERVISED)

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("hashlearn", "two_step", BOTH, lambda request: {}),  # the library's defaults
        Method("hashlearn tuned", "two_step", (UNSUPERVISED,), lambda request: TUNED.get(request.dataset, {})),
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
