"""The picture of docs/guide-qubo.md: cut and proven bound of ``method="auto"`` while the seconds pass.

``python -m benchmarks.bqp.progress_picture`` solves a random graph of 2,000 nodes and writes docs/bqp-progress.svg.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.bqp.graphs import random_graph
from benchmarks.pictures import BOTTOM, HEIGHT, RIGHT, WIDTH, Picture
from hashlearn import bqp

N, DEGREE, SECONDS, SEED = 2000, 20, 10.0, 0
FIRST = 0.02  # seconds: the picture begins here, on a logarithmic axis
TICKS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


def drawn(solution: bqp.Solution, total: float) -> Picture:
    """Cut and bound as steps against the logarithm of the seconds."""
    from math import log10

    cuts = [(entry.seconds, (total - entry.value) / 4) for entry in solution.trace]
    bounds = [(entry.seconds, (total - entry.bound) / 4) for entry in solution.trace]
    last, best, proven = max(SECONDS, solution.seconds), cuts[-1][1], bounds[-1][1]
    low, high = 0.94 * best, proven + 0.5 * (proven - best)
    title = "A cut of a random graph and the proven bound on all cuts, while the seconds pass"
    picture = Picture(title, (log10(FIRST), log10(last)), (low, high), "weight of the cut")
    picture.text(f"{N:,} nodes, {int(total // 2):,} edges, two cores", WIDTH - RIGHT, 22, "end")
    for points, kind in ((bounds, "claim"), (cuts, "mark")):
        steps, level = [], None
        for seconds, value in [*points, (last, points[-1][1])]:
            place = log10(max(seconds, FIRST))
            if level is not None and picture.y[0] <= level <= picture.y[1]:
                steps.append((place, level))
            if picture.y[0] <= value <= picture.y[1]:
                steps.append((place, value))
            level = value
        picture.path(steps, kind)
    middle = log10(last) - 0.02
    for text, value, below in ((f"no cut is above {proven:,.0f}", proven, -8), (f"a cut of {best:,.0f}", best, 18)):
        x, y = picture.at(middle, value)
        picture.text(text, x, y + below, "end", "strong")
    for tick in TICKS:
        picture.text(f"{tick:g}", picture.at(log10(tick), 0)[0], HEIGHT - BOTTOM + 18)
    picture.text("seconds", WIDTH - RIGHT, HEIGHT - 10, "end", "strong")
    return picture


def main() -> None:
    """Solve a small graph first, because kernels are compiled on their first use."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/bqp-progress.svg"))
    arguments = parser.parse_args()
    bqp.solve(random_graph(300, DEGREE, 1), random_state=0, time_limit=1.0)
    W = random_graph(N, DEGREE, SEED)
    solution = bqp.solve(W, random_state=0, time_limit=SECONDS)
    print(solution)
    drawn(solution, float(W.sum())).write(arguments.output)


if __name__ == "__main__":
    main()
