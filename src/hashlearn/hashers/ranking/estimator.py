"""The estimator that learns codes whose nearest rows are those of the floats."""

from __future__ import annotations

import re
import time
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from hashlearn.core.arrays import IntArray, is_tensor, to_numpy
from hashlearn.core.checks import generator, positive, whole_number
from hashlearn.core.labels import checked_labels, require_classes
from hashlearn.core.names import require_choice
from hashlearn.core.progress import ProgressCallback, tell, watched
from hashlearn.core.threads import one_blas_thread
from hashlearn.hash_functions.distinct_bits import every_bit
from hashlearn.hash_functions.network import NetworkMargins
from hashlearn.hashers.base import BaseHasher
from hashlearn.hashers.ranking.encoder import Network, RankingReport, learn, start_values
from hashlearn.hashers.ranking.sampling import NO_LABEL, Form, Sample, draw_sample, on_device_of
from hashlearn.linalg.principal_axes import principal_axes
from hashlearn.targets.labels import labeled

ENCODERS = ("mlp", "linear")
METRICS = ("cosine", "euclidean")
RECALL_K = 10
TEMPERATURES, NOISES = (0.033, 0.055), (0.1, 0.3)  # without labels, and with them
PASSES, FEWEST_STEPS, MOST_STEPS = 200, 500, {"mlp": 2700, "linear": 2000}
LARGEST_WIDTH = 65_536


@dataclass(eq=False, repr=False)
class RankingHasher(BaseHasher):
    """Codes that keep float neighbors: the nearest rows by code are the nearest rows by float, as far as bits allow.

    An encoder is trained so that the softmax over scores of an asymmetric search (margins of the query, bits of the
    rows) follows the softmax over float similarities. Rows near each anchor compete with random rows. Both kinds of
    search gain: by Hamming distance, and with ``decision_function`` of the query against codes.

    Parameters
    ----------
    n_bits : code length; may exceed the number of features
    encoder : "mlp" (a linear map plus one hidden layer) or "linear" (faster to fit and encode; keeps fewer neighbors)
    metric : of the floats: "cosine" (rows are brought to unit length) or "euclidean"
    label_weight : with labels, how much nearer rows of one class should be, in units of the variance of the rows; rows
        of two classes should be half as much farther. 0 ignores labels
    temperature : small: the nearest few count most; large: also the order farther down the list, as for average
        precision over classes. "auto" is 0.033 without labels and 0.055 with. In units of the variance of the rows
    hidden : hidden units of "mlp"
    n_steps : of training. "auto" is 200 · n_samples / batch_size, at least 500 and at most 2,700 ("linear": 2,000)
    batch_size : rows in a step
    n_neighbors : nearest rows of an anchor that it is compared with
    noise : added to rows in training, as a share of their spread; more helps classes without labels, and few rows.
        "auto" is 0.1 without labels and 0.3 with
    random_state : seed or Generator
    time_limit : seconds for training, after the search for neighbors
    progress : called with a `hashlearn.core.progress.Progress` after each step
    verbose : draw a progress bar with the time left

    One row in twenty, at most 400, is held out of training. If these rows find fewer neighbors than at the start (signs
    of principal components) nothing is changed; `ranking_report_` says so. With fewer than 80 rows the start is used.

    With more than 100,000 rows, a random sample of that many is learned from, with 25,000 anchors among them. Memory is
    O(n · n_neighbors) besides one copy of these rows. X may be a PyTorch tensor; training then runs on its device.

    Attributes
    ----------
    ranking_report_ : recall of the held-out rows, before, after and by step. Print it.
    hash_functions_ : the fitted encoder
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hashlearn import RankingHasher
    >>> X, _ = load_digits(return_X_y=True)
    >>> hasher = RankingHasher(n_bits=32, encoder="linear", n_steps=50, random_state=0).fit(X)
    >>> hasher.encode(X[:2]).shape
    (2, 4)
    """

    _accepts_sparse = False
    _takes_tensors = True
    _learns_from_labels: ClassVar[bool] = True

    n_bits: int = 64
    _: KW_ONLY
    encoder: str = "mlp"
    metric: str = "cosine"
    label_weight: float = 0.18
    temperature: float | str = "auto"
    hidden: int = 1024
    n_steps: int | str = "auto"
    batch_size: int = 512
    n_neighbors: int = 50
    noise: float | str = "auto"
    time_limit: float | None = None
    progress: ProgressCallback | None = None
    verbose: bool = False

    def fit(self, X: Any, y: Any = None, *, queries: Any = None) -> RankingHasher:
        """Learn from rows X; y: classes (n,), −1 for rows without one; queries: examples of what will be searched for.

        Queries may look different from the rows. Half of the anchors are drawn from them, and in every other step they
        can be found too, because the database may later hold rows like them.
        """
        with watched(self.progress, self.verbose) as progress:
            return self._fit(X, y, queries, progress)

    def _fit(self, X: Any, y: Any, queries: Any, progress: ProgressCallback | None) -> RankingHasher:
        began = time.perf_counter()
        self._check_parameters()
        X = self._validated(X, reset=True)
        for name in ("hash_functions_", "ranking_report_"):  # so that a fit that is interrupted leaves nothing behind
            self.__dict__.pop(name, None)
        self._check_n_bits(X.shape[0])
        labels = _class_numbers(y, X.shape[0], self.label_weight)
        if queries is not None:
            queries = self._checked_queries(queries, X)
        rng = generator(self.random_state)
        tell(progress, "neighbors", 0, 1)
        sample = draw_sample(X, queries, labels, rng, self.metric, self.n_neighbors, RECALL_K, self.label_weight)
        has_labels = labels is not None
        temperature = TEMPERATURES[has_labels] if self.temperature == "auto" else float(self.temperature)
        report = RankingReport(
            self.encoder,
            n_rows=sample.n_rows,
            n_anchors=len(sample.anchors),
            n_held_out=0 if sample.held_out is None else len(sample.held_out.rows),
            n_steps=self._steps(sample.n_database),
            temperature=temperature,
            neighbor_seconds=time.perf_counter() - began,
        )
        with one_blas_thread():
            values = self._start(sample, rng)
        if sample.held_out is None:
            report.ending = "too few rows to keep some out: the start is used"
        elif sample.form.spread == 0.0:
            report.ending = "all rows are equal: the start is used"
        else:
            network = Network(values, temperature, self.label_weight)
            noise = NOISES[has_labels] if self.noise == "auto" else float(self.noise)
            values = learn(network, sample, report, rng, self.batch_size, noise, self.time_limit, progress)
        self.hash_functions_, self.ranking_report_ = _functions(values, sample.form, report), report
        report.seconds = time.perf_counter() - began
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "hash_functions_")

    def _checked_queries(self, queries: Any, X: Any) -> Any:
        """Queries as rows of the kind of X; errors name them."""
        try:
            queries = self._validated(queries, reset=False)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind("queries cannot be used: " + re.sub(r"\bX\b", "queries", str(error))) from None
        if not queries.shape[0]:
            raise ValueError("queries cannot be used: it has no rows; leave it out, or give at least one")
        if type(queries) is not type(X):
            raise TypeError(f"queries must be of the kind of X, {type(X).__name__}, got {type(queries).__name__}")
        if is_tensor(X) and queries.device != X.device:
            raise ValueError(f"queries must be on the device of X, {X.device}, got {queries.device}")
        return queries

    def _check_parameters(self) -> None:
        require_choice(self.encoder, "encoder", ENCODERS)
        require_choice(self.metric, "metric", METRICS)
        if self.n_steps != "auto":
            whole_number(self.n_steps, "n_steps", least=0)
        for name, least in (("hidden", 1), ("batch_size", 16), ("n_neighbors", 1)):
            whole_number(getattr(self, name), name, least=least, most=LARGEST_WIDTH)
        for name in ("temperature", "noise"):
            if getattr(self, name) != "auto":
                positive(getattr(self, name), name, or_zero=name == "noise")
        positive(self.label_weight, "label_weight", or_zero=True)
        if self.time_limit is not None:
            positive(self.time_limit, "time_limit")

    def _steps(self, n: int) -> int:
        if self.n_steps != "auto":
            return int(self.n_steps)
        return int(np.clip(PASSES * n // self.batch_size, FEWEST_STEPS, MOST_STEPS[self.encoder]))

    def _start(self, sample: Sample, rng: np.random.Generator) -> dict[str, Any]:
        """Signs of principal components; beyond their number, random directions through all of them."""
        rows = to_numpy(sample.rows[: sample.n_database])
        directions = principal_axes(rows, self.n_bits, rng).directions
        if self.n_bits > directions.shape[1]:
            gaussian = rng.standard_normal((self.n_bits, directions.shape[1]))
            directions = directions @ np.linalg.qr(gaussian)[0].T
        spread = float(np.sqrt(np.mean(np.square(rows[:5000] @ directions.astype(np.float32)))))
        values = start_values(directions, spread, self.hidden if self.encoder == "mlp" else 0, rng)
        return {name: on_device_of(sample.rows, value) for name, value in values.items()}


def _class_numbers(y: Any, n: int, label_weight: float) -> IntArray | None:
    """Classes as numbers from 0, −1 for none; None if there is nothing to learn from them."""
    if y is None:
        return None
    y = checked_labels(y, n)
    if y.ndim != 1:
        raise ValueError(f"RankingHasher needs one class for each sample, got y of shape {y.shape}")
    known = labeled(y)
    if not known.any() or label_weight == 0.0:
        return None
    require_classes(y[known])
    numbers = np.full(n, NO_LABEL, np.int64)
    numbers[known] = np.unique(y[known], return_inverse=True)[1]
    return numbers


def _functions(values: dict[str, Any], form: Form, report: RankingReport) -> NetworkMargins:
    """The encoder as a function of rows as they are given: the form of the rows becomes part of weights."""
    p = {name: np.asarray(to_numpy(value), np.float64) for name, value in values.items()}
    d, n_bits = p["W"].shape
    linear, layer = (weights / (form.spread or 1.0) for weights in (p["W"], p.get("V", np.zeros((d, 0)))))
    c, e = p["b"] - form.center @ linear, p.get("e", np.zeros(0)) - form.center @ layer
    description = f"{report.encoder} encoder of a ranking, kept step {report.kept_step} of {report.n_steps}"
    output = p.get("U", np.zeros((0, n_bits)))
    return NetworkMargins(linear, c, layer, e, output, form.unit_rows, form.scale, every_bit(n_bits), description)
