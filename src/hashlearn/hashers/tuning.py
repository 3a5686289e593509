"""Choose a configuration of `TwoStepHasher` from scikit-learn's `ParameterGrid` by its `score` on held-out samples."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_consistent_length

from hashlearn.core.arrays import is_tensor
from hashlearn.core.checks import generator, positive, require_share
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.core.rows import as_rows
from hashlearn.hashers.two_step import TwoStepHasher

FEWEST_HELD_OUT, MOST_HELD_OUT = 20, 2000

Grid = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]]
DEFAULTS: dict[str, Sequence[Any]] = {}
OF_HASH_FUNCTIONS: dict[str, Sequence[Any]] = {"hash_function": ("rbf_svm", "linear_svm", "linear_ridge")}
OF_TARGETS: dict[str, Sequence[Any]] = {"target": ("distance", "thresholded_distance")}


@dataclass(frozen=True)
class Trial:
    """One configuration: what differs from the defaults, its score on held-out samples, and its seconds."""

    changes: dict[str, Any]
    score: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Tuned:
    """The result of `tune`: the best configuration, fitted on all samples, and every trial.

    ``stopped`` says whether the time ended the search before the grid was done.
    """

    hasher: TwoStepHasher
    trials: tuple[Trial, ...] = field(repr=False)
    stopped: bool

    @property
    def best(self) -> Trial:
        """The trial with the highest score, the earliest of equals."""
        return max(self.trials, key=lambda trial: trial.score)


def tune(
    X: Any,
    y: Any = None,
    *,
    n_bits: int = 32,
    seconds: float = 300.0,
    held_out: float = 0.2,
    grid: Grid | None = None,
    random_state: Any = None,
    progress: ProgressCallback | None = None,
) -> Tuned:
    """The best `TwoStepHasher` for these samples by its ``score`` on held-out ones.

    With labels the score is mean average precision, without them how well codes keep cosines.

    Parameters
    ----------
    X : (n_samples, n_features)
    y : labels (n_samples,), or None
    n_bits : code length
    seconds : time for trials, after which no further one begins; the final fit on all samples takes extra time
    held_out : share of samples held out, at most 2,000 of them
    grid : as `sklearn.model_selection.ParameterGrid` takes it; None: the defaults, and one change of them at a time
    random_state : seed or Generator
    progress : called with a `hashlearn.core.progress.Progress` after each trial

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> tuned = tune(X[:400], y[:400], n_bits=8, grid={"spread": (True, False)}, random_state=0)
    >>> len(tuned.trials), tuned.hasher.encode(X[:3]).shape
    (2, (3, 1))
    """
    positive(seconds, "seconds")
    require_share(held_out, "held_out")
    rows = as_rows(X)
    rows = rows if sp.issparse(rows) or is_tensor(rows) else np.asarray(rows)
    labels = None if y is None else np.asarray(y)
    check_consistent_length(rows, labels)
    n = rows.shape[0]
    count = min(MOST_HELD_OUT, round(held_out * n))
    if count < FEWEST_HELD_OUT:
        raise ValueError(
            f"held_out={held_out} of {n} samples are too few to judge by; hold out {FEWEST_HELD_OUT} or more"
        )
    seed = int(generator(random_state).integers(2**31))
    order = np.random.default_rng(seed).permutation(n)
    test, train = np.sort(order[:count]), np.sort(order[count:])
    hasher = TwoStepHasher(n_bits, random_state=seed)
    if grid is None:
        grid = [DEFAULTS, OF_HASH_FUNCTIONS, *([OF_TARGETS] if labels is None else [])]
    candidates = list(ParameterGrid(grid))
    deadline = time.monotonic() + seconds
    trials: list[Trial] = []
    for changes in candidates:
        began = time.monotonic()
        if trials and began > deadline:
            break
        fitted = clone(hasher).set_params(**changes).fit(rows[train], None if labels is None else labels[train])
        score = fitted.score(rows[test], None if labels is None else labels[test])
        trials.append(Trial(changes, score, time.monotonic() - began))
        tell(progress, "tuning", len(trials), len(candidates))
    tuned = Tuned(hasher, tuple(trials), len(trials) < len(candidates))
    hasher.set_params(**tuned.best.changes).fit(X, y)
    return tuned
