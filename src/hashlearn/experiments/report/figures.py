"""All figures of a page: mAP and precision–recall as in the paper, then what inference reached and what it proved.

The value is xᵀAx of eq. (5) after the step, and the bound a proven lower bound on every value. Only solvers that prove
a bound have a figure of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from hashlearn.experiments.bench.blocks import Block, Record, finite, metric
from hashlearn.experiments.bench.choices import metric_title
from hashlearn.experiments.dataset_names import dataset_name
from hashlearn.experiments.report.tables import look_in
from hashlearn.pages.markup import Markup, element, join
from hashlearn.pages.plots import Axis, Frame, Line, line_plot, linear_axis, marked_axis
from hashlearn.pages.series_styles import Look

_TENTHS = (0.0, 20.0, 40.0, 60.0, 80.0, 100.0)
MAX_POINTS = 120
_BOUND = Look(8, "flat", "3 3")


def main_figure(block: Block) -> Markup | None:
    """The first metric that was asked for, or else mean average precision if it is stored, against code length."""
    figure = None
    if not (block.request and block.request.metrics):
        figure = _against_length(block, "map", "Mean average precision by code length", "mAP, %", "map")
    name = metric_title(block.metric)
    return figure or _against_length(block, block.metric, f"{name.capitalize()} by code length", f"{name}, %", "score")


def _against_length(block: Block, key: str, title: str, y_title: str, kind: str) -> Markup | None:
    """Means of a metric, whiskers of one standard deviation; None if none is stored."""
    lines = []
    for method in block.methods:
        found = {n_bits: block.entry(method, n_bits, metric(key)) for n_bits in block.lengths}
        means = {n_bits: entry.mean for n_bits, entry in found.items() if entry.mean is not None}
        if means:
            deviations = [found[n_bits].deviation for n_bits in means]
            lines.append(
                Line(block.label(method), list(means), list(means.values()), look_in(block, method), deviations)
            )
    if not lines:
        return None
    reach = [
        value + side * (sd or 0.0)
        for line in lines
        for value, sd in zip(line.y, line.deviations, strict=True)
        for side in (-1.0, 1.0)
    ]
    return line_plot(
        lines,
        marked_axis(block.lengths),
        linear_axis(reach, low=0.0, high=100.0),
        title=f"{title}, {dataset_name(block.dataset)}",
        x_title="bits of a code",
        y_title=y_title,
        kind=kind,
    )


def curve_figure(block: Block, n_bits: int) -> Markup | None:
    """Precision against recall at one code length, mean over draws; None if no curve is stored."""
    lines = []
    for method in block.methods:
        curve = _mean_curve(block.at(method, n_bits))
        if curve is not None:
            recall, precision = curve
            lines.append(Line(block.label(method), list(recall), list(precision), look_in(block, method), markers=4))
    if not lines:
        return None
    return line_plot(
        lines,
        Axis(0.0, 100.0, _TENTHS),
        linear_axis([0.0, *(y for line in lines for y in line.y)], low=0.0, high=100.0),
        title=f"Precision and recall at {n_bits} bits, {dataset_name(block.dataset)}",
        x_title="recall, %",
        y_title="precision, %",
        kind="curve",
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


def bound_figures(block: Block) -> list[Markup]:
    """Value and bound of each method that proves one, at the longest code."""
    n_bits = block.lengths[-1]
    traces = {method: steps(records[0]) for method in block.methods if (records := block.at(method, n_bits))}
    where = f"{dataset_name(block.dataset)}, {n_bits} bits"
    return [
        _bound_figure(block, method, trace, where)
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


def _bound_figure(block: Block, method: str, trace: list[Step], where: str) -> Markup:
    bounded = [(place, step.bound) for place, step in enumerate(trace) if step.bound is not None]
    places, bounds = zip(*bounded, strict=True)
    lines = [
        Line("value", range(len(trace)), [step.value for step in trace], look_in(block, method), markers=0, width=3.6),
        Line("bound", places, bounds, _BOUND, markers=0, width=1.4),
    ]
    return line_plot(
        lines,
        _step_axis(trace),
        linear_axis([y for line in lines for y in line.y]),
        title=f"Value and bound, {method}, {where}",
        x_title="bit, sweep after sweep",
        y_title="xᵀAx, smaller is better",
        kind="bound",
        note="No signs have a value below the bound.",
        behind=lambda frame: join([_between(frame, trace), _sweeps(frame, trace)]),
        x_text=lambda place: str(trace[int(place)].bit),
    )


def _step_axis(trace: list[Step]) -> Axis:
    """Ticks at the first and the middle bit of each sweep."""
    ticks: list[float] = []
    for _, group in groupby(enumerate(trace), key=lambda item: item[1].sweep):
        places = [place for place, _ in group]
        ticks += [places[0], places[len(places) // 2]] if len(places) > 3 else [places[0]]
    return Axis(0.0, max(len(trace) - 1.0, 1.0), tuple(ticks))


def _sweeps(frame: Frame, trace: list[Step]) -> Markup:
    """A line between sweeps, and their names."""
    parts = []
    for sweep, group in groupby(enumerate(trace), key=lambda item: item[1].sweep):
        places = [place for place, _ in group]
        left, right = frame.at_x(places[0] - 0.5), frame.at_x(places[-1] + 0.5)
        if places[0]:
            parts.append(element("path", d=f"M{left:.1f} {frame.top - 12:g}V{frame.bottom:g}", class_="divider"))
        middle = f"{0.5 * (left + right):.1f}"
        parts.append(element("text", f"sweep {sweep}", x=middle, y=frame.top - 6, text_anchor="middle", class_="tick"))
    return join(parts)


def _between(frame: Frame, trace: list[Step]) -> Markup:
    """The area between value and bound."""
    known = [(place, step) for place, step in enumerate(trace) if step.bound is not None]
    values = [f"{frame.at_x(place):.1f} {frame.at_y(step.value):.1f}" for place, step in known]
    bounds = [f"{frame.at_x(place):.1f} {frame.at_y(step.bound or 0.0):.1f}" for place, step in reversed(known)]
    return element("path", d=f"M{'L'.join(values + bounds)}z", class_="between")
