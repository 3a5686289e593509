"""How often promises of `compress` are broken, how many candidates the test costs, and what the families gain.

``python -m benchmarks.promises validity``   promises broken in 200 draws of queries
``python -m benchmarks.promises untested``   the same if measured depths were promised without a test
``python -m benchmarks.promises tightness``  depth that is promised against the depth known in hindsight, by queries
``python -m benchmarks.promises families``   bytes, depth and seconds of `compress`: all families, and ITQ alone
``python -m benchmarks.promises domain``     a promise made without two domains, verified on queries of both kinds
``python -m benchmarks.promises verdicts``   `compress` for Hamming search: promises, and refusals that are untrue

All but the last three draw queries from pools (`promise_pools`). ``--ranks FOLDER`` keeps the ranks of pools for next
time.
"With": queries are drawn with replacement, as the theory assumes, and the truth is the mean of the whole pool.
"Without": drawn without replacement, and judged by the queries left over. This judge is noisy.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from benchmarks.claims.recording import Table, add_option, record
from benchmarks.promise_pools import (
    TASKS,
    Draw,
    K,
    Pool,
    pool_of,
    rows_of,
    with_replacement,
    without_replacement,
)
from benchmarks.ranking_codes import BANKING, TRAVEL
from hashlearn import compress
from hashlearn.compression import verify
from hashlearn.compression.compress import CANDIDATES
from hashlearn.compression.contenders import Contender, found
from hashlearn.compression.splitting import Ranks
from hashlearn.compression.testing import Claim, bet_on, measured_depth, outcome_of, shown_depth, smallest
from hashlearn.experiments import datasets

RECALLS = (0.8, 0.9, 0.95, 0.99)
TOTALS = (500, 2_000, 10_000)
COLLECTIONS = {  # name: metric
    "clinc150_minilm": "cosine",
    "caltech101_efficientnet_lite0": "cosine",
    "mnist": "euclidean",
    "digits": "cosine",
}
FEWEST_QUERIES, MOST_QUERIES = 650, 2500  # a recall of 0.99 needs about 600


def settings_of(pool: Pool) -> list[tuple[list[int], int]]:
    """What is given to the test: places of contenders, and the largest depth. The first is what `compress` does."""
    everything = list(range(len(pool.codes)))
    return [(everything, CANDIDATES * K), (everything, K), *(([place], 100 * K) for place in everything)]


def validity(options: argparse.Namespace) -> None:
    """Promises that are broken, by data set and recall. "Without" judges the first setting alone, since it is noisy."""
    totals, rows = np.zeros((2, 2), np.int64), []
    print("data set | recall | drawn | settings | as asked, % | broken, % | worst setting, % | broken / promises")
    for name in options.data:
        pool = pool_of(name, options.ranks)
        for recall in options.recalls:
            for total, way, draw, settings in (
                (totals[0], "with", with_replacement, settings_of(pool)),
                (totals[1], "without", without_replacement, settings_of(pool)[:1]),
            ):
                broken, kept = _broken(pool, recall, draw, settings, options)
                shares, n = 100 * broken / options.draws, broken.size * options.draws
                cells = f"{broken.size} | {100 * kept / n:.0f} | {shares.mean():.2f} | {shares.max():.1f}"
                print(f"{name} | {recall} | {way} | {cells} | {broken.sum()} / {n}", flush=True)
                total += broken.sum(), n
                if options.json and way == "with":
                    without_test = f"{_untested(pool, recall, options):.0f}"
                    found_here = f"{broken.sum()}", f"{shares.mean():.2f}", f"{shares.max():.1f}"
                    rows.append([name, recall, *found_here, without_test])
    percent = 100 * totals[:, 0] / totals[:, 1]
    print(f"with replacement: {totals[0, 0]} of {totals[0, 1]} promises broken, {percent[0]:.2f} %")
    n = totals[0, 1] // (len(options.data) * len(options.recalls))
    columns = "data set", "recall", f"broken, of {n:,}", "%", f"worst of {n // options.draws}, %", "untested, %"
    values = {"broken": totals[0, 0], "promises": totals[0, 1], "percent": percent[0]}
    values |= {"broken_left_over": totals[1, 0], "promises_left_over": totals[1, 1], "percent_left_over": percent[1]}
    record(options.json, columns, named_once(rows), values)


def named_once(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The same rows; a first cell that repeats the one above is left empty."""
    above = [None, *(row[0] for row in rows)]
    return [["" if row[0] == name else row[0], *row[1:]] for name, row in zip(above, rows, strict=False)]


def _broken(
    pool: Pool, recall: float, draw: Draw, settings: list[tuple[list[int], int]], options: argparse.Namespace
) -> tuple[Ranks, int]:
    """For each setting how many promises are false, and how many promise the recall that was asked for."""
    rng = np.random.default_rng(round(1000 * recall))
    broken, kept = np.zeros(len(settings), np.int64), 0
    for _ in range(options.draws):
        asked, judges = draw(pool, options.queries, rng)
        drawn = pool.split(asked)
        for at, (places, depth) in enumerate(settings):
            claim = Claim(recall, options.confidence, K, depth)
            outcome = outcome_of([drawn[place] for place in places], claim, pool.n_database)
            truth = found(pool.codes[drawn.index(outcome.accepted)].testing[judges], outcome.depth).mean()
            broken[at] += truth < outcome.promised - 1e-12
            kept += outcome.is_kept(claim)
    return broken, kept


def untested(options: argparse.Namespace) -> None:
    """Promises that would be broken if the depth measured on the queries of a draw were promised, for single codes."""
    print("data set | recall | broken, %")
    for name in options.data:
        pool = pool_of(name, options.ranks)
        for recall in options.recalls:
            print(f"{name} | {recall} | {_untested(pool, recall, options):.0f}", flush=True)


def _untested(pool: Pool, recall: float, options: argparse.Namespace) -> float:
    rng, broken = np.random.default_rng(round(1000 * recall)), []
    for _ in range(options.draws):
        asked, judges = with_replacement(pool, options.queries, rng)
        for code in pool.codes:
            depth = measured_depth(code.testing[asked], recall)
            broken.append(found(code.testing[judges], depth).mean() < recall - 1e-12)
    return 100 * float(np.mean(broken))


def tightness(options: argparse.Namespace) -> None:
    """Depth promised / depth in hindsight, the median over codes and draws, with each test and number of queries."""
    columns = ("data set", "n", "bet, n/5 of the n choose", "bet, n/4 more choose, all n test", "Hoeffding–Bentkus")
    table = Table(*columns, "Hoeffding")
    for name in options.data:
        pool = pool_of(name, options.ranks)
        claim = Claim(options.recall, options.confidence, K, pool.n_database)
        for n in options.totals:
            rng, rows = np.random.default_rng(0), []
            for _ in range(options.draws):
                drawn, more = rng.integers(pool.n_queries, size=n), rng.integers(pool.n_queries, size=n // 4)
                for code, split, larger in zip(pool.codes, pool.split(drawn), pool.drawn(more, drawn), strict=True):
                    depths = [betting(claim, split), betting(claim, larger)]
                    depths += [fixed(claim, larger, test) for test in (hoeffding_bentkus, hoeffding)]
                    rows.append(np.array(depths) / measured_depth(code.testing, claim.recall))
            cells = (f"{ratio:.2f}" if math.isfinite(ratio) else "none" for ratio in np.median(rows, axis=0))
            table.row(name, f"{n:,}", *cells)
    record(options.json, table.columns, named_once(table.rows))


def betting(claim: Claim, contender: Contender) -> float:
    """The depth that our test promises."""
    bet = bet_on(claim, contender, claim.max_depth)
    return shown_depth(claim, contender, claim.max_depth, bet) or math.inf


def fixed(claim: Claim, contender: Contender, test: Callable[[Claim, float, int], bool]) -> float:
    """The depth that another test promises on the same testing queries."""

    def holds(depth: int) -> bool:
        return test(claim, float(found(contender.testing, depth).mean()), len(contender.testing))

    return smallest(holds, claim.k, claim.max_depth) or math.inf


def hoeffding(claim: Claim, mean: float, n: int) -> bool:
    """W. Hoeffding 1963: knows the range of the values and their mean."""
    return mean >= claim.recall + math.sqrt(-math.log1p(-claim.confidence) / (2 * n))


def hoeffding_bentkus(claim: Claim, mean: float, n: int) -> bool:
    """S. Bates et al., Distribution-free, risk-controlling prediction sets, JACM 2021: the better of two bounds."""
    loss, limit = 1.0 - mean, 1.0 - claim.recall
    if loss >= limit:
        return False
    apart = (loss * math.log(loss / limit) if loss else 0.0) + (1 - loss) * math.log((1 - loss) / (1 - limit))
    bentkus = math.e * binom.cdf(math.ceil(n * loss - 1e-9), n, limit)
    return bool(min(math.exp(-n * apart), bentkus) <= 1.0 - claim.confidence)


def families(options: argparse.Namespace) -> None:
    """What the choice among families gains over ITQ alone."""
    print("data set | recall | families | promised | bytes | depth | mode | family | seconds")
    shown = []
    for name in options.data:
        rows = rows_of(name)
        for recall in options.recalls:
            shown.append([f"{recall}" if len(options.data) == 1 else f"{name}, {recall}"])
            for tried in (None, ["itq"]):
                began = time.perf_counter()
                plan = compress(rows.database, queries=rows.testing, recall=recall, metric=rows.metric, families=tried)
                spent, what = time.perf_counter() - began, "all" if tried is None else ", ".join(tried)
                size = f"{plan.bytes_per_row} | {plan.depth} | {plan.mode} | {plan.certificate.family}"
                print(f"{name} | {recall} | {what} | {plan.recall_lower_bound:.3f} | {size} | {spent:.0f}", flush=True)
                shown[-1].append(f"{plan.bytes_per_row}, {plan.depth}")
    record(options.json, ("recall", "all: bytes, candidates", "ITQ alone: bytes, candidates"), shown)


def domain(options: argparse.Namespace) -> None:
    """Promise recall for queries and rows of eight domains; then rows and queries of banking and travel arrive."""
    data = datasets.load("clinc150_minilm")
    new = np.isin(np.array(data.class_names)[data.y], [*BANKING.split(), *TRAVEL.split()])
    stored = ~data.is_query
    plan = compress(data.X[stored & ~new], recall=options.recall, confidence=options.confidence)
    print(plan)
    for what, rows, asked in (
        ("rows and queries of the same domains", stored & ~new, ~new),
        ("all rows, queries of the same domains", stored, ~new),
        ("all rows, queries of banking and travel", stored, new),
    ):
        print(f"{what}: {verify(plan, data.X[rows], data.X[data.is_query & asked])}", flush=True)


def verdicts(options: argparse.Namespace) -> None:
    """Verdicts of `compress` for Hamming search. No refusal may stand above a row of its table that keeps the claim."""
    table = Table("data set", "recall", "seed", "kept", "promised", "bytes", "depth", "family", "refuted", "seconds")
    totals = {"verdicts": 0, "kept": 0, "refuted": 0, "seconds": 0.0}
    for name in options.collections:
        X = datasets.load(name).X
        for recall in options.recalls:
            for seed in range(options.seeds):
                rows = X[np.sort(np.random.default_rng(seed).permutation(len(X))[: options.max_rows])]
                n_queries = min(max(len(rows) // 8, FEWEST_QUERIES), MOST_QUERIES)
                settings = {"metric": COLLECTIONS[name], "random_state": seed, "n_queries": n_queries}
                began = time.perf_counter()
                plan = compress(rows, recall=recall, mode="hamming", **settings)
                spent, kept = time.perf_counter() - began, plan.certificate.kept
                refuted = not kept and any(
                    row.bound >= recall or (row.depth or math.inf) <= plan.certificate.max_depth
                    for row in plan.frontier
                )
                size = plan.bytes_per_row, plan.depth, plan.certificate.family
                table.row(name, recall, seed, kept, f"{plan.recall_lower_bound:.4f}", *size, refuted, f"{spent:.1f}")
                for key, more in zip(totals, (1, kept, refuted, spent), strict=True):
                    totals[key] += more
    print(", ".join(f"{key} {total:.6g}" for key, total in totals.items()))
    record(options.json, table.columns, table.rows, totals)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {"validity": validity, "untested": untested, "tightness": tightness, "families": families, "domain": domain}
    parts["verdicts"] = verdicts
    parser.add_argument("part", choices=parts)
    parser.add_argument("--data", nargs="+", choices=TASKS, default=None, help="all; families: CLINC150")
    parser.add_argument("--recalls", type=float, nargs="+", default=None)
    parser.add_argument("--recall", type=float, default=0.95, help="for tightness and domain")
    parser.add_argument("--confidence", type=float, default=0.99)
    parser.add_argument("--draws", type=int, default=None, help="200; tightness: 100")
    parser.add_argument("--queries", type=int, default=2000, help="of a draw, for validity; a fifth of them choose")
    parser.add_argument("--totals", type=int, nargs="+", default=TOTALS, help="queries, for tightness")
    parser.add_argument("--collections", nargs="+", choices=COLLECTIONS, default=list(COLLECTIONS), help="for verdicts")
    parser.add_argument("--seeds", type=int, default=5, help="for verdicts")
    parser.add_argument("--max-rows", type=int, default=None, help="rows of a collection, for verdicts; all")
    parser.add_argument("--ranks", type=Path, help="folder that keeps the ranks of the pools")
    add_option(parser)
    options = parser.parse_args()
    options.data = options.data or (["CLINC150"] if options.part == "families" else list(TASKS))
    options.recalls = options.recalls or (RECALLS[1:] if options.part == "families" else RECALLS)
    options.draws = options.draws or (100 if options.part == "tightness" else 200)
    parts[options.part](options)


if __name__ == "__main__":
    main()
