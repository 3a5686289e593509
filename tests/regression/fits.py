"""A table of fits whose codes are recorded, so that a change of structure can prove that no code changed.

``python -m tests.regression.fits --record`` rewrites the record. ``--add`` records the fits that are not on it yet, and
keeps the rest, on the machine that made the record. ``--table`` prints the name of every fit and a short digest of its
codes. Only the public interface is used, so that moved modules do not matter.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from hashlearn import TwoStepHasher, bqp, distributed
from hashlearn.bits import pack_signs
from hashlearn.hash_functions import RBFSVM, KernelRidge, LinearRidge
from hashlearn.hashers import HASHERS
from tests.regression import record
from tests.regression.data import PROBLEMS, ROWS, TARGETS, given_codes
from tests.regression.record import Result

# The only place that says what a solver is called today. If a name changes its meaning, edit the right-hand side.
# The keys stay, because recorded names contain them. The first record was made when "al" and "local_search" stood for
# several procedures, chosen by size: `_by_size` names the one that ran then.
SOLVERS: dict[str, Any] = {
    "sdr as in inference": "quick_sdr",
    "al as in inference": "al",
    "local_search as in inference": "local_search",
    "spectral as in inference": "spectral",
    "nopt as in inference": "nopt",
    "graph_cut as in inference": "graph_cut",
    "exact as in inference": "exact",
    "sdr over blocks": "auto",
    "al over blocks": "al",
    "local_search over blocks": "local_search",
    "spectral over blocks": "spectral",
    "sdr of bqp": "sdr",
    "al of bqp": "al",
    "local_search of bqp": "local_search",
    "spectral of bqp": "spectral",
    "nopt of bqp": "nopt",
    "graph_cut of bqp": "graph_cut",
    "exact of bqp": "exact",
    "auto": "auto",
    "sampled_sdr": "sampled_sdr",
    "SDR object": bqp.SemidefiniteRelaxation(),
    "SDR object, no polish": bqp.SemidefiniteRelaxation(polish=0, n_draws=10),
    "SDR object, loose": bqp.SemidefiniteRelaxation(tol=1e-1, n_draws=10),
    "SDR object, loose, no proof": bqp.SemidefiniteRelaxation(tol=1e-1, n_draws=10, certify=False),
    "SDR object, Lanczos proof": bqp.SemidefiniteRelaxation(tol=1e-2, proof_limit=0),
    "AL object": bqp.AugmentedLagrangian(),
    "AL object, 3 iterations": bqp.AugmentedLagrangian(max_iter=3),
    "local search object, short": bqp.LocalSearch(n_starts=2, max_iter=2000),
    "local search object, few sweeps": bqp.LocalSearch(n_starts=2, max_iter=10),
    "spectral object": bqp.Spectral(),
    "spectral object, sequential": bqp.Spectral(binarization="sequential"),
    "nopt object": bqp.NonlinearOptimization(),
    "graph cut object": bqp.GraphCut(),
}
IN_INFERENCE = [key for key in SOLVERS if key.endswith("as in inference") and not key.startswith("exact")]
OF_BQP = [key for key in SOLVERS if key.endswith("of bqp") and not key.startswith(("exact", "local_search"))]

# The defaults when the first record was made. "auto" was a relaxation, which `_by_size` names.
OLD_DEFAULTS: dict[str, dict[str, Any]] = {
    "two_step": {"solver": "sdr as in inference", "hash_function": "kernel_ridge"},
    "paper": {"solver": "sdr as in inference"},
    "blocks": {"hash_function": "linear_ridge"},
    "dask": {"hash_function": "linear_ridge"},
}
# Targets that are no factor of low rank.
NOT_LOW_RANK = ("thresholded_distance", "thresholded distance, 10 %", "dense similarity", "pairs")
# What blocks of rows called their hash functions when the first record was made.
OLD_HASH_FUNCTIONS = {"linear": LinearRidge(), "nystroem": KernelRidge(max_gram_rows=1, n_landmarks=1000)}
# Hash functions that are no plain name.
HASH_FUNCTIONS: dict[str, Any] = {
    "kernel ridge on landmarks": KernelRidge(max_gram_rows=1, n_landmarks=60),
    "linear ridge, alpha 10": LinearRidge(alpha=10.0),
    "rbf_svm, C 10": RBFSVM(C=10.0),
    "decision tree of scikit-learn": DecisionTreeClassifier(max_depth=5, random_state=0),
}


@dataclass(frozen=True)
class Fit:
    """One fit: what it is called, how it is done, on which rows (or problem), and with which settings."""

    name: str
    way: str  # "two_step", another name of HASHERS, "paper", "blocks", "dask" or "bqp"
    rows: str  # key of ROWS, or of PROBLEMS
    settings: dict[str, Any] = field(default_factory=dict)
    labels: bool = False

    @property
    def needs(self) -> list[str]:
        """Optional packages, by the name they are imported by."""
        packages = ["torch"] if self.rows.startswith("tensor") else []
        return packages + (["dask", "distributed"] if self.way == "dask" else [])


def codes_of(fit: Fit, client: Any = None) -> Result:
    """Packed codes of the training and held-out rows, and the objective; for ``bqp`` packed signs, value and bound.

    ``client`` is the Dask client of a fit on Dask.
    """
    with _one_torch_thread() if "torch" in fit.needs else nullcontext():
        return _solved(fit) if fit.way == "bqp" else _fitted(fit, client)


@contextmanager
def _one_torch_thread() -> Iterator[None]:
    """Hold PyTorch to one thread: on busy cores its threads wait for each other for most of the time."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _by_size(fit: Fit, solver: str, rows: Any) -> Any:
    """The preset or solver that a name stood for by target and size of the problem; None for the method itself."""
    n = rows.X.shape[0]
    if solver == "sdr as in inference":
        target = fit.settings.get("target", "paper" if fit.way == "paper" else "auto")
        is_sparse = target.startswith("sparse similarity") or fit.rows == "digits with many label sets"
        if target in NOT_LOW_RANK or is_sparse or (target == "paper" and not fit.labels):
            return "coarse_sdr"
        return "sampled_sdr" if fit.rows.startswith("tensor") and n > 10_000 else "quick_sdr"
    in_memory = fit.way == "two_step" and not fit.rows.startswith("tensor")
    by_passes = in_memory and n > 20_000 and fit.settings.get("monotone", True)
    if solver == "al as in inference" and by_passes and not fit.labels:
        return "sampled_al"
    if not solver.startswith("local_search") or solver.endswith("of bqp"):
        return None
    target = fit.settings.get("target", "labels" if fit.labels else "")
    if target in ("labels", "shared_labels") and fit.rows != "digits, 80 classes":
        return None
    if fit.way in ("blocks", "dask"):
        chunks = fit.settings["chunk_rows"]
        smallest = min(chunks) if isinstance(chunks, tuple) else (n % chunks or chunks)
        if smallest >= 4096:
            return "passes"
        n = min(n, 10_000)
    elif by_passes:
        return "passes"
    return bqp.LocalSearch(n_starts=1, max_iter=10 * n) if n <= 2048 else "sweeps"


def _solved(fit: Fit) -> Result:
    solver = SOLVERS[fit.settings["solver"]]
    options = {"random_state": 0, **{key: value for key, value in fit.settings.items() if key != "solver"}}
    A = PROBLEMS[fit.rows]()
    if options.get("x0") == "alternating":
        options["x0"] = np.where(np.arange(A.shape[0] if hasattr(A, "shape") else A.n) % 2, -1, 1)
    solution = bqp.solve(A, solver, **options)
    x = solution.x if isinstance(solution.x, np.ndarray) else solution.x.cpu().numpy()
    codes = {"signs": pack_signs(x[:, None])}
    return Result(1, codes, solution.value, solution.bound, str(solution.status.value))


def _fitted(fit: Fit, client: Any) -> Result:
    rows = ROWS[fit.rows]()
    settings = {"random_state": 0, **OLD_DEFAULTS.get(fit.way, {}), **fit.settings}
    if "solver" in settings:
        settings["solver"] = _by_size(fit, settings["solver"], rows) or SOLVERS[settings["solver"]]
    if "hash_function" in settings:
        settings["hash_function"] = {**OLD_HASH_FUNCTIONS, **HASH_FUNCTIONS}.get(
            settings["hash_function"], settings["hash_function"]
        )
    if settings.get("target") in TARGETS:
        settings["target"] = TARGETS[settings["target"]](rows)
    if settings.get("init") == "given":
        settings["init"] = given_codes(rows.X, settings["n_bits"])
    y = rows.y if fit.labels else None
    X, new = rows.X, rows.new
    if fit.way == "two_step" and fit.labels and X.min() >= 0.0:  # as `TwoStepHasher` did when the record was made
        X, new = (part.sqrt() if hasattr(part, "sqrt") else np.sqrt(part) for part in (X, new))
    if fit.way == "blocks":
        hasher = distributed.fit(X, y, n_workers=0, **settings)
    elif fit.way == "dask":
        hasher = distributed.fit(X, y, client=client, **settings)
    elif fit.way == "paper":
        hasher = TwoStepHasher.paper(**settings).fit(X, y)
    else:
        hasher = HASHERS[fit.way](**settings).fit(X, y)
    codes = {}
    if hasattr(hasher, "training_codes"):
        codes["training"] = hasher.training_codes
    elif hasattr(hasher, "codes_"):
        codes["training"] = pack_signs(np.asarray(hasher.codes_))
    encoded = hasher.encode(new)
    codes["held out"] = encoded if isinstance(encoded, np.ndarray) else encoded.cpu().numpy()
    report = getattr(hasher, "inference_report_", None)
    if report is None:
        return Result(settings["n_bits"], codes)
    bounds = [bit.bound for bit in report.bits[-settings["n_bits"] :]]
    return Result(settings["n_bits"], codes, report.final_objective, float(np.sum(bounds)), _ending(report))


def _ending(report: Any) -> str:
    return f"{len(report.objectives)} sweeps"


def _table() -> Iterator[Fit]:
    yield from _targets_and_solvers()
    yield from _solver_objects()
    yield from _hash_functions()
    yield from _choices()
    yield from _kinds_of_rows()
    yield from _sizes()
    yield from _automatic()
    yield from _tensors()
    yield from _blocks()
    yield from _on_dask()
    yield from _hashers()
    yield from _problems()


def _two_step(name: str, rows: str = "digits", labels: bool = False, **settings: Any) -> Fit:
    chosen = {"n_bits": 8, "n_sweeps": 2, "hash_function": "linear_ridge", **settings}
    return Fit(name, "two_step", rows, chosen, labels)


def _targets_and_solvers() -> Iterator[Fit]:
    targets = [
        ("labels", "digits", True),
        ("shared_labels", "digits with several labels", True),
        ("distance", "digits", False),
        ("thresholded_distance", "digits", False),
        ("neighbors", "digits", False),
        ("labels_and_neighbors", "digits, some unlabeled", True),
        ("dense similarity", "digits", False),
        ("sparse similarity", "digits", False),
        ("sparse similarity with background", "digits", False),
        ("low-rank similarity", "digits", False),
        ("pairs", "digits", False),
    ]
    for target, rows, labels in targets:
        for solver in IN_INFERENCE:
            settings: dict[str, Any] = {"target": target, "solver": solver, "init": "random", "n_bits": 6}
            if solver.startswith("graph_cut"):  # seconds for each bit of a dense problem
                if target not in ("labels", "distance", "thresholded_distance", "pairs"):
                    continue
                settings |= {"n_bits": 3, "n_sweeps": 1}
            if solver.startswith("local_search") and target in ("labels", "shared_labels"):
                settings |= {"n_bits": 3}  # so that few rows are distinct: only then is the default search short
            yield _two_step(f"{target} | {solver}", rows, labels, **settings)
    for target in (
        "distance, not centered",
        "thresholded distance, 10 %",
        "neighbors, euclidean",
        "auto",
        "paper",
    ):
        yield _two_step(f"{target} without labels", target=target)
    for target, rows in [
        ("auto", "digits"),
        ("auto", "digits with several labels"),
        ("paper", "digits"),
        ("labels and neighbors, weight 0.5", "digits, some unlabeled"),
        ("labels and neighbors, weight 0.5", "digits"),
    ]:
        yield _two_step(f"{target} with labels | {rows}", rows, True, target=target)


def _solver_objects() -> Iterator[Fit]:
    objects = [key for key in SOLVERS if "object" in key]
    for solver in objects:
        few = {"solver": solver, "init": "random", "n_bits": 4}
        yield _two_step(f"labels | {solver}", labels=True, **few)
        yield _two_step(f"distance | {solver}", target="distance", **few)
    for solver in ("AL object", "local search object, short"):
        yield _two_step(f"sparse similarity | {solver}", target="sparse similarity", solver=solver)
    for target, labels in (("labels", True), ("distance", False), ("thresholded_distance", False)):
        yield _two_step(f"{target} | exact", "20 digits", labels, target=target, solver="exact as in inference")


def _hash_functions() -> Iterator[Fit]:
    names = ["rbf_svm", "linear_svm", "trees", "kernel_ridge", "linear_ridge", *HASH_FUNCTIONS]
    for name in names:
        yield _two_step(f"hash function {name}", labels=True, hash_function=name, n_bits=4 if name == "trees" else 8)
    for name in ("kernel_ridge", "linear_svm", "kernel ridge on landmarks"):
        yield _two_step(f"hash function {name}, distance", target="distance", hash_function=name)


def _choices() -> Iterator[Fit]:
    for target, labels in (("labels", True), ("distance", False)):
        for init in ("auto", "pca", "itq", "random", "given"):
            yield _two_step(f"{target} | init {init}", labels=labels, target=target, init=init)
        for n_sweeps in (1, 3, 6):
            yield _two_step(f"{target} | {n_sweeps} sweeps", labels=labels, target=target, n_sweeps=n_sweeps)
        for solver in ("sdr as in inference", "al as in inference", "spectral as in inference"):
            yield _two_step(
                f"{target} | not monotone | {solver}", labels=labels, target=target, solver=solver, monotone=False
            )
        for n_bits in (1, 12, 20):
            yield _two_step(f"{target} | {n_bits} bits", labels=labels, target=target, n_bits=n_bits)
        yield _two_step(f"{target} | seed 1", labels=labels, target=target, random_state=1)
    for spread in (False, True):
        for arrange in (False, True):
            yield _two_step(
                f"labels | spread {spread}, arrange {arrange}",
                labels=True,
                target="labels",
                spread=spread,
                arrange=arrange,
            )
    for labels in (False, True):
        for solver in ("sdr as in inference", "al as in inference"):
            settings = {"n_bits": 8, "solver": solver, "n_sweeps": 2}
            yield Fit(f"paper settings, labels {labels} | {solver}", "paper", "digits", settings, labels)


def _kinds_of_rows() -> Iterator[Fit]:
    for rows in (
        "digits in float32",
        "digits as integers",
        "sparse digits",
        "digits with zero rows",
        "digits with duplicate rows",
    ):
        yield _two_step(f"{rows} | labels", rows, True, hash_function="kernel_ridge")
        for target in ("distance", "neighbors", "thresholded_distance"):
            yield _two_step(f"{rows} | {target}", rows, target=target)
    yield _two_step("sparse digits | distance, pca", "sparse digits", target="distance", init="pca")
    for rows in (
        "digits with words as labels",
        "digits, classes of equal size",
        "digits, two classes",
        "digits, 80 classes",
    ):
        yield _two_step(rows, rows, True)
        yield _two_step(f"{rows} | local_search", rows, True, solver="local_search as in inference", n_bits=3)
    for target, labels in (("labels", True), ("distance", False), ("neighbors", False)):
        yield _two_step(f"more bits than features | {target}", "200 x 3", labels, target=target)
    for solver in ("al as in inference", "local_search as in inference"):
        yield _two_step(f"more bits than features | {solver}", "200 x 3", target="distance", solver=solver)
    yield _two_step("more bits than features | pca", "200 x 3", target="distance", init="pca")
    yield _two_step("2100 features | init pca", "80 x 2100", target="distance", init="pca", n_bits=4)
    yield _two_step("2100 features | labels", "80 x 2100", True, n_bits=4)


def _sizes() -> Iterator[Fit]:
    """Fits on both sides of every number of rows at which an algorithm changes."""
    yield _two_step("450 digits | neighbors", "450 digits", target="neighbors")
    yield _two_step("700 digits | many label sets", "digits with many label sets", True, n_bits=4, n_sweeps=1)
    few: dict[str, Any] = {"n_bits": 3, "n_sweeps": 1}
    for solver in ("sdr as in inference", "al as in inference", "local_search as in inference"):
        yield _two_step(f"2200 rows | distance | {solver}", "2200 x 6", target="distance", solver=solver, **few)
        yield _two_step(f"2200 rows | labels | {solver}", "2200 x 6", True, solver=solver, **few)
        if not solver.startswith("al"):
            yield _two_step(f"20500 rows | labels | {solver}", "20500 x 5", True, solver=solver, **few, arrange=False)
    for solver in ("sdr as in inference", "local_search as in inference"):
        yield _two_step(
            f"2200 rows | thresholded_distance | {solver}",
            "2200 x 6",
            target="thresholded_distance",
            solver=solver,
            n_bits=2,
            n_sweeps=1,
        )
    for solver in ("al as in inference", "local_search as in inference"):
        for init in ("auto", "random"):
            yield _two_step(
                f"20500 rows | distance | {solver} | init {init}",
                "20500 x 5",
                target="distance",
                solver=solver,
                init=init,
                **few,
            )
    passes = {"target": "distance", "solver": "local_search as in inference"}
    yield _two_step("20500 rows | 3 sweeps", "20500 x 5", **passes, n_bits=3, n_sweeps=3)
    yield _two_step("20500 rows | not monotone", "20500 x 5", **passes, **few, monotone=False)
    yield _two_step("20500 rows | duplicate rows", "20500 x 5 with duplicate rows", **passes, **few)
    yield _two_step("70000 rows | local_search", "70000 x 3", **passes, **few)
    yield _two_step(
        "20500 rows | local search object",
        "20500 x 5",
        target="distance",
        solver="local search object, few sweeps",
        **few,
    )
    yield _two_step("20500 rows | sdr", "20500 x 5", target="distance", n_bits=2, n_sweeps=1)


def _automatic() -> Iterator[Fit]:
    """What "auto" stands for, by target and size."""
    chosen = {"solver": "auto", "hash_function": "auto"}
    for target, rows, labels in [
        ("labels", "digits", True),
        ("labels", "2200 x 6", True),
        ("distance", "digits", False),
        ("distance", "2200 x 6", False),
        ("neighbors", "2200 x 6", False),
        ("thresholded_distance", "2200 x 6", False),
    ]:
        few = {"n_bits": 8, "n_sweeps": 1, "arrange": False}
        yield _two_step(f"auto | {target} | {rows}", rows, labels, target=target, **chosen, **few)
    for solver in ("auto", "sampled_sdr"):
        name = f"{solver} | distance | 9000 x 6, landmarks"
        yield _two_step(name, "9000 x 6", target="distance", solver=solver, hash_function="auto", n_bits=2, n_sweeps=1)
    for labels in (False, True):
        yield _in_blocks(f"auto, labels {labels}", labels=labels, hash_function="auto")


def _tensors() -> Iterator[Fit]:
    for dtype in ("float32", "float64"):
        small, large = f"tensors, 120 digits, {dtype}", f"tensors, 1200 digits, {dtype}"
        for target, labels in (("labels", True), ("distance", False), ("neighbors", False)):
            for solver in IN_INFERENCE:
                if solver.startswith("graph_cut") or (solver.startswith("nopt") and target != "labels"):
                    continue
                yield _two_step(
                    f"{small} | {target} | {solver}",
                    small,
                    labels,
                    target=target,
                    solver=solver,
                    init="random",
                    n_bits=3,
                )
            if dtype == "float64" and target != "distance":
                continue
            for solver in ("sdr as in inference", "local_search as in inference"):
                yield _two_step(f"{large} | {target} | {solver}", large, labels, target=target, solver=solver, n_bits=3)
        yield _two_step(f"{small} | thresholded_distance", small, target="thresholded_distance")
        yield _two_step(f"{small} | kernel_ridge", small, True, hash_function="kernel_ridge")
        for init in ("pca", "itq", "random", "given") if dtype == "float32" else ("pca",):
            yield _two_step(f"{small} | init {init}", small, target="distance", init=init)
    large = "tensors, 1200 digits, float32"
    yield _two_step(f"{large} | not monotone", large, target="distance", n_bits=3, n_sweeps=1, monotone=False)
    yield _two_step(f"{large} | SDR object", large, target="distance", n_bits=4, solver="SDR object", n_sweeps=1)
    for rows in ("tensors, 1200 digits with zero rows", "tensors, 1200 digits with duplicate rows"):
        yield _two_step(rows, rows, target="distance", n_bits=4)
    for n, solver in ((1, "sdr as in inference"), (2, "sdr as in inference"), (2, "local_search as in inference")):
        yield _two_step(
            f"tensors, 10500 rows | {n} sweeps | {solver}",
            "tensors, 10500 x 6, float32",
            target="distance",
            solver=solver,
            n_bits=3,
            n_sweeps=n,
        )
    yield _two_step("tensors, 10500 rows | labels", "tensors, 10500 x 6, float32", True, n_bits=4, arrange=False)
    yield _two_step("tensors, 2200 rows", "tensors, 2200 x 6, float64", target="distance", n_bits=4)
    yield _two_step(
        "tensors, 20500 rows",
        "tensors, 20500 x 5, float32",
        target="distance",
        solver="local_search as in inference",
        n_bits=2,
        n_sweeps=1,
    )


def _in_blocks(name: str, rows: str = "500 x 6", labels: bool = False, **settings: Any) -> Fit:
    return Fit(f"blocks | {name}", "blocks", rows, {"n_bits": 8, "n_sweeps": 2, "chunk_rows": 150, **settings}, labels)


def _blocks() -> Iterator[Fit]:
    solvers = [key for key in SOLVERS if key.endswith("over blocks")]
    for solver in [*solvers, "SDR object, loose", "AL object, 3 iterations", "local search object, few sweeps"]:
        for chunk_rows in (500, 150, (200, 37, 263)):
            yield _in_blocks(f"distance | {solver} | {chunk_rows}", solver=solver, chunk_rows=chunk_rows)
        yield _in_blocks(f"labels | {solver}", labels=True, solver=solver)
    yield _in_blocks("labels | 64 rows each", labels=True, chunk_rows=64)
    yield _in_blocks("no chunk_rows", chunk_rows=None)
    yield _in_blocks("labels, distance asked for", labels=True, target="distance")
    for solver in ("sdr over blocks", "local_search over blocks"):
        yield _in_blocks(f"certified | {solver}", solver=solver, certify=True)
        yield _in_blocks(f"certified | one block | {solver}", solver=solver, certify=True, chunk_rows=500)
        yield _in_blocks(f"digits certified | {solver}", "450 digits", solver=solver, certify=True)
    for name in ("linear", "linear_ridge", "nystroem", "linear ridge, alpha 10", "kernel ridge on landmarks"):
        for labels in (False, True):
            yield _in_blocks(f"hash function {name}, labels {labels}", labels=labels, hash_function=name)
    for init in ("itq", "pca"):
        yield _in_blocks(f"init {init}", init=init)
    for n_sweeps in (1, 5):
        yield _in_blocks(f"{n_sweeps} sweeps", n_sweeps=n_sweeps)
    for n_components in (2, 64):
        yield _in_blocks(f"{n_components} components", "450 digits", n_components=n_components)
    for labels in (False, True):
        yield _in_blocks(f"more bits than features, labels {labels}", "200 x 3", labels)
        yield _in_blocks(f"seed 1, labels {labels}", labels=labels, random_state=1)
    for rows in (
        "digits in float32",
        "digits as integers",
        "digits with zero rows",
        "digits with duplicate rows",
        "digits with words as labels",
    ):
        yield _in_blocks(rows, rows, rows.endswith("labels"))
    large: dict[str, Any] = {"n_bits": 4, "n_sweeps": 1}
    for chunk_rows in (4500, 3000):
        yield _in_blocks(
            f"9000 rows | {chunk_rows}", "9000 x 6", solver="local_search over blocks", chunk_rows=chunk_rows, **large
        )
    few = {"chunk_rows": 7000, **large}
    for solver in ("sdr over blocks", "al over blocks", "local_search over blocks"):
        yield _in_blocks(f"20500 rows | {solver}", "20500 x 5", solver=solver, **few)
        yield _in_blocks(f"20500 rows, labels | {solver}", "20500 x 5", True, solver=solver, **few)
    yield _in_blocks("20500 rows, certified", "20500 x 5", certify=True, **few)
    yield _in_blocks("20500 rows, landmarks", "20500 x 5", True, hash_function="kernel ridge on landmarks", **few)


def _on_dask() -> Iterator[Fit]:
    for name, labels, settings in [
        ("distance", False, {}),
        ("distance, local_search", False, {"solver": "local_search over blocks"}),
        ("distance, certified", False, {"certify": True}),
        ("labels", True, {}),
        ("labels, landmarks", True, {"hash_function": "kernel ridge on landmarks"}),
    ]:
        chosen = {"n_bits": 8, "n_sweeps": 2, "chunk_rows": 150, **settings}
        yield Fit(f"dask | {name}", "dask", "500 x 6", chosen, labels)


def _hashers() -> Iterator[Fit]:
    quick: dict[str, dict[str, Any]] = {
        "fasthash": {"n_trees": 5, "n_sweeps": 1},
        "ksh": {"n_anchors": 60, "max_iter": 60},
        "bre": {"n_sweeps": 1},
        "sdh": {"n_anchors": 80},
        "binary_autoencoder": {"max_iter": 5},
        "sign_codes": {"threshold": "median"},
    }
    supervised = ("two_step", "tsh", "fasthash", "ksh", "bre", "itq_cca", "sdh")
    unsupervised = ("itq", "binary_autoencoder", "spherical_hashing", "kmeans_hashing", "nmf_hashing", "alm_hashing")
    others = ("lsh", "spectral_hashing", "sign_codes")
    # Hashers by name: one that is new has no codes on record, and can be added when the record is rewritten.
    for name in (*supervised, *unsupervised, *others):
        labels = name in supervised
        for rows in ("digits", "200 x 3" if name in ("lsh", "two_step") else "digits in float32"):
            yield Fit(f"hasher {name} | {rows}", name, rows, {"n_bits": 8, **quick.get(name, {})}, labels)


def _problems() -> Iterator[Fit]:
    small = ("dense 60", "sparse 60", "low rank 60")
    middle = (
        "dense 300",
        "sparse 300",
        "low rank 300",
        "low rank 300, 15 distinct rows",
        "low rank 300, 100 distinct rows",
        "sparse plus low rank 200",
        "tensor low rank 300, float64",
    )
    for problem in (*small, *middle):
        for solver in OF_BQP:
            yield _problem(problem, solver)
        yield _problem(problem, "local search object, short")
        if not problem.startswith("tensor"):
            yield _problem(problem, "AL object", x0="alternating")
    for kind in ("dense 16", "sparse 16", "low rank 16", "sparse plus low rank 16", "tensor low rank 16, float64"):
        for solver in ("exact of bqp", "local_search of bqp", "sdr of bqp"):
            yield _problem(kind, solver)
    yield _problem("low rank 300, 15 distinct rows", "local_search of bqp")
    yield _problem("sparse 60", "local_search of bqp")
    for problem in ("dense 60", "sparse 300", "low rank 300"):
        for solver in ("SDR object, no polish", "SDR object, Lanczos proof", "spectral object, sequential"):
            yield _problem(problem, solver)
        yield _problem(problem, "sdr of bqp", x0="alternating")
        yield _problem(problem, "local search object, short", x0="alternating")
        yield _problem(problem, "al of bqp", max_iter=2)
    yield _problem("low rank 300, rank 250", "sdr of bqp")
    yield _problem("dense 1100", "spectral of bqp")
    for problem in ("low rank 2500", "sparse plus low rank 2500", "sparse 2500", "sparse 4200", "low rank 12000"):
        yield _problem(problem, "local search object, few sweeps")
        yield _problem(problem, "spectral of bqp")
    yield _problem("low rank 2500", "sdr of bqp")
    yield _problem("low rank 2500", "al of bqp")
    yield _problem("sparse 2500", "SDR object, Lanczos proof")
    for problem in (
        "tensor low rank 1500, float32",
        "tensor low rank 1500, float64",
        "tensor low rank 1500, 200 distinct rows",
        "tensor low rank 3000, 1200 distinct rows",
        "tensor low rank 12000, float32",
    ):
        for solver in ("SDR object, loose", "SDR object, loose, no proof", "local search object, few sweeps"):
            yield _problem(problem, solver)
    for dtype in ("float32", "float64"):
        yield _problem(f"tensor low rank 1500, {dtype}", "sdr of bqp")
        yield _problem(f"tensor low rank 1500, {dtype}", "local_search of bqp")


def _problem(problem: str, solver: str, **options: Any) -> Fit:
    told = "".join(f" | {key} {value}" for key, value in options.items())
    return Fit(f"bqp | {problem} | {solver}{told}", "bqp", problem, {"solver": solver, **options})


FITS: dict[str, Fit] = {}
for _fit in _table():
    if _fit.name in FITS:
        raise ValueError(f"two fits are called {_fit.name!r}")
    FITS[_fit.name] = _fit


def missing_packages(fit: Fit) -> list[str]:
    """Optional packages that the fit needs and that are not installed."""
    return [package for package in fit.needs if find_spec(package) is None]


def dask_client() -> Any:
    """A client whose two workers are threads of this process."""
    from distributed import Client

    return Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0")


def results(fits: Iterable[Fit]) -> Iterator[tuple[Fit, Result, float]]:
    """Every fit that can run here, what it gives, and its seconds of processor time."""
    client = None
    for fit in fits:
        if missing_packages(fit):
            continue
        if fit.way == "dask" and client is None:
            client = dask_client()
        began = time.process_time()
        yield fit, codes_of(fit, client), time.process_time() - began
    if client is not None:
        client.close()


def main(arguments: list[str]) -> int:
    """``--record`` rewrites the record, ``--add`` adds to it; ``--table`` prints names, digests and ``--seconds``."""
    wanted = [word for word in arguments if not word.startswith("--")]
    fits = [fit for fit in FITS.values() if all(word in fit.name for word in wanted)]
    if "--record" in arguments:
        incomplete = wanted or [fit.name for fit in fits if missing_packages(fit)]
        if incomplete:
            sys.stderr.write("--record needs every fit, and every optional package\n")
            return 2
        record.write({fit.name: result.recorded() for fit, result, _ in results(fits)})
        return 0
    if "--add" in arguments:
        made_by, entries = record.read()
        new = [fit for fit in fits if fit.name not in entries]
        if made_by != record.fingerprint() or any(map(missing_packages, new)):
            sys.stderr.write("--add needs the machine that made the record, and every optional package\n")
            return 2
        record.write({**entries, **{fit.name: result.recorded() for fit, result, _ in results(new)}})
        return 0
    if "--table" not in arguments:
        sys.stderr.write("usage: python -m tests.regression.fits --record | --add | --table [--seconds] [name part]\n")
        return 2
    for fit, result, seconds in results(fits):
        end = f"\t{seconds:.3f}" if "--seconds" in arguments else ""
        sys.stdout.write(f"{fit.name}\t{result.digest()[:12]}{end}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
