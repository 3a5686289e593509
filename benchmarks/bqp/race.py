"""``make bench-bqp``: one bit of MNIST, our solvers and everyone else's, in one interleaved run.

For each setting, size and repeat every solver has its turn before any has its next, so that drift of the
machine hits all alike. Every turn is a process of its own. A peer that fails, or passes the time or memory
limit, is not tried at larger sizes. Seconds: ours are the whole of `bqp.solve` (merging, relaxation,
certificate, 100 draws, polish) after an untimed first run; of the peers only the relaxation, without what
`Peer.excluded` names.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.bqp.instances import store
from benchmarks.bqp.ours import OURS
from benchmarks.bqp.peers import PEERS, NotInstalled
from benchmarks.bqp.report import Report, mebibytes, progress
from benchmarks.bqp.task import Outcome, Task, measure
from hashlearn import bqp

SIZES = (200, 500, 1000, 2000, 5000)
METHODS = tuple(name for name in bqp.METHODS if name in OURS)
SETTINGS = ("supervised", "unsupervised")
GAP = 1e-6


class Cell(NamedTuple):
    """One row of the table: a solver on an instance."""

    setting: str
    n: int
    solver: str


class Race:
    """The turns, their outcomes, and who has given up where."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.report = Report("race", vars(options))
        self.outcomes: dict[Cell, list[Outcome]] = {}
        self.gave_up: dict[tuple[str, str], tuple[int, str]] = {}

    def run(self) -> None:
        """All turns, then the tables."""
        absent = _absent(self.options.peers)
        for name, reason in absent.items():
            progress(f"{name}: {reason}")
        solvers = [*self.options.methods, *(p for p in self.options.peers if p not in absent)]
        with tempfile.TemporaryDirectory(prefix="race") as folder:
            try:
                for cell in self._turns(solvers):
                    self._turn(cell, Path(folder))
            except KeyboardInterrupt:
                progress("interrupted; the tables hold what was measured until now")
        self._tables(absent)
        self.report.save()

    def _turns(self, solvers: list[str]) -> Iterator[Cell]:
        for n in self.options.sizes:
            for setting in self.options.settings:
                for repeat in range(self.options.repeats):
                    # Start at another place each time, so that no solver always follows the same one.
                    shift = repeat % len(solvers)
                    for solver in solvers[shift:] + solvers[:shift]:
                        cell = Cell(setting, n, solver)
                        if self._wanted(cell):
                            yield cell

    def _wanted(self, cell: Cell) -> bool:
        """Not after giving up, and slow ones not again."""
        if (cell.setting, cell.solver) in self.gave_up:
            return False
        return all(outcome.seconds < self.options.repeat_below for outcome in self.outcomes.get(cell, []))

    def _turn(self, cell: Cell, folder: Path) -> None:
        path = str(folder / f"{cell.setting}-{cell.n}.npz")
        if not Path(path).exists():
            supervised = cell.setting == "supervised"
            store(path, "mnist", {"n": cell.n, "supervised": supervised, "n_bits": self.options.bits})
        outcome = measure(Task("stored", {"path": path}, cell.solver, self.options.limit, tol=GAP))
        self.report.add({**cell._asdict(), **outcome.to_json()})
        if outcome.ok:
            self.outcomes.setdefault(cell, []).append(outcome)
            progress(f"{cell.setting} n={cell.n} {cell.solver}: {outcome.seconds:.3f} s")
        else:
            self.gave_up[cell.setting, cell.solver] = (cell.n, outcome.status)
            progress(f"{cell.setting} n={cell.n} {cell.solver}: {outcome.status}")

    def _tables(self, absent: dict[str, str]) -> None:
        report = self.report
        report.say(f"First bit of MNIST after the PCA start, L = {self.options.bits}, relative gap {GAP:g}.")
        report.table(
            ["setting", "n", "solver", "median s", "min s", "gap", "tr(AX)", "x value", "peak MiB", "× sdr"],
            [self._row(cell) for cell in sorted(self.outcomes, key=self._order)],
        )
        report.say(
            "gap: certified, (tr(AX) − bound)/|bound|; in brackets, for those of ours that do not relax, "
            "(x value − bound)/|bound| with the bound of sdr."
        )
        report.say("Times as fast as the others `sdr` is, at each n (the others' best median over ours):")
        report.table(["setting", "n", *KINDS], list(self._ratios()))
        report.say("Where each gave up:")
        rows = [[s, solver, n, why] for (s, solver), (n, why) in self.gave_up.items()]
        rows += [["both", name, "–", reason] for name, reason in absent.items()]
        report.table(["setting", "solver", "n", "reason"], rows)
        report.say("What the seconds of the peers leave out:")
        report.table(
            ["solver", "kind", "left out"],
            [[p.name, p.kind, p.excluded] for p in map(PEERS.get, self.options.peers) if p],
        )

    def _row(self, cell: Cell) -> list[Any]:
        done = self.outcomes[cell]
        result = done[0].result
        seconds = [outcome.seconds for outcome in done]
        ours = self._seconds(cell._replace(solver="sdr"))
        return [
            *cell,
            f"{median(seconds):.4g}",
            f"{min(seconds):.4g}",
            self._gap(cell, result),
            f"{result['relaxation_value']:.9g}" if "relaxation_value" in result else "–",
            f"{result['x_value']:.9g}" if "x_value" in result else "–",
            mebibytes(max(outcome.peak_bytes for outcome in done)),
            f"{median(seconds) / ours:.3g}" if ours else "–",
        ]

    def _gap(self, cell: Cell, result: dict[str, Any]) -> str:
        if "relaxation_gap" in result:
            late = "" if result["relaxation_gap"] <= GAP else " (not reached)"
            return f"{result['relaxation_gap']:.1e}{late}"
        reference = self.outcomes.get(cell._replace(solver="sdr"))
        if not reference:
            return "–"
        bound = reference[0].result["bound"]
        return f"({(result['x_value'] - bound) / abs(bound):.2e})"

    def _ratios(self) -> Iterator[list[Any]]:
        for setting in self.options.settings:
            for n in self.options.sizes:
                ours = self._seconds(Cell(setting, n, "sdr"))
                if ours:
                    yield [setting, n, *(self._fastest(setting, n, kind, ours) for kind in KINDS.values())]

    def _fastest(self, setting: str, n: int, kinds: tuple[str, ...], ours: float) -> str:
        peers = [name for name in self.options.peers if PEERS[name].kind in kinds]
        times = {name: s for name in peers if (s := self._seconds(Cell(setting, n, name)))}
        if not times:
            return "none finished"
        name = min(times, key=times.__getitem__)
        return f"{times[name] / ours:.1f} × ({name})"

    def _seconds(self, cell: Cell) -> float | None:
        """Median of those turns that reached the gap."""
        reached = [o.seconds for o in self.outcomes.get(cell, []) if o.result.get("relaxation_gap", 0.0) <= GAP]
        return median(reached) if reached else None

    def _order(self, cell: Cell) -> tuple[Any, ...]:
        names = [*OURS, *PEERS]
        return SETTINGS.index(cell.setting), cell.n, names.index(cell.solver)


KINDS: dict[str, tuple[str, ...]] = {
    "fastest interior point / sdr": ("interior point",),
    "fastest SDP package, first order too / sdr": ("interior point", "first order"),
    "fastest pymanopt / sdr": ("manifold",),
}


def _absent(names: list[str]) -> dict[str, str]:
    absent = {}
    for name in names:
        try:
            PEERS[name].version()
        except NotInstalled as reason:
            absent[name] = str(reason)
    return absent


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bqp.race", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--methods", nargs="+", choices=list(OURS), default=list(METHODS))
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--bits", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--repeat-below", type=float, default=10.0, help="slower ones are measured once (seconds)")
    parser.add_argument("--limit", type=float, default=75.0, help="seconds for one solve")
    Race(parser.parse_args(arguments)).run()


if __name__ == "__main__":
    main()
