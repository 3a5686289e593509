"""The paper's method as one estimator: infer codes for the training samples, then learn to predict them."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags, check_consistent_length

from hashlearn import bqp
from hashlearn.core.arrays import is_tensor, tensor_like
from hashlearn.core.checks import generator
from hashlearn.core.progress import ProgressCallback
from hashlearn.hash_functions import as_hash_function
from hashlearn.hashers.arrangement import arranged
from hashlearn.hashers.base import BaseHasher, require_unmasked
from hashlearn.hashers.scaling import scaled, settled_scaling
from hashlearn.inference import infer_codes, start_codes
from hashlearn.targets import Clusters, Labels, as_target
from hashlearn.targets.base import for_bits

log = logging.getLogger(__name__)


class TwoStepHasher(BaseHasher):
    """Two-step hashing (Do et al. 2016): features in, learned binary codes out, with or without labels.

    Step one finds codes Z of the training samples with ZZᵀ ≈ n_bits · Y, bit by bit (Algorithm 1), where Y says which
    samples should be near. Step two learns classifiers that predict each bit from the features.

    Parameters
    ----------
    n_bits : code length L
    target : what the codes preserve: "auto" (labels if y is given, else neighbors), "labels", "shared_labels"
        (multi-label), "neighbors" (of the nearest-neighbour graph), "labels_and_neighbors" (y = −1: no label),
        "clusters" (of the graph, for few bits), "distance", "thresholded_distance", a target object, or your own n × n
        similarity
    solver : how each bit is solved: "auto" (a relaxation whose effort fits the target), a name of `bqp.METHODS` (that
        method with its defaults), a preset (`inference.PRESETS`: "sweeps", "passes", …), or a solver object
    hash_function : how bits are predicted: "kernel_ridge", "rbf_svm" (the paper's), "linear_svm", "logistic", "trees",
        "linear_ridge", an object of `hashlearn.hash_functions`, or any scikit-learn classifier. With labels
        ``KernelRidge(sharpen=4.0)`` finds more within a small radius, and ranks a little worse
    init : codes to begin with: "auto" (ITQ on the target's own factor where it has one, else "pca"), "pca" (the
        paper's), "itq", "random", or an array (n_samples, n_bits) of ±1 or 0/1
    scaling : of the features, before all else: "none", "root" (sgn(x) · √|x|, for pixels, histograms, energies), or
        "auto": roots where y is given and no entry of X is negative
    n_sweeps : passes over all bits, max_iter of Algorithm 1
    monotone : a bit is only replaced by a better one, and inference ends when none is; False is the literal paper
    spread : with labels or clusters, among codes of equal objective (near-equal where classes differ in size) prefer
        codewords that keep far apart (precision within a radius gains much at few bits); False is the literal paper
    arrange : with labels or clusters, give codewords that are near each other to classes that are easily confused,
        judged on the training samples by leave-one-out; False is the literal paper
    random_state : seed or Generator; the same seed gives the same codes for any thread count and batch size
    n_jobs : threads for fitting hash functions; None or -1 for all cores
    time_limit : seconds for inference; bits that are not reached by then stay as they began. Hash functions are learned
        after it, however long that takes
    progress : called with a `hashlearn.core.progress.Progress` between steps

    X may be a PyTorch tensor, float32 or float64. Codes are then inferred on its device (low-rank targets, solver
    "auto", "sdr", "local_search" or "sweeps"; other targets on the host). Hash functions are fitted on the host, and
    what `decision_function`, `transform` and `encode` give for a tensor is a tensor on its device. See docs/gpu.md.

    Attributes
    ----------
    codes_ : int8 ±1 (n_samples, n_bits), the inferred codes of the training samples
    inference_report_ : objective per sweep; value, bound, gap and seconds per bit. Print it.
    hash_functions_ : the fitted predictors
    target_ : the target object that was used
    scaling_ : "none" or "root", what "auto" became
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hashlearn import TwoStepHasher
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = TwoStepHasher(n_bits=16, random_state=0).fit(X[:500], y[:500])
    >>> hasher.transform(X[:2]).shape, hasher.encode(X[:2]).shape
    ((2, 16), (2, 2))
    """

    _takes_tensors = True

    def __init__(
        self,
        n_bits: int = 32,
        *,
        target: Any = "auto",
        solver: Any = "auto",
        hash_function: Any = "kernel_ridge",
        init: Any = "auto",
        n_sweeps: int = 3,
        scaling: str = "auto",
        monotone: bool = True,
        spread: bool = True,
        arrange: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        progress: ProgressCallback | None = None,
    ) -> None:
        self.n_bits = n_bits
        self.target = target
        self.solver = solver
        self.hash_function = hash_function
        self.init = init
        self.n_sweeps = n_sweeps
        self.scaling = scaling
        self.monotone = monotone
        self.spread = spread
        self.arrange = arrange
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.progress = progress

    @staticmethod
    def paper(solver: Any = "sdr", n_bits: int = 32, **parameters: Any) -> TwoStepHasher:
        """The configuration of the paper's experiments: PCA start, RBF-SVM, every bit as its solver leaves it.

        Without labels the target is thresholded distance. ``parameters`` replaces any of these.

        >>> hasher = TwoStepHasher.paper("al", 16)
        >>> hasher.solver, hasher.init, hasher.hash_function, hasher.spread
        ('al', 'pca', 'rbf_svm', False)
        """
        chosen = {
            "target": "paper",
            "init": "pca",
            "hash_function": "rbf_svm",
            "scaling": "none",
            "spread": False,
            "arrange": False,
            "monotone": False,
        }
        return TwoStepHasher(n_bits, solver=solver, **{**chosen, **parameters})

    def fit(self, X: Any, y: Any = None) -> TwoStepHasher:
        """Infer codes and learn hash functions; y: labels of any kind (n,), or 0/1 indicators (n, n_labels)."""
        hash_function = as_hash_function(self.hash_function)
        X = self._validated(X, reset=True, accepts_sparse=hash_function.accepts_sparse)
        labels = None if y is None else _checked_labels(y, X.shape[0])
        self._check_n_bits(X.shape[0])
        if isinstance(self.n_sweeps, bool) or not isinstance(self.n_sweeps, int | np.integer) or self.n_sweeps < 1:
            raise ValueError(f"n_sweeps must be a positive integer, got {self.n_sweeps!r}")
        target = as_target(self.target, labels)
        if target.needs_labels and labels is None:
            raise ValueError(f"target {target.name!r} needs labels: call fit(X, y), or choose target='distance'")
        if target.needs_labels:
            require_classes(labels)
        rng = generator(self.random_state)
        self.scaling_ = settled_scaling(self.scaling, X, labels is not None)
        X = given = scaled(X, self.scaling_)
        target = for_bits(target, self.n_bits)
        wanted = build_target(target, X, labels, rng)
        if is_tensor(X) and wanted.tall.on_host:  # no low rank: inference is NumPy's, and so is its start
            X = X.cpu().numpy()
        codes, self.inference_report_ = infer_codes(
            wanted,
            start_codes(self.init, X, self.n_bits, rng, wanted),
            solver=self.solver,
            n_sweeps=self.n_sweeps,
            monotone=self.monotone,
            spread=self.spread,
            rng=rng,
            time_limit=self.time_limit,
            progress=self.progress,
        )
        self.target_ = target
        self.codes_ = codes.cpu().numpy() if is_tensor(codes) else codes
        X = given.cpu().numpy() if is_tensor(given) else given
        classes = labels if isinstance(target, Labels) else None
        if isinstance(target, Clusters):  # each has its codeword
            classes = np.unique(self.codes_, axis=0, return_inverse=True)[1].ravel()
        if self.arrange and classes is not None and classes.ndim == 1:
            self.codes_ = arranged(X, classes, self.codes_, rng)
        self.hash_functions_ = hash_function.fit(X, self.codes_, rng, n_jobs=self.n_jobs, progress=self.progress)
        return self

    def _margins(self, X: Any) -> NDArray[Any]:
        """Of the fitted hash functions."""
        return self.hash_functions_.decision_function(scaled(X, self.scaling_))

    def _row_functions(self) -> Any:
        own = type(self)._margins is TwoStepHasher._margins
        return self.hash_functions_ if own and self.scaling_ == "none" else None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = as_hash_function(self.hash_function).accepts_sparse
        return tags


def build_target(target: Any, X: Any, labels: np.ndarray | None, rng: np.random.Generator) -> bqp.Operator:
    """The target's operator; for a tensor X its factor is a tensor beside X, if it is low rank."""
    if not is_tensor(X) or getattr(target, "takes_tensors", False):
        return target.build(X, labels, rng)
    wanted = target.build(X.cpu().numpy(), labels, rng)
    return bqp.LowRank(tensor_like(wanted.P, X), wanted.weights) if isinstance(wanted, bqp.LowRank) else wanted


def _checked_labels(y: Any, n_samples: int) -> np.ndarray:
    require_unmasked(y, "y")
    y = y.cpu().numpy() if is_tensor(y) else y
    if hasattr(y, "toarray"):
        y = y.toarray()
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.ravel()
    if labels.ndim not in (1, 2):
        raise ValueError(f"y must be labels (n_samples,) or 0/1 indicators (n_samples, n_labels), got {labels.shape}")
    if labels.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold labels")
    if len(labels) != n_samples:
        check_consistent_length(np.empty(n_samples), labels)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("y contains NaN or infinity; every sample needs a label (leave y out for unlabelled data)")
    if labels.dtype.kind == "O" and any(label is None or label != label for label in labels.ravel()):
        raise ValueError("y contains missing labels (None or NaN); every sample needs a label")
    if labels.ndim == 2 and not np.isin(labels, (0, 1)).all():
        raise ValueError("a two-dimensional y must hold 0/1 indicators, one column a label")
    return labels.astype(str) if labels.dtype.kind == "O" else labels


def require_classes(labels: Any) -> None:
    """Refuse labels from which nothing can be learned: those of one class, and those that no two rows share."""
    n = len(labels)
    if labels.ndim == 2:
        if labels.sum(axis=0, dtype=np.int64).max(initial=0) < 2:
            raise ValueError(
                "y has no label that two rows share, so no rows are similar; codes from labels need such labels. "
                "Leave y out to learn without labels"
            )
        return
    n_classes = len(np.unique(labels))
    if n_classes < 2:
        raise ValueError(
            "y holds only one class, so nothing is dissimilar and one code would do; "
            "give labels of two classes or more, or leave y out to learn without labels"
        )
    if n_classes == n:
        raise ValueError(
            f"y has {n} different labels for {n} rows, so no two rows share a class; codes from labels need classes "
            "with at least two rows. Leave y out to learn without labels"
        )
    if 2 * n_classes > n:
        log.warning("y has %d classes for %d rows: are these class labels? Many classes make a fit slow", n_classes, n)
