"""``make bench-bqp-growth``: one bit of a Gaussian mixture at n = 10⁴, 10⁵, 10⁶. Does the cost stay linear?

For each setting and solver: seconds, the fitted exponent (least squares of log seconds over log n), peak
memory of the process against the bytes of P, and the solve against one product P.T @ (P @ V) with eight
columns, timed in the same process with BLAS threads as they come. Peak memory includes the interpreter with
all its libraries and building the instance; it is given as it is, and less what the process held before it
built the instance.
"""

from __future__ import annotations

import argparse
from statistics import median
from typing import Any

from benchmarks.bqp.ours import OURS
from benchmarks.bqp.report import Report, fitted_exponent, mebibytes, progress
from benchmarks.bqp.task import Outcome, Task, measure

SIZES = (10_000, 100_000, 1_000_000)
METHODS = ("sdr", "al", "local_search")
SETTINGS = ("supervised", "unsupervised")
GAP = 1e-6
# Enough rows for the code paths of large n: several blocks, no dense shortcut.
WARM_UP_ROWS = 20_000

HEADER = [
    *("setting", "solver", "n", "median s", "min s", "exponent to here", "gap", "x value", "rank of P"),
    *("P MiB", "peak MiB", "peak / P", "peak less start / P", "product ms", "solve / product"),
]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bqp.growth", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--methods", nargs="+", choices=list(OURS), default=list(METHODS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one solve")
    options = parser.parse_args(arguments)
    report = Report("growth", vars(options))
    outcomes = _measure_all(options, report)
    report.say(f"One bit of a 64-D unit-norm mixture of ten classes, L = 16; sdr certified to {GAP:g}.")
    for setting in options.settings:
        rows: list[list[Any]] = []
        for method in options.methods:
            rows += _rows(setting, method, options.sizes, outcomes)
        report.table(HEADER, rows)
    report.save()


def _measure_all(options: argparse.Namespace, report: Report) -> dict[tuple[str, str, int], list[Outcome]]:
    outcomes: dict[tuple[str, str, int], list[Outcome]] = {}
    for n in options.sizes:
        for _ in range(options.repeats):
            for setting in options.settings:
                for method in options.methods:
                    arguments = {"n": n, "supervised": setting == "supervised"}
                    task = Task("mixture", arguments, method, options.limit, tol=GAP, product=True)
                    outcome = measure(_with_warm_up(task))
                    report.add(outcome.to_json())
                    outcomes.setdefault((setting, method, n), []).append(outcome)
                    said = f"{outcome.seconds:.3f} s" if outcome.ok else outcome.status
                    progress(f"{setting} n={n} {method}: {said}")
    return outcomes


def _with_warm_up(task: Task) -> Task:
    return Task(**{**vars(task), "warm_up_rows": WARM_UP_ROWS})


def _rows(
    setting: str, method: str, sizes: list[int], outcomes: dict[tuple[str, str, int], list[Outcome]]
) -> list[list[Any]]:
    """One row for each n; the exponent of all of them stands in the last."""
    times: dict[int, float] = {}
    rows = []
    for n in sizes:
        all_of_them = outcomes[setting, method, n]
        done = [outcome for outcome in all_of_them if outcome.ok]
        if not done:
            rows.append([setting, method, n, all_of_them[0].status, *[""] * (len(HEADER) - 4)])
            continue
        times[n] = median(outcome.seconds for outcome in done)
        exponent = f"{fitted_exponent(list(times), list(times.values())):.2f}" if len(times) > 1 else ""
        rows.append([setting, method, n, *_cells(done, times[n], exponent)])
    return rows


def _cells(done: list[Outcome], seconds: float, exponent: str) -> list[str]:
    result = done[0].result
    factor = result["factor_bytes"]
    peak = max(outcome.peak_bytes for outcome in done)
    own = max(outcome.peak_bytes - outcome.result["baseline_bytes"] for outcome in done)
    # The product is the best of all turns: the strictest yardstick.
    product = min(outcome.result["product_seconds"] for outcome in done)
    return [
        f"{seconds:.4g}",
        f"{min(outcome.seconds for outcome in done):.4g}",
        exponent,
        f"{max(o.result['relaxation_gap'] for o in done):.1e}" if "relaxation_gap" in result else "–",
        f"{result['x_value']:.9g}",
        str(result["factor_rank"]),
        mebibytes(factor),
        mebibytes(peak),
        f"{peak / factor:.2f}",
        f"{own / factor:.2f}",
        f"{1e3 * product:.3g}",
        f"{seconds / product:.1f}",
    ]


if __name__ == "__main__":
    main()
