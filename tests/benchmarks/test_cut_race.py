"""The race of max-cut solvers: its graphs, its shares, and one short race of our solver alone."""

import json

import pytest
from benchmarks.bqp import cut_race
from benchmarks.bqp.cut_solvers import OURS, load
from benchmarks.bqp.graphs import KINDS


def test_a_short_race(tmp_path, capsys):
    file = tmp_path / "race.json"
    graph = "torus ±1:100:0"
    cut_race.main(["--seconds", "0.2", "--seeds", "2", "--solvers", OURS, "--graphs", graph, "--json", str(file)])
    stored = json.loads(file.read_text(encoding="utf-8"))
    cuts = stored["values"]["cuts"][graph][OURS]
    assert len(cuts) == 2
    assert stored["values"]["best"][graph] == max(cuts)
    assert stored["rows"][0][0] == OURS
    assert "torus ±1" in capsys.readouterr().out


@pytest.mark.parametrize("kind", KINDS)
def test_graphs_have_the_wanted_size(kind):
    W = load(f"{kind}:200:3")
    assert W.shape == (200, 200)
    assert (W != W.T).nnz == 0
    assert not W.diagonal().any()
