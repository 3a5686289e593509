"""Tables, methods and plans: names as people type them, and what each method is built of."""

from __future__ import annotations

import csv
from importlib import resources

import numpy as np
import pytest

from hashlearn import bqp, targets
from hashlearn.experiments.bench.blocks import published_value
from hashlearn.experiments.bench.methods import METHODS, MIXED, SUPERVISED, UNSUPERVISED, CellContext
from hashlearn.experiments.bench.plans import plan
from hashlearn.experiments.bench.tables import TABLES, Cell
from hashlearn.experiments.datasets import Source
from hashlearn.hashers import HASHERS

LABELS = np.array([0, 0, 1])


def request(setting=SUPERVISED, dataset="mnist", hash_function="rbf_svm"):
    return CellContext(12, 5, setting, dataset, hash_function, LABELS)


def test_every_table_names_methods_of_its_setting():
    for table in TABLES.values():
        for name in table.methods:
            assert METHODS[name].setting_in(table.setting) is not None, (table.name, name)


def test_a_mixed_table_takes_each_method_in_its_own_setting():
    assert [METHODS[name].setting_in(MIXED) for name in ("SDR", "SDR distance", "ITQ")] == [
        SUPERVISED,
        UNSUPERVISED,
        UNSUPERVISED,
    ]
    assert METHODS["SDR"].setting_in(MIXED, has_labels=False) == UNSUPERVISED
    assert METHODS["SDH"].setting_in(MIXED, has_labels=False) is None


def test_methods_without_labels_may_stand_beside_those_with_labels_and_not_the_other_way_round():
    assert METHODS["ITQ"].setting_in(SUPERVISED) == UNSUPERVISED
    assert METHODS["SDH"].setting_in(UNSUPERVISED) is None


def test_only_rows_of_our_own_spread_codewords():
    parameters = {
        name: METHODS[name].build(request()).get_params() for name in ("SDR", "SDR plain", "NOPT", "GraphCut")
    }
    assert {name: p["spread"] for name, p in parameters.items()} == {
        "SDR": True,
        "SDR plain": False,
        "NOPT": False,
        "GraphCut": False,
    }


def test_every_number_of_the_paper_has_its_cell():
    text = resources.files("hashlearn.experiments.bench").joinpath("paper_tables.csv").read_text("utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    found = sum(
        published_value(table.name, dataset, method, n_bits) is not None
        for table in TABLES.values()
        for dataset in table.datasets
        for method in table.methods
        if not method.endswith("distance")
        for n_bits in table.bits
    )
    assert found == len(rows) == 228


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (("inference", "mnist", "SDR", 8), 86.33),
        (("supervised", "cifar10", "FastHash", 32), 32.49),
        (("unsupervised", "sun397", "KMH", 24), 43.67),
        (("knn", "cifar10", "ALM", 16), 22.63),
        (("unsupervised", "mnist", "AL distance", 16), 74.36),
        (("supervised", "mnist", "SDR distance", 16), None),
        (("inference", "mnist", "SDR", 12), None),
        (("knn", "sun397", "SDR", 8), None),
        (("inference", "elsewhere", "SDR", 8), None),
    ],
)
def test_paper_values(entry, expected):
    assert published_value(*entry) == expected


def test_two_step_methods_are_built_for_their_setting():
    al = METHODS["AL"].build(request())
    assert (al.n_bits, al.random_state, al.target, al.solver, al.hash_function) == (12, 5, "labels", "al", "rbf_svm")
    cut = METHODS["GraphCut"].build(request())
    assert isinstance(cut.solver, bqp.GraphCut)
    assert np.array_equal(cut.solver.blocks, LABELS)
    plain = METHODS["SDR"].build(request(UNSUPERVISED, hash_function="linear_svm"))
    assert plain.target == targets.ThresholdedDistance(0.02)
    assert plain.hash_function == "linear_svm"
    assert METHODS["SDR distance"].build(request(UNSUPERVISED)).target == targets.Distance()
    assert METHODS["GraphCut"].build(request(UNSUPERVISED)).solver == "graph_cut"


def test_registered_hashers_take_the_tables_hash_function_where_they_have_a_choice(monkeypatch):
    monkeypatch.setitem(HASHERS, "nmf_hashing", HASHERS["two_step"])
    assert METHODS["NMF"].build(request(UNSUPERVISED, hash_function="linear_svm")).hash_function == "linear_svm"
    monkeypatch.setitem(HASHERS, "nmf_hashing", HASHERS["Quick"])
    assert METHODS["NMF"].build(request(UNSUPERVISED, hash_function="linear_svm")).n_bits == 12


def test_a_plan_is_the_whole_table_unless_a_part_is_asked_for():
    whole = plan("inference")
    assert len(whole.cells) == 3 * 4 * 4 * 3
    assert whole.methods == TABLES["inference"].methods
    part = plan("Inference", ["mnist"], ["al", "graph-cut", "AL"], [16, 8, 8], n_draws=1)
    assert part.cells == [
        Cell("inference", "mnist", method, n_bits, 0) for n_bits in (8, 16) for method in ("AL", "GraphCut")
    ]


def test_npz_files_go_by_their_stem():
    named = plan("knn", ["some/where/flowers.npz"], known_datasets=["mnist"])
    assert named.datasets == {"flowers": Source("some/where/flowers.npz", sha256=None)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("inference", ["x/mnist.npz"]), "taken for those of 'mnist'"),
        (("inference", ["a/x.npz", "b/x.npy"]), "a/x.npz and b/x.npy: results of both would be called 'x'"),
        (("inference", None, None, None, 0), "n_draws must be a positive integer"),
    ],
)
def test_bad_names_and_numbers(arguments, message):
    with pytest.raises(ValueError, match=message):
        plan(*arguments, known_datasets=["mnist", "cifar10", "sun397"])
