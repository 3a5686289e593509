"""Axes and plots: laws of ticks and labels, and what a figure holds."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hashlearn.experiments.bench.tables import TABLES, Table
from hashlearn.pages.plots import HEIGHT, WIDTH, Line, line_plot, linear_axis, log_axis, spaced
from hashlearn.pages.series_styles import look_of

numbers = st.floats(-1e9, 1e9).filter(lambda x: x == 0 or abs(x) > 1e-6)


@given(st.lists(numbers, min_size=1, max_size=20))
def test_a_linear_axis_holds_its_values_between_even_ticks(values: list[float]) -> None:
    axis = linear_axis(values)
    slack = 1e-6 * (axis.high - axis.low)
    assert axis.low - slack <= min(values) <= max(values) <= axis.high + slack
    assert 2 <= len(axis.ticks) <= 12
    assert np.ptp(np.diff(axis.ticks)) <= 1e-6 * (axis.high - axis.low) + 1e-12


@given(st.lists(st.floats(0.0, 1e3), min_size=1, max_size=20))
def test_a_log_axis_shows_every_value_and_zeros_at_the_bottom(values: list[float]) -> None:
    axis = log_axis(values, floor=1e-4)
    places = [axis.fraction(max(value, 1e-4)) for value in values]
    assert all(-1e-9 <= place <= 1 + 1e-9 for place in places)
    assert axis.fraction(0.0) == 0.0


@given(st.lists(st.floats(0.0, 200.0), min_size=1, max_size=12))
@example([200.0, 200.0])
@example([0.0, 1.0, 200.0])
def test_labels_keep_their_order_and_their_distance(places: list[float]) -> None:
    moved = spaced(places, gap=14.0, low=0.0, high=200.0)
    order = np.argsort(places, kind="stable")
    assert np.all(np.diff(np.array(moved)[order]) >= 14.0 - 1e-9)
    assert min(moved) >= -1e-9
    assert max(moved) <= 200.0 + 1e-9
    if len(places) == 1 or np.min(np.diff(np.sort(places))) >= 14.0:
        assert np.allclose(moved, places)


def test_a_plot_maps_values_to_places_and_names_every_line() -> None:
    lines = [Line("a<b", [0, 1], [0, 10], look_of("SDR")), Line("AL", [0, 1], [10, 0], look_of("AL"), [2.0, None])]
    axis = linear_axis([0, 10])
    figure = line_plot(lines, linear_axis([0, 1], 2), axis, title="T", x_title="x", y_title="y", kind="test")
    assert figure.count("a&lt;b") == 3  # legend, label, description
    assert "a<b" not in figure
    assert figure.count('class="whiskers"') == 1
    paths = re.findall(r'<path d="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)" class="line"', figure)
    (ax, ay, bx, by), (cx, cy, dx, dy) = [[float(v) for v in path] for path in paths]
    assert (ax, bx) == (cx, dx)
    assert (ay, by) == (dy, cy)  # mirror images
    assert ay > by  # larger values lie higher
    assert 0 < ax < bx < WIDTH
    assert 0 < by < ay < HEIGHT


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_methods_of_one_figure_differ_without_colour(table: Table) -> None:
    assert len({(look_of(name).marker, look_of(name).dash) for name in table.methods}) == len(table.methods)
