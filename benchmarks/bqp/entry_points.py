"""Random small problems through every entry point, method and file format, against enumeration in the caller's words.

A problem is a list of labels and terms (u, v, w). It is enumerated with integers of any size, by the definition of a
cut, a QUBO energy or an Ising energy. Then every entry point gets it in its own form: networkx, scipy.sparse, edge
lists, arrays, dicts, dimod models, the dimod sampler, and files that are written and read again. An answer is wrong if

- its objective is not that of its assignment,
- its bound cuts off the optimum, under the fixed variables that were given,
- it is called optimal and is not, or breaks a constraint.

    python -m benchmarks.bqp.entry_points --problems 2000
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.bqp.small_problems import SENSES, Claim, Instance, random_instance, violations
from hashlearn import bqp

ENDINGS = {
    "max-cut": (".mc",),
    "qubo": (".sparse", ".coo", ".coo.gz"),
    "ising": (".coo", ".coo.gz"),
}


# ---- entry points: each yields its name and a function that answers ----

Entry = tuple[str, Callable[[dict[str, Any]], Claim]]


def entries(instance: Instance, folder: Path) -> Iterator[Entry]:
    """All entry points that take the problem."""
    yield from {"max-cut": _cut_entries, "qubo": _qubo_entries, "ising": _ising_entries}[instance.sense](instance)
    if instance.offset == 0.0 and instance.maximize == (instance.sense == "max-cut"):
        yield from _file_entries(instance, folder)


def _constraints(instance: Instance, by_label: bool) -> dict[str, Any]:
    if not instance.fixed:
        return {}
    numbers = {label: k for k, label in enumerate(instance.labels)}
    return {"fixed": {label if by_label else numbers[label]: value for label, value in instance.fixed.items()}}


def _claim(instance: Instance, values: Any, objective: float, bound: float, answer: Any) -> Claim:
    by_label = values if isinstance(values, dict) else dict(zip(instance.labels, values.tolist(), strict=True))
    return Claim(by_label, objective, bound, answer.gap, str(answer.status))


def _cut(instance: Instance, graph: Any, by_label: bool, **more: Any) -> Callable[[dict[str, Any]], Claim]:
    def run(options: dict[str, Any]) -> Claim:
        answer = bqp.max_cut(graph(), **more, **_constraints(instance, by_label), **options)
        return _claim(instance, answer.sides, answer.cut, answer.upper_bound, answer)

    return run


def _cut_entries(instance: Instance) -> Iterator[Entry]:
    import networkx

    labels, terms = instance.labels, instance.terms
    kind = networkx.Graph if _is_simple(instance) else networkx.MultiGraph
    graph = kind()
    graph.add_nodes_from(labels)
    graph.add_weighted_edges_from(terms, weight="w")
    yield f"max_cut {kind.__name__}", _cut(instance, lambda: graph, True, weight="w")
    listed = [*terms, *((label, label, 0.0) for label in labels)]  # nodes without edges too
    yield "max_cut edge list", _cut(instance, lambda: iter(listed), True)
    i, j, w = _arrays(instance)
    twice = sp.coo_array((np.append(w, w), (np.append(i, j), np.append(j, i))), shape=(len(labels),) * 2)
    yield "max_cut sparse", _cut(instance, lambda: twice, False)
    if _is_simple(instance):
        yield "max_cut array", _cut(instance, twice.toarray, False)


def _qubo(instance: Instance, Q: Any, by_label: bool, **more: Any) -> Callable[[dict[str, Any]], Claim]:
    def run(options: dict[str, Any]) -> Claim:
        sense = "max" if instance.maximize else "min"
        answer = bqp.qubo(Q, sense=sense, **more, **_constraints(instance, by_label), **options)
        bound = answer.upper_bound if instance.maximize else answer.lower_bound
        return _claim(instance, answer.assignment, answer.energy, bound, answer)

    return run


def _qubo_entries(instance: Instance) -> Iterator[Entry]:
    n, offset = len(instance.labels), instance.offset
    i, j, w = _arrays(instance)
    matrix = sp.coo_array((w, (i, j)), shape=(n, n))
    yield "qubo sparse", _qubo(instance, matrix, False, offset=offset)
    if not _is_simple(instance):
        return
    yield "qubo array", _qubo(instance, matrix.toarray(), False, offset=offset)
    linear = matrix.diagonal()
    off = matrix.toarray() - np.diag(linear)
    yield "qubo array and linear", _qubo(instance, off.T, False, offset=offset, linear=linear)
    if np.array_equal(off / 2.0 * 2.0, off):
        yield "qubo symmetric array", _qubo(instance, (off + off.T) / 2.0, False, offset=offset, linear=linear)
    pairs = {(u, u): 0.0 for u in instance.labels} | {(u, v): w for u, v, w in instance.terms}
    yield "qubo dict", _qubo(instance, pairs, True, offset=offset)
    model = _model(instance, "BINARY")
    yield "qubo BINARY model", _qubo(instance, model, True)
    if not instance.maximize:
        yield "DimodSampler BINARY", _sampled(instance, model)


def _ising_entries(instance: Instance) -> Iterator[Entry]:
    labels, n, offset = instance.labels, len(instance.labels), instance.offset
    i, j, w = _arrays(instance)
    pair = i != j
    h = np.array([sum(w[(i == k) & ~pair]) for k in range(n)])

    def ising(h: Any, J: Any, by_label: bool) -> Callable[[dict[str, Any]], Claim]:
        def run(options: dict[str, Any]) -> Claim:
            answer = bqp.ising(h, J, offset, **_constraints(instance, by_label), **options)
            return _claim(instance, answer.spins, answer.energy, answer.lower_bound, answer)

        return run

    if not _is_simple(instance):
        if not _linear_repeats(instance):
            yield "ising sparse", ising(h, sp.coo_array((w[pair], (i[pair], j[pair])), shape=(n, n)), False)
        return
    J = sp.coo_array((w[pair], (i[pair], j[pair])), shape=(n, n))
    yield "ising sparse", ising(h, J, False)
    yield "ising array", ising(h, J.toarray(), False)
    fields = dict.fromkeys(labels, 0.0) | {u: w for u, v, w in instance.terms if u == v}
    yield "ising dict", ising(fields, {(u, v): w for u, v, w in instance.terms if u != v}, True)
    model = _model(instance, "SPIN")
    yield "qubo SPIN model", _qubo(instance, model, True)
    yield "DimodSampler SPIN", _sampled(instance, model)


def _file_entries(instance: Instance, folder: Path) -> Iterator[Entry]:
    labels = instance.labels
    i, j, w = _arrays(instance)
    is_cut = instance.sense == "max-cut"
    for ending in ENDINGS[instance.sense]:
        problem = bqp.Problem(instance.sense, len(labels), i, j, w, 0.0, is_cut)  # type: ignore[arg-type]

        def run(options: dict[str, Any], problem: bqp.Problem = problem, ending: str = ending) -> Claim:
            path = folder / f"problem{ending}"
            bqp.write_problem(problem, path)
            read = bqp.read_problem(path, problem.sense)
            names = dict(zip(instance.labels, read.index, strict=True))
            constraints = _constraints(instance, True)
            if "fixed" in constraints:
                constraints["fixed"] = {names[label]: value for label, value in instance.fixed.items()}
            answer = bqp.solve_problem(read, **constraints, **options)
            values = dict(zip(instance.labels, read.assignment(answer.solution.x).tolist(), strict=True))
            return _claim(instance, values, answer.objective, answer.bound, answer)

        try:
            bqp.write_problem(problem, folder / f"problem{ending}")
        except ValueError as error:
            if "too small for float64" not in str(error):
                raise
            continue
        yield f"file {ending.removesuffix('.gz')} {instance.sense}", run


def _sampled(instance: Instance, model: Any) -> Callable[[dict[str, Any]], Claim]:
    def run(options: dict[str, Any]) -> Claim:
        options = {**options, "seed": options["random_state"]}
        del options["random_state"]
        samples = bqp.DimodSampler().sample(model, num_reads=2, **_constraints(instance, True), **options)
        best, info = samples.first, samples.info
        values = {label: int(value) for label, value in best.sample.items()}
        bound = -np.inf if info["bound"] is None else info["bound"]
        return Claim(values, float(best.energy), bound, np.inf if info["gap"] is None else info["gap"], info["status"])

    return run


def _model(instance: Instance, vartype: str) -> Any:
    import dimod

    linear = dict.fromkeys(instance.labels, 0.0) | {u: w for u, v, w in instance.terms if u == v}
    quadratic = {(u, v): w for u, v, w in instance.terms if u != v}
    return dimod.BinaryQuadraticModel(linear, quadratic, instance.offset, vartype)


def _arrays(instance: Instance) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    number = {label: k for k, label in enumerate(instance.labels)}
    i, j = (np.array([number[term[side]] for term in instance.terms], dtype=np.int64) for side in (0, 1))
    return i, j, np.array([w for _, _, w in instance.terms], dtype=np.float64)


def _is_simple(instance: Instance) -> bool:
    return len({frozenset(term[:2]) for term in instance.terms}) == len(instance.terms)


def _linear_repeats(instance: Instance) -> bool:
    own = [u for u, v, _ in instance.terms if u == v]
    return len(set(own)) < len(own)


def check(seed: int, folder: Path, counts: Counter[str]) -> list[str]:
    """Run one problem through all entry points, each with another method; return what is wrong."""
    instance = random_instance(seed)
    methods, wrong = list(bqp.METHODS), []
    for k, (name, run) in enumerate(entries(instance, folder)):
        method = methods[(seed // len(SENSES) + k) % len(methods)]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", message=".* parallel edge")
            try:
                found = violations(instance, run({"method": method, "random_state": seed}))
            except Exception as error:  # an error is a violation too, and must not end the run
                found = [f"{type(error).__name__}: {error}"]
        counts[name] += 1
        counts[f"method {method}"] += 1
        wrong += [f"problem {seed} ({instance.weights}), {name}, {method}: {text}" for text in found]
    return wrong


def main(problems: int, seed: int) -> int:
    """Check, print the counts by entry point, return the number of violations."""
    started, counts, wrong = time.perf_counter(), Counter[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        for k in range(seed, seed + problems):
            for line in check(k, Path(folder), counts):
                wrong += 1
                print(line, flush=True)
    for name, count in sorted(counts.items()):
        print(f"{name:28s} {count:6d}")
    solves = sum(count for name, count in counts.items() if not name.startswith("method"))
    print(f"{problems} problems, {solves} answers, {wrong} violations, {time.perf_counter() - started:.0f} s")
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    raise SystemExit(1 if main(arguments.problems, arguments.seed) else 0)
