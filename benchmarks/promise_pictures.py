"""The pictures of docs/promises.md and docs/compress.md.

``python -m benchmarks.promise_pictures --ranks results/promise-ranks`` draws from the pools of `promise_pools`:
docs/promise-depths.svg, recall against depth for one code with the depths that several tests promise, and
docs/promise-draws.svg, true against promised recall. ``--plan model.hashlearn`` draws the frontier of a model of
``hashlearn compress`` instead: docs/compress-sizes.svg, the candidates that each code needs.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from benchmarks.markup import element
from benchmarks.pictures import BOTTOM, HEIGHT, LEFT, RIGHT, WIDTH, Picture
from benchmarks.promise_pools import TASKS, K, Pool, pool_of, with_replacement
from benchmarks.promises import betting, fixed, hoeffding, hoeffding_bentkus
from hashlearn.compression import Compression
from hashlearn.compression.compress import CANDIDATES
from hashlearn.compression.contenders import found
from hashlearn.compression.testing import Claim, measured_depth, outcome_of

RECALL, CONFIDENCE, QUERIES = 0.95, 0.99, 2000
DRAWS_OF_DEPTHS, DRAWS = 100, 200
CODE = ("itq", "hamming", 8)
MOST_BYTES = 16  # in the picture of the frontier


def depths(pool: Pool) -> Picture:
    """Recall of the pool against depth, with the depth in hindsight and the median depth that each test promises."""
    place = next(i for i, c in enumerate(pool.codes) if (c.family, c.mode, c.bytes_per_row) == CODE)
    ranks = pool.codes[place].testing
    claim, rng = Claim(RECALL, CONFIDENCE, K, pool.n_database), np.random.default_rng(0)
    rows = []
    for _ in range(DRAWS_OF_DEPTHS):
        asked, _ = with_replacement(pool, QUERIES, rng)
        everything = pool.drawn(asked, asked)[place]
        others = (fixed(claim, everything, test) for test in (hoeffding_bentkus, hoeffding))
        rows.append([betting(claim, pool.split(asked)[place]), *others])
    marks = {"hindsight": measured_depth(ranks, RECALL)}
    marks |= dict(zip(("promised", "Hoeffding–Bentkus", "Hoeffding"), np.median(rows, axis=0), strict=True))
    deepest = 1.15 * max(marks.values())
    title = "Recall against depth of one code, and the depths that several tests promise for a recall of 0.95"
    picture = Picture(title, (0, deepest), (0.8, 1.0), "recall@10")
    picture.text("CLINC150, ITQ of 8 bytes, Hamming search, 2,000 queries", WIDTH - RIGHT, 22, "end")
    grid = np.arange(K, int(deepest))
    values = [(float(depth), float(found(ranks, depth).mean())) for depth in grid]
    picture.path([point for point in values if point[1] >= picture.y[0]], "curve")
    picture.horizontal(RECALL, "claim")
    picture.text("asked for: 0.95", LEFT + 4, picture.at(0, RECALL)[1] - 6, "start", "red")
    for depth in marks.values():
        picture.path([(depth, picture.y[0]), (depth, float(found(ranks, int(depth)).mean()))], "mark")
    for name, depth in marks.items():
        x, y = picture.at(depth, picture.y[0])
        left = name in ("hindsight", "Hoeffding")  # of its mark, so that names do not meet
        up = 56 if name == "Hoeffding–Bentkus" else 26
        picture.text(f"{name} {depth:,.0f}", x - 6 if left else x + 6, y - up, "end" if left else "start", "strong")
    for tick in np.arange(0, deepest, 100):
        picture.text(f"{tick:,.0f}", picture.at(tick, 0)[0], HEIGHT - BOTTOM + 18)
    picture.text("candidates that are rescored", WIDTH - RIGHT, HEIGHT - 10, "end", "strong")
    return picture


def draws(pools: list[Pool]) -> Picture:
    """True less promised recall of what `compress` promises, a dot for each draw, a group for each data set."""
    groups, gap = [], DRAWS // 8
    for pool in pools:
        rng, claim = np.random.default_rng(0), Claim(RECALL, CONFIDENCE, K, CANDIDATES * K)
        above = []
        for _ in range(DRAWS):
            asked, _ = with_replacement(pool, QUERIES, rng)
            drawn = pool.split(asked)
            outcome = outcome_of(drawn, claim, pool.n_database)
            truth = float(found(pool.codes[drawn.index(outcome.accepted)].testing, outcome.depth).mean())
            above.append(100 * (truth - outcome.promised))
        groups.append(above)
    title = "True recall less promised recall of 200 promises for each of four data sets, one dot each"
    limits = min(-0.5, *map(min, groups)), max(map(max, groups)) + 0.2
    picture = Picture(title, (-gap, len(pools) * (DRAWS + gap)), limits, "true recall − promised recall, points")
    for at, (pool, above) in enumerate(zip(pools, groups, strict=True)):
        first = at * (DRAWS + gap)
        picture.path([(first + i, points) for i, points in enumerate(above)], "dots", dots=True)
        x, broken = picture.at(first + DRAWS / 2, 0)[0], sum(points < -1e-9 for points in above)
        picture.text(pool.name, x, HEIGHT - BOTTOM + 20, kind="strong")
        picture.text(f"{broken} of {DRAWS} broken", x, HEIGHT - BOTTOM + 38)
    picture.horizontal(0.0, "claim")
    return picture


def sizes(plan: Compression) -> Picture:
    """The candidates that the frontier promises to be enough, by bytes, a line for each family."""
    promise = plan.certificate
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in plan.frontier:
        if row.mode == promise.mode and row.depth is not None and row.bytes_per_row <= MOST_BYTES:
            lines.setdefault(row.family, []).append((row.bytes_per_row, row.depth))
    shown = sorted({size for line in lines.values() for size, _ in line})
    deepest = max(depth for line in lines.values() for _, depth in line)
    title = f"Candidates to rescore for a recall of {promise.recall:g} against bytes, {promise.mode} search"
    picture = Picture(title, (shown[0] - 0.4, shown[-1] + 1.4), (0.0, deepest), f"candidates for {promise.recall:.0%}")
    picture.horizontal(promise.max_depth, "claim")
    picture.text("allowed", WIDTH - RIGHT, picture.at(0, promise.max_depth)[1] - 6, "end", "red")
    for family, line in lines.items():
        chosen = family == promise.family
        picture.path(line, "mark" if chosen else "curve")
        picture.path(line, "dots", dots=True)
        x, y = picture.at(*line[-1])
        picture.text(family, x + 10, y + (22 if chosen else 4), "end" if chosen else "start", "strong")
    for size in shown:
        picture.text(f"{size:g}", picture.at(size, 0)[0], HEIGHT - BOTTOM + 18)
    picture.text("bytes a row", WIDTH - RIGHT, HEIGHT - 10, "end", "strong")
    x, y = picture.at(plan.bytes_per_row, dict(lines[promise.family])[plan.bytes_per_row])
    picture.parts.append(element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=9, class_="ring"))
    picture.text("chosen", x + 14, y + 4, "start", "strong")
    return picture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=Path, help="folder that keeps the ranks of the pools")
    parser.add_argument("--folder", type=Path, default=Path("docs"))
    parser.add_argument("--plan", type=Path, help="model of hashlearn compress")
    options = parser.parse_args()
    if options.plan is not None:
        sizes(Compression.load(options.plan)).write(options.folder / "compress-sizes.svg")
        return
    pools = [pool_of(name, options.ranks) for name in TASKS]
    depths(pools[0]).write(options.folder / "promise-depths.svg")
    draws(pools).write(options.folder / "promise-draws.svg")


if __name__ == "__main__":
    main()
