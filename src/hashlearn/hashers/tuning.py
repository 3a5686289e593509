"""Choose target, start, solver, hash function and their parameters on held-out samples, within a time budget.

This is a coordinate search: one choice is varied at a time, the most important first (docs/quality.md), and the best
value so far stays. A trial starts only if the previous one would have fitted into the rest of the budget. Inference of
a running trial ends with the budget. The first trial, the defaults, always runs. The same seed and enough time give
the same answer.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors

from hashlearn import metrics, targets
from hashlearn.core.arrays import is_tensor
from hashlearn.core.checks import generator
from hashlearn.core.progress import Progress, ProgressCallback
from hashlearn.core.rows import as_rows
from hashlearn.hash_functions import RBFSVM, LinearSVM
from hashlearn.hashers.two_step import TwoStepHasher

TRUE_NEIGHBORS = 10
FEWEST_HELD_OUT, MOST_HELD_OUT = 20, 2000

Choices = dict[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Trial:
    """One configuration: what differs from the defaults, its score on held-out samples, and its seconds."""

    changes: dict[str, Any]
    score: float
    seconds: float

    def __str__(self) -> str:
        changed = ", ".join(f"{name}={value!r}" for name, value in self.changes.items()) or "the defaults"
        return f"{self.score:8.4f}  {self.seconds:7.1f} s  {changed}"


@dataclass(frozen=True)
class TuningProgress(Progress):
    """The argument of `tune`'s progress callback, after each trial."""

    trial: Trial


@dataclass(frozen=True, eq=False)
class Tuned:
    """What `tune` found. Print it for the table of all trials.

    Attributes
    ----------
    hasher : the best configuration, fitted on all samples
    trials : all that was tried, in order
    metric : what the scores are
    stopped : whether the budget ended the search before every choice was tried
    """

    hasher: TwoStepHasher
    trials: tuple[Trial, ...] = field(repr=False)
    metric: str
    stopped: bool

    @property
    def best(self) -> Trial:
        """The trial with the highest score, the earliest of equals."""
        return max(self.trials, key=lambda trial: trial.score)

    def __str__(self) -> str:
        lines = [f"   score     seconds  tried ({self.metric})"]
        lines += [f"{trial}{'  <- best' if trial is self.best else ''}" for trial in self.trials]
        return "\n".join(lines + (["stopped by the time budget"] if self.stopped else []))


def tune(
    X: Any,
    y: Any = None,
    *,
    n_bits: int = 32,
    seconds: float = 300.0,
    held_out: float = 0.2,
    choices: Choices | None = None,
    random_state: Any = None,
    progress: ProgressCallback | None = None,
) -> Tuned:
    """The best `TwoStepHasher` for these samples, and all that was tried.

    Held-out samples are queries against the codes of the others. With labels the score is mean average precision;
    without, the mean fraction of each query's 10 nearest float vectors among its 10 nearest codes.

    Parameters
    ----------
    X : (n_samples, n_features)
    y : labels (n_samples,), or None
    n_bits : code length
    seconds : budget for the trials; the final fit on all samples comes on top
    held_out : share of samples held out, at most 2,000 of them
    choices : parameter of TwoStepHasher → values to try; None: a list that depends on whether there are labels
    random_state : seed or Generator
    progress : called with every finished trial

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> found = tune(X[:400], y[:400], n_bits=8, choices={"spread": (False,)}, random_state=0)
    >>> len(found.trials), found.hasher.encode(X[:3]).shape
    (2, (3, 1))
    """
    if not (isinstance(seconds, int | float) and seconds > 0.0):
        raise ValueError(f"seconds must be a positive number, got {seconds!r}")
    if not (isinstance(held_out, float) and 0.0 < held_out < 1.0):
        raise ValueError(f"held_out must be a share between 0 and 1, got {held_out!r}")
    wanted = _default_choices(y) if choices is None else choices
    seed = int(generator(random_state).integers(2**31))
    base = TwoStepHasher(n_bits, random_state=seed)
    unknown = [name for name in wanted if name not in base.get_params()]
    if unknown:
        raise ValueError(f"choices must name parameters of TwoStepHasher, got {', '.join(unknown)}")
    X = as_rows(X)
    split = _Split(X if sp.issparse(X) or is_tensor(X) else np.asarray(X), y, held_out, seed)
    deadline = time.monotonic() + seconds
    trials: list[Trial] = []
    kept: dict[str, Any] = {}
    stopped = False

    def run(changes: dict[str, Any]) -> None:
        started = time.monotonic()
        left = max(deadline - started, 0.0) or None if trials else None
        score = split.score(clone(base).set_params(**{"time_limit": left, **changes}))
        trials.append(Trial(changes, score, time.monotonic() - started))
        if progress is not None:
            progress(TuningProgress("tuning", len(trials), None, trials[-1]))

    run({})
    for name, values in wanted.items():
        for value in values:
            stopped = time.monotonic() + trials[-1].seconds > deadline
            if stopped:
                break
            run({**kept, name: value})
        if stopped:
            break
        kept = max(trials, key=lambda trial: trial.score).changes
    best = max(trials, key=lambda trial: trial.score)
    hasher = clone(base).set_params(**best.changes).fit(X, y)
    return Tuned(hasher, tuple(trials), split.metric, stopped)


def _default_choices(y: Any) -> Choices:
    """Alternatives to the defaults; those that mattered most in the ablations come first."""
    functions = (RBFSVM(C=1.0), RBFSVM(), LinearSVM())
    if y is not None:
        of_labels = (targets.LabelsAndNeighbors(labels_weight=0.9),) if np.ndim(y) == 1 else ()
        return {"hash_function": functions, "target": of_labels}
    return {
        "target": (targets.Neighbors(metric="euclidean"), targets.Distance(), targets.ThresholdedDistance(0.01)),
        "hash_function": functions,
        "solver": ("sweeps",),
    }


class _Split:
    """Samples to learn from, held-out queries, and the score of a hasher on them."""

    def __init__(self, X: Any, y: Any, held_out: float, seed: int) -> None:
        n = X.shape[0]
        labels = None if y is None else np.asarray(y)
        if labels is not None and len(labels) != n:
            raise ValueError(f"X and y must have as many rows, got {n} and {len(labels)}")
        count = min(MOST_HELD_OUT, round(held_out * n))
        if count < FEWEST_HELD_OUT or n - count <= TRUE_NEIGHBORS:
            raise ValueError(
                f"held_out={held_out} of {n} samples are too few to judge by; hold out {FEWEST_HELD_OUT} or more"
            )
        order = np.random.default_rng(seed).permutation(n)
        asked, rest = np.sort(order[:count]), np.sort(order[count:])
        self.learned, self.queries = X[rest], X[asked]
        self.learned_labels = self.query_labels = None
        if labels is None:
            self.metric = "recall of float neighbours"
            search = NearestNeighbors(n_neighbors=TRUE_NEIGHBORS, algorithm="brute").fit(self.learned)
            self.neighbors = search.kneighbors(self.queries, return_distance=False).astype(np.int64)
        else:
            self.metric = "mean average precision"
            self.learned_labels, self.query_labels = labels[rest], labels[asked]

    def score(self, hasher: TwoStepHasher) -> float:
        hasher.fit(self.learned, self.learned_labels)
        queries, database = hasher.encode(self.queries), hasher.encode(self.learned)
        if self.query_labels is None:
            return metrics.neighbor_recall(queries, database, self.neighbors, k=TRUE_NEIGHBORS)
        return float(metrics.mean_average_precision(queries, database, self.query_labels, self.learned_labels))
