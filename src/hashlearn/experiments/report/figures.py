"""The paper's figures from stored records: mAP against code length, and precision against recall."""

from __future__ import annotations

import numpy as np

from hashlearn.experiments.bench.blocks import Block, Record, metric
from hashlearn.experiments.formatting import dataset_name
from hashlearn.experiments.report.axes import Axis, linear_axis, marked_axis
from hashlearn.experiments.report.markup import Markup
from hashlearn.experiments.report.plots import Line, line_plot
from hashlearn.experiments.report.series_styles import look_of

_TENTHS = (0.0, 20.0, 40.0, 60.0, 80.0, 100.0)
MAX_POINTS = 120


def map_figure(block: Block) -> Markup | None:
    """Mean average precision against code length, whiskers of one standard deviation; None if none is stored."""
    return _against_length(block, "map", "Mean average precision by code length", "mAP, %", "map")


def score_figure(block: Block) -> Markup | None:
    """The table's own metric against code length."""
    name = block.table.metric_title
    return _against_length(block, block.table.metric, f"{name.capitalize()} by code length", f"{name}, %", "score")


def _against_length(block: Block, key: str, title: str, y_title: str, kind: str) -> Markup | None:
    lines = []
    for method in block.methods:
        found = {n_bits: block.entry(method, n_bits, metric(key)) for n_bits in block.lengths}
        means = {n_bits: entry.mean for n_bits, entry in found.items() if entry.mean is not None}
        if means:
            deviations = [found[n_bits].deviation for n_bits in means]
            lines.append(Line(method, list(means), list(means.values()), look_of(method), deviations))
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
            lines.append(Line(method, list(recall), list(precision), look_of(method), markers=4))
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
        labels_inside=True,
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
