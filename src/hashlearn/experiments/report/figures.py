"""The paper's figures from stored cells: mAP against code length, and precision against recall."""

from __future__ import annotations

import numpy as np

from hashlearn.experiments.report.axes import Axis, linear_axis, marked_axis
from hashlearn.experiments.report.formatting import dataset_name
from hashlearn.experiments.report.markup import Markup
from hashlearn.experiments.report.model import Block, Cell, metric
from hashlearn.experiments.report.plots import Line, line_plot
from hashlearn.experiments.report.series_styles import look_of

_TENTHS = (0.0, 20.0, 40.0, 60.0, 80.0, 100.0)
MAX_POINTS = 120


def map_figure(block: Block) -> Markup | None:
    """Mean average precision against code length, whiskers of one standard deviation; None where none is stored."""
    return _against_length(block, "map", "Mean average precision by code length", "mAP, %", "map")


def score_figure(block: Block) -> Markup | None:
    """The table's own metric against code length."""
    name = block.table.metric_title
    return _against_length(block, block.table.metric, f"{name.capitalize()} by code length", f"{name}, %", "score")


def _against_length(block: Block, key: str, title: str, y_title: str, kind: str) -> Markup | None:
    lines = []
    for method in block.methods:
        found = [(n_bits, block.spread(method, n_bits, metric(key))) for n_bits in block.lengths]
        known = [(n_bits, spread) for n_bits, spread in found if spread is not None]
        if known:
            lengths, spreads = zip(*known, strict=True)
            means, deviations = [s.mean for s in spreads], [s.sd for s in spreads]
            lines.append(Line(method, lengths, means, look_of(method), deviations))
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
    """Precision against recall at one code length, mean over draws; None where no curve is stored."""
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
        labels="inside",
    )


def _mean_curve(cells: list[Cell]) -> tuple[np.ndarray, np.ndarray] | None:
    """Point by point over the draws, where all have as many points; else the first draw's. Per cent, by recall."""
    curves = [
        np.array([cell["curve"]["recall"], cell["curve"]["precision"]], dtype=float)
        for cell in cells
        if cell.get("curve") and cell["curve"]["recall"]
    ]
    if not curves:
        return None
    same = all(curve.shape == curves[0].shape for curve in curves)
    recall, precision = 100.0 * (np.mean(curves, axis=0) if same else curves[0])
    known = np.isfinite(recall) & np.isfinite(precision) & (recall + precision > 0.0)  # 0, 0: nothing found so near
    order = np.argsort(recall[known], kind="stable")
    recall, precision = recall[known][order], precision[known][order]
    if len(recall) > MAX_POINTS:
        kept = np.unique(np.linspace(0, len(recall) - 1, MAX_POINTS).astype(int))
        recall, precision = recall[kept], precision[kept]
    return (recall, precision) if len(recall) else None
