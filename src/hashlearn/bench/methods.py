"""Every compared method by the paper's name: which hasher it is, and with which parameters.

Hashers are looked up in `hashlearn.hashers.HASHERS` when a cell runs; one that is not there makes its method *missing*,
which tables and commands say. Adding a method is one line in `METHODS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn import bqp, targets
from hashlearn.hashers import HASHERS, BaseHasher

SUPERVISED, UNSUPERVISED = "supervised", "unsupervised"

# q of the thresholded target: one for each data set, 2 % where none is named.
NEAREST_SHARE: dict[str, float] = {"mnist": 0.02, "cifar10": 0.02}
DEFAULT_NEAREST_SHARE = 0.02


@dataclass(frozen=True, eq=False)
class Request:
    """What a hasher is built for."""

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
    hasher: str  # its key in HASHERS
    settings: tuple[str, ...]
    parameters: Parameters

    @property
    def is_missing(self) -> bool:
        """Whether this version has no such hasher."""
        return self.hasher not in HASHERS

    def build(self, request: Request) -> BaseHasher:
        """The hasher, not fitted."""
        if self.is_missing:
            raise ValueError(f"method {self.name} is missing: this version has no hasher {self.hasher!r}")
        make: Callable[..., BaseHasher] = HASHERS[self.hasher]
        return make(n_bits=request.n_bits, random_state=request.seed, **self.parameters(request))


def _two_step(solver: Callable[[Request], Any], distance: bool = False) -> Parameters:
    """Parameters of TwoStepHasher: the paper's start and sweeps, the table's hash function."""

    def parameters(request: Request) -> dict[str, Any]:
        target: Any = "labels"
        if request.setting == UNSUPERVISED:
            share = NEAREST_SHARE.get(request.dataset, DEFAULT_NEAREST_SHARE)
            target = targets.Distance() if distance else targets.ThresholdedDistance(share)
        return {"target": target, "solver": solver(request), "hash_function": request.hash_function}

    return parameters


def _graph_cut(request: Request) -> Any:
    """With labels FastHash's blocks, the classes; without, blocks that the solver finds."""
    return bqp.GraphCut(blocks=request.labels) if request.setting == SUPERVISED else "graph_cut"


def _own(hasher: str) -> Parameters:
    """The hasher's own defaults; in a table with another hash function than RBF-SVM that one, if there is a choice."""

    def parameters(request: Request) -> dict[str, Any]:
        has_choice = "hash_function" in HASHERS[hasher]._get_param_names()
        return {"hash_function": request.hash_function} if has_choice and request.hash_function != "rbf_svm" else {}

    return parameters


def _named(name: str, hasher: str, *settings: str) -> Method:
    return Method(name, hasher, settings, _own(hasher))


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("SDR", "two_step", (SUPERVISED, UNSUPERVISED), _two_step(lambda request: "sdr")),
        Method("AL", "two_step", (SUPERVISED, UNSUPERVISED), _two_step(lambda request: "al")),
        Method("SDR distance", "two_step", (UNSUPERVISED,), _two_step(lambda request: "sdr", distance=True)),
        Method("AL distance", "two_step", (UNSUPERVISED,), _two_step(lambda request: "al", distance=True)),
        Method("NOPT", "two_step", (SUPERVISED, UNSUPERVISED), _two_step(lambda request: "nopt")),
        Method("GraphCut", "two_step", (SUPERVISED, UNSUPERVISED), _two_step(_graph_cut)),
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
    )
}
