"""All figures of a page: mAP and precision–recall as in the paper, then what inference reached and what it proved.

The value is xᵀAx of eq. (5) after the step, and the bound a proven lower bound on every value. Only solvers that prove
a bound have a figure of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from hashlearn.experiments.bench.blocks import Record, finite, metric
from hashlearn.experiments.bench.choices import metric_title
from hashlearn.experiments.report.tables import Part
from hashlearn.pages.plots import Axis, Line, Plot, linear_axis, marked_axis
from hashlearn.pages.series_styles import Look

_TENTHS = (0.0, 20.0, 40.0, 60.0, 80.0, 100.0)
MAX_POINTS = 120
_BOUND = Look(8, "flat", "3 3")


def main_figure(part: Part) -> Plot | None:
    """The first metric that was asked for, or else mean average precision if it is stored, against code length."""
    figure, block = None, part.block
    if not (block.request and block.request.metrics):
        figure = _against_length(part, "map", "Mean average precision by code length", "mAP, %", "map")
    name = metric_title(block.metric)
    return figure or _against_length(part, block.metric, f"{name.capitalize()} by code length", f"{name}, %", "score")


def _against_length(part: Part, key: str, title: str, y_title: str, kind: str) -> Plot | None:
    """Means of a metric, whiskers of one standard deviation; None if none is stored."""
    lines, block = [], part.block
    for method in block.methods:
        found = {n_bits: block.entry(method, n_bits, metric(key)) for n_bits in block.lengths}
        means = {n_bits: entry.mean for n_bits, entry in found.items() if entry.mean is not None}
        deviations = {n_bits: sd for n_bits in means if (sd := found[n_bits].deviation)}
        whiskers = [(n_bits, means[n_bits] - sd, means[n_bits] + sd) for n_bits, sd in deviations.items()]
        if means:
            lines.append(Line(block.label(method), list(means), list(means.values()), part.look(method), whiskers))
    if not lines:
        return None
    reach = [value for line in lines for value in (*line.y, *(end for _, *ends in line.whiskers for end in ends))]
    return Plot(
        kind=kind,
        title=f"{title}, {part.dataset}",
        x_title="bits of a code",
        y_title=y_title,
        x=marked_axis(block.lengths),
        y=linear_axis(reach, low=0.0, high=100.0),
        lines=lines,
    )


def curve_figures(part: Part) -> dict[int, Plot]:
    """Precision against recall at each code length that has stored curves."""
    figures = {n_bits: _curve_figure(part, n_bits) for n_bits in part.block.lengths}
    return {n_bits: figure for n_bits, figure in figures.items() if figure is not None}


def _curve_figure(part: Part, n_bits: int) -> Plot | None:
    """Precision against recall at one code length, mean over draws; None if no curve is stored."""
    lines, block = [], part.block
    for method in block.methods:
        curve = _mean_curve(block.at(method, n_bits))
        if curve is not None:
            recall, precision = curve
            lines.append(Line(block.label(method), list(recall), list(precision), part.look(method), markers=4))
    if not lines:
        return None
    return Plot(
        kind="curve",
        title=f"Precision and recall at {n_bits} bits, {part.dataset}",
        x_title="recall, %",
        y_title="precision, %",
        x=Axis(0.0, 100.0, _TENTHS),
        y=linear_axis([0.0, *(y for line in lines for y in line.y)], low=0.0, high=100.0),
        lines=lines,
    )


def _mean_curve(records: list[Record]) -> tuple[np.ndarray, np.ndarray] | None:
    """The mean over draws point by point, or the first draw if they differ in points; in per cent, by recall."""
    curves = [
        np.array([record["curve"]["recall"], record["curve"]["precision"]], dtype=float)
        for record in records
        if record.get("curve") and record["curve"]["recall"]
    ]
    if not curves:
        return None
    same = all(curve.shape == curves[0].shape for curve in curves)
    recall, precision = 100.0 * (np.mean(curves, axis=0) if same else curves[0])
    known = (
        np.isfinite(recall) & np.isfinite(precision) & (recall + precision > 0.0)
    )  # 0, 0: no item within this distance
    order = np.argsort(recall[known], kind="stable")
    recall, precision = recall[known][order], precision[known][order]
    if len(recall) > MAX_POINTS:
        shown = np.unique(np.linspace(0, len(recall) - 1, MAX_POINTS).astype(int))
        recall, precision = recall[shown], precision[shown]
    return (recall, precision) if len(recall) else None


class Step(NamedTuple):
    """One bit of one sweep, counted from 1."""

    sweep: int
    bit: int
    value: float
    bound: float | None


def bound_figures(part: Part) -> list[Plot]:
    """Value and bound of each method that proves one, at the longest code."""
    records = {method: part.block.at(method, part.longest) for method in part.block.methods}
    traces = {method: steps(held[0]) for method, held in records.items() if held}
    return [
        _bound_figure(part, method, trace)
        for method, trace in traces.items()
        if any(step.bound is not None for step in trace)
    ]


def steps(record: Record) -> list[Step]:
    """The steps of one stored descent, in order."""
    bits: Sequence[dict[str, Any]] = (record.get("inference") or {}).get("bits") or []
    first_sweep = min((bit["sweep"] for bit in bits), default=0)
    first_bit = min((bit["bit"] for bit in bits), default=0)
    found = []
    for bit in bits:
        value = finite(bit.get("value"))
        if value is not None:
            place = (bit["sweep"] - first_sweep + 1, bit["bit"] - first_bit + 1)
            found.append(Step(*place, value, finite(bit.get("bound"))))
    return found


def _bound_figure(part: Part, method: str, trace: list[Step]) -> Plot:
    band = [(place, step.value, step.bound) for place, step in enumerate(trace) if step.bound is not None]
    places, _, bounds = zip(*band, strict=True)
    values = [step.value for step in trace]
    sweeps = [list(group) for _, group in groupby(range(len(trace)), key=lambda place: trace[place].sweep)]
    return Plot(
        kind="bound",
        title=f"Value and bound, {method}, {part.dataset}, {part.longest} bits",
        x_title="bit, sweep after sweep",
        y_title="xᵀAx, smaller is better",
        x=_step_axis(trace, sweeps),
        y=linear_axis([*values, *bounds]),
        lines=[
            Line("value", range(len(trace)), values, part.look(method), markers=0, width=3.6),
            Line("bound", places, bounds, _BOUND, markers=0, width=1.4),
        ],
        note="No signs have a value below the bound.",
        sections=[(own[0] - 0.5, own[-1] + 0.5, f"sweep {trace[own[0]].sweep}") for own in sweeps],
        band=band,
    )


def _step_axis(trace: list[Step], sweeps: list[list[int]]) -> Axis:
    """Ticks at the first and the middle bit of each sweep, with the number of the bit."""
    ticks: list[int] = []
    for places in sweeps:
        ticks += [places[0], places[len(places) // 2]] if len(places) > 3 else [places[0]]
    return Axis(0.0, max(len(trace) - 1.0, 1.0), ticks, names=[str(trace[place].bit) for place in ticks])
