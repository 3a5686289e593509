"""The race of max-cut solvers: its graphs, its shares, and one short race of our solver alone."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.bqp import cut_race
from benchmarks.bqp.cut_solvers import OURS, _best_cut, _model, load
from benchmarks.bqp.graphs import KINDS, cut


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


def test_shares_are_of_the_best_and_name_missing_results():
    assert cut_race._shares([([50.0, 100.0], 100.0)]) == "75.00 / 50.00"
    assert cut_race._shares([([90.0], 100.0), ([], 7.0)]) == "90.00 / 90.00 (1 without a result)"
    assert cut_race._shares([([], 7.0)]) == "– (1 without a result)"


def test_unknown_solvers_are_refused():
    with pytest.raises(SystemExit):
        cut_race.main(["--solvers", "nobody"])


@pytest.mark.parametrize("kind", KINDS)
def test_graphs_have_the_wanted_size(kind):
    W = load(f"{kind}:200:3")
    assert W.shape == (200, 200)
    assert (W != W.T).nnz == 0
    assert not W.diagonal().any()


def test_models_of_dwave_have_the_cut_of_the_graph():
    pytest.importorskip("dimod")
    W = sp.csr_array(KINDS["random ±1"](20, 0))
    x = np.where(np.random.default_rng(0).random(20) < 0.5, -1, 1).astype(np.int8)
    model = _model(W)
    assert (W.sum() / 2 - model.energy(dict(enumerate(x)))) / 2 == cut(W, x)
    sampled = __import__("dimod").SampleSet.from_samples_bqm([dict(enumerate(x))], model)
    assert _best_cut(W, sampled) == cut(W, x)
