"""Axes and plots: laws of ticks, and what a figure holds."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hashlearn.pages.plots import HEIGHT, WIDTH, Line, line_plot, linear_axis
from hashlearn.pages.series_styles import look

numbers = st.floats(-1e9, 1e9).filter(lambda x: x == 0 or abs(x) > 1e-6)


@given(st.lists(numbers, min_size=1, max_size=20))
def test_a_linear_axis_holds_its_values_between_even_ticks(values: list[float]) -> None:
    axis = linear_axis(values)
    slack = 1e-6 * (axis.high - axis.low)
    assert axis.low - slack <= min(values) <= max(values) <= axis.high + slack
    assert 2 <= len(axis.ticks) <= 12
    assert np.ptp(np.diff(axis.ticks)) <= 1e-6 * (axis.high - axis.low) + 1e-12


def test_a_plot_maps_values_to_places_and_names_every_line() -> None:
    lines = [Line("a<b", [0, 1], [0, 10], look(0)), Line("AL", [0, 1], [10, 0], look(1), [2.0, None])]
    axis = linear_axis([0, 10])
    figure = line_plot(lines, linear_axis([0, 1], 2), axis, title="T", x_title="x", y_title="y", kind="test")
    assert figure.count("a&lt;b") == 2  # legend, description
    assert "a<b" not in figure
    assert figure.count('class="whiskers"') == 1
    paths = re.findall(r'<path d="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)" class="line"', figure)
    (ax, ay, bx, by), (cx, cy, dx, dy) = [[float(v) for v in path] for path in paths]
    assert (ax, bx) == (cx, dx)
    assert (ay, by) == (dy, cy)  # mirror images
    assert ay > by  # larger values lie higher
    assert 0 < ax < bx < WIDTH
    assert 0 < by < ay < HEIGHT


def test_series_of_one_figure_differ_without_color() -> None:
    styles = [look(place) for place in range(24)]
    assert len({(style.marker, style.dash) for style in styles}) == 24
    assert len({style.color for style in styles[:8]}) == 8
