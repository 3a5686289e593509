"""``make bench-bqp-quality``: final value against the SDP bound, every solver on six instances.

Then every file of ``$HASHLEARN_DATA/bqp`` against its ``reference.csv``: the bound of sdr against the
published one and on which side of it, and the objectives in the file's own sense against the best known.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from typing import Any

from benchmarks.bqp.instances import file_problem, store
from benchmarks.bqp.mnist import data_file
from benchmarks.bqp.report import Report, progress
from benchmarks.bqp.task import Outcome, Task, measure

METHODS = (
    *("literal al", "al", "nopt", "spectral", "graph_cut"),
    *("sdr without polish", "sdr", "local_search"),
)
FILES = ("G1.txt", "G22.txt", "bqp100-1.sparse", "bqp100-2.sparse")
# What an answer must be near to its literal start for "equal": rounding of the value only.
SAME = 1e-9

Instance = tuple[str, dict[str, Any]]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bqp.quality", description=__doc__)
    parser.add_argument("--n", type=int, default=5000, help="samples of MNIST")
    parser.add_argument("--only", choices=["values", "files"], help="only one of the two parts")
    parser.add_argument("--files", nargs="*", help="only these files of the two parts (default: all)")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one solve")
    parser.add_argument("--search-seconds", type=float, default=60.0, help="local_search on a max-cut file")
    options = parser.parse_args(arguments)
    report = Report("quality", vars(options))
    if options.only != "files":
        _values(options, report)
    if options.only != "values":
        _files(options, report)
    report.save()


def _values(options: argparse.Namespace, report: Report) -> None:
    """Every solver on every instance, and whether literal AL moved at all."""
    with tempfile.TemporaryDirectory(prefix="quality") as folder:
        instances = _instances(options, folder)
        table = {label: _solve_all(label, instance, options, report) for label, instance in instances.items()}
    report.say(
        "Final value xᵀAx, and in brackets its percentage above the SDP bound; for files also the objective "
        "in the file's own sense."
    )
    rows = []
    for label, instance in instances.items():
        bound = _bound(table[label])
        cells = [_value_cell(table[label][method], bound, instance) for method in METHODS]
        rows.append([label, f"{bound:.8g}" if bound is not None else "–", *cells])
    # Solvers as rows: eight columns of values would not fit a page.
    labels = ["SDP bound", *METHODS]
    report.table(
        ["solver", *(row[0] for row in rows)],
        [[label, *(row[i + 1] for row in rows)] for i, label in enumerate(labels)],
    )
    report.say("Literal AL against its own start, the sequentially binarized spectral vector (eqs. 19 to 22):")
    report.table(
        ["instance", "start", "literal al", "equal"],
        [_literal_row(label, outcomes) for label, outcomes in table.items()],
    )


def _instances(options: argparse.Namespace, folder: str) -> dict[str, Instance]:
    instances: dict[str, Instance] = {}
    for setting in ("supervised", "unsupervised"):
        path = f"{folder}/{setting}.npz"
        store(path, "mnist", {"n": options.n, "supervised": setting == "supervised"})
        instances[f"MNIST {setting}, n = {options.n}"] = ("stored", {"path": path})
    wanted = FILES if options.files is None else [name for name in FILES if name in options.files]
    return instances | {name: ("file", {"name": name}) for name in wanted}


def _solve_all(label: str, instance: Instance, options: argparse.Namespace, report: Report) -> dict[str, Outcome]:
    outcomes = {}
    for method in (*METHODS, "sequential spectral"):
        outcomes[method] = _solve(method, instance, options.limit, report)
        progress(f"{label} {method}: {_said(outcomes[method])}")
    return outcomes


def _solve(method: str, instance: Instance, limit: float, report: Report, time_limit: float | None = None) -> Outcome:
    family, arguments = instance
    outcome = measure(Task(family, arguments, method, limit, time_limit=time_limit))
    report.add(outcome.to_json())
    return outcome


def _bound(outcomes: dict[str, Outcome]) -> float | None:
    proven = [o.result["bound"] for m, o in outcomes.items() if m.startswith("sdr") and o.ok]
    return max(proven, default=None)


def _value_cell(outcome: Outcome, bound: float | None, instance: Instance) -> str:
    if not outcome.ok:
        return outcome.status
    value = outcome.result["x_value"]
    family, arguments = instance
    own = f"; {file_problem(arguments['name']).objective(value):.6g}" if family == "file" else ""
    above = f" ({100.0 * (value - bound) / abs(bound):.3f} %{own})" if bound is not None else own
    return f"{value:.8g}{above}"


def _literal_row(label: str, outcomes: dict[str, Outcome]) -> list[str]:
    start, literal = outcomes["sequential spectral"], outcomes["literal al"]
    if not (start.ok and literal.ok):
        return [label, _said(start), _said(literal), "–"]
    a, b = start.result["x_value"], literal.result["x_value"]
    return [label, f"{a:.10g}", f"{b:.10g}", "yes" if abs(a - b) <= SAME * abs(a) else "NO"]


def _files(options: argparse.Namespace, report: Report) -> None:
    """Bounds and objectives of all files against their references."""
    with data_file("bqp", "reference.csv").open(encoding="utf-8", newline="") as file:
        references = [row for row in csv.DictReader(file) if options.files is None or row["file"] in options.files]
    graphs, qubos = [], []
    for reference in references:
        (graphs if reference["format"] == "max-cut" else qubos).append(_file_row(reference, options, report))
    report.say(
        "Max-cut files. The bound is an upper bound on the cut; 'right side': not below the published SDP "
        "value beyond its last printed digit."
    )
    search = f"local_search, {options.search_seconds:g} s"
    report.table(["file", "sdr bound", "published", "relative", "right side", "sdr", "al", search], graphs)
    report.say("QUBO files. The bound is a lower bound on the energy; 'valid': not above the best known energy.")
    report.table(["file", "sdr bound", "best known", "relative", "valid", "sdr", "al", "local_search"], qubos)


def _file_row(reference: dict[str, str], options: argparse.Namespace, report: Report) -> list[str]:
    name, is_cut = reference["file"], reference["format"] == "max-cut"
    problem, best = file_problem(name), float(reference["best_known"])
    instance: Instance = ("file", {"name": name})
    outcomes = {}
    for method in ("sdr", "al", "local_search"):
        seconds = options.search_seconds if is_cut and method == "local_search" else None
        outcomes[method] = _solve(method, instance, options.limit, report, seconds)
        progress(f"{name} {method}: {_said(outcomes[method])}")
    cells = []
    for outcome in outcomes.values():
        if outcome.ok:
            objective = problem.objective(outcome.result["x_value"])
            cells.append(f"{objective:.10g} ({objective / best:.4f}; {outcome.seconds:.3g} s)")
        else:
            cells.append(outcome.status)
    if not outcomes["sdr"].ok:
        return [name, *["–"] * 4, *cells]
    bound = problem.objective_bound(outcomes["sdr"].result["bound"])
    published = reference["sdp_bound"] if is_cut else reference["best_known"]
    relative = (bound - float(published)) / abs(float(published))
    return [name, f"{bound:.8g}", published, f"{relative:+.2e}", _side(bound, published, is_cut), *cells]


def _side(bound: float, published: str, is_cut: bool) -> str:
    """A cut's bound may lie below the published one by its rounding only; an energy's must not exceed the
    best known."""
    if is_cut:
        decimals = len(published.partition(".")[2])
        return "yes" if bound >= float(published) - 0.5 * 10.0**-decimals else "NO"
    return "yes" if bound <= float(published) else "NO"


def _said(outcome: Outcome) -> str:
    return f"{outcome.result['x_value']:.8g} in {outcome.seconds:.3g} s" if outcome.ok else outcome.status


if __name__ == "__main__":
    main()
