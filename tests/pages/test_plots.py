"""Axes and plots: laws of ticks, and what a figure holds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hashlearn.pages.plots import Line, Plot, linear_axis
from hashlearn.pages.series_styles import look

numbers = st.floats(-1e9, 1e9).filter(lambda x: x == 0 or abs(x) > 1e-6)


@given(st.lists(numbers, min_size=1, max_size=20))
def test_a_linear_axis_holds_its_values_between_even_ticks(values: list[float]) -> None:
    axis = linear_axis(values)
    slack = 1e-6 * (axis.high - axis.low)
    assert axis.low - slack <= min(values) <= max(values) <= axis.high + slack
    assert 2 <= len(axis.ticks) <= 12
    assert np.ptp(np.diff(axis.ticks)) <= 1e-6 * (axis.high - axis.low) + 1e-12


def test_a_plot_maps_values_to_places() -> None:
    lines = [Line("a", [0, 1], [0, 10], look(0)), Line("b", [0, 1], [10, 0], look(1), [(0, 8, 12)], markers=1)]
    plot = Plot("test", "T", "x", "y", linear_axis([0, 1], 2), linear_axis([0, 10]), lines)
    (ax, ay), (bx, by) = plot.marked(lines[0], 0)
    assert plot.path(lines[0]) == f"M{ax:.1f} {ay:.1f}L{bx:.1f} {by:.1f}"
    assert plot.path(lines[1]) == f"M{ax:.1f} {by:.1f}L{bx:.1f} {ay:.1f}"  # the mirror image
    assert plot.left < ax < bx < plot.right
    assert plot.top <= by < ay <= plot.bottom  # larger values lie higher
    assert len(plot.marked(lines[1], 1)) == 1
    assert plot.marked(Line("c", [0, 1], [0, 1], look(2), markers=0), 2) == []


def test_series_of_one_figure_differ_without_color() -> None:
    styles = [look(place) for place in range(24)]
    assert len({(style.marker, style.dash) for style in styles}) == 24
    assert len({style.color for style in styles[:8]}) == 8
