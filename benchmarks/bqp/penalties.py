"""Large penalties beside small terms, through every entry point: is "optimal" true, and is every bound on its side?

A third of the terms has a penalty of 1e3 to 1e15, the others are tenths. All answers are compared with enumeration in
fractions of the given floats. "Untrue": called optimal, and the true gap is above 1e-9.

    python -m benchmarks.bqp.penalties --problems 3000
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
import warnings
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np

from benchmarks.bqp.entry_points import entries
from benchmarks.bqp.small_problems import LABELS, SENSES, Claim, Instance

PENALTIES = (1e3, 1e5, 1e7, 1e9, 1e11, 1e13, 1e15)
METHODS = ("auto", "exact", "branch_and_bound", "local_search", "sdr")
COLUMNS = ("answers", "optimal", "untrue", "not least", "wrong bound", "wrong energy")


def penalized(seed: int) -> Instance:
    """A problem with up to 12 variables whose terms are penalties and tenths."""
    rng = np.random.default_rng(seed)
    sense, penalty = SENSES[seed % 3], PENALTIES[seed // 3 % len(PENALTIES)]
    n = int(rng.integers(2, 13))
    labels = LABELS[int(rng.integers(len(LABELS)))](n)
    pairs = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.6]
    pairs += [(k, k) for k in range(n) if sense != "max-cut" and rng.random() < 0.7]

    def weight() -> float:
        small = float(rng.integers(-30, 31)) / 10.0
        return small if rng.random() < 0.7 else float(rng.choice([-1.0, 1.0, 1.0, 1.0])) * penalty + small

    terms = tuple((labels[i], labels[j], weight()) for i, j in pairs)
    offset = float(rng.choice([0.0, 0.0, 0.1, penalty])) if sense != "max-cut" else 0.0
    return Instance(
        sense, f"{penalty:.0e}", labels, terms, offset, sense == "max-cut" or (sense == "qubo" and seed % 2)
    )


def faults(instance: Instance, claim: Claim) -> list[str]:
    """The columns in which an answer counts."""
    energy, best = instance.objective(claim.assignment), instance.optimum
    bound = Fraction(claim.bound) if np.isfinite(claim.bound) else None
    sign, is_optimal = -1 if instance.maximize else 1, claim.status == "optimal"
    reach = 0 if bound is None else abs(bound) * Fraction(1 + 1e-6) / 10**9  # the bound is rounded outward
    counts = {"answers": True, "optimal": is_optimal} | {
        "untrue": is_optimal and (claim.gap > 1e-9 or bound is None or sign * (energy - bound) > reach),
        "not least": is_optimal and energy != best,
        "wrong bound": bound is not None and sign * bound > sign * best,
        "wrong energy": abs(Fraction(claim.objective) - energy) > abs(energy) / 2**52,
    }
    return [column for column, counted in counts.items() if counted]


def main(problems: int) -> int:
    """Print the counts by penalty and by method; return the number of faults."""
    warnings.simplefilter("ignore")
    started, counts = time.perf_counter(), {}
    with tempfile.TemporaryDirectory() as folder:
        for k in range(problems):
            instance = penalized(k)
            for place, (name, run) in enumerate(entries(instance, Path(folder))):
                method = METHODS[(k // len(SENSES) + place) % len(METHODS)]
                found = faults(instance, run({"method": method, "random_state": k}))
                if set(found) & set(COLUMNS[2:]):
                    print(f"problem {k}, {name}, {method}: {', '.join(found)}", flush=True)
                for row in (f"penalty {instance.weights}", f"method {method}", "all"):
                    counts.setdefault(row, Counter()).update(found)
    print(f"{'':24s}" + "".join(f"{column:>13s}" for column in (*COLUMNS, "share")))
    for row, count in sorted(counts.items()):
        share = 100.0 * count["optimal"] / count["answers"]
        print(f"{row:24s}" + "".join(f"{count[column]:13d}" for column in COLUMNS) + f"{share:12.1f}%")
    print(f"{problems} problems, {time.perf_counter() - started:.0f} s")
    return sum(counts["all"][column] for column in COLUMNS[2:] if column != "not least")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=3000)
    raise SystemExit(min(main(parser.parse_args().problems), 1))
