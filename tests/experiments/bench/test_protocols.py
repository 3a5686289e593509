"""Protocols: who learns, who is searched, who asks."""

from __future__ import annotations

import os

import numpy as np
import pytest

from hashlearn.experiments import datasets
from hashlearn.experiments.bench.protocols import PROTOCOLS, SHORT_NAMES, OwnSplit, Protocol, protocol_named
from hashlearn.experiments.bench.tables import TABLES
from tests.experiments.bench import fakes

SMALL = Protocol("small", train_per_class=20, queries_per_class=10)
SIZED = Protocol("sized", 12, 10, class_size_above=50, divisors=(1, 2, 5))


def test_queries_are_never_in_the_database_and_training_samples_always_are():
    data = fakes.dataset()
    split = SMALL.draw(data, 3)
    assert np.bincount(data.y[split.train]).tolist() == [20] * fakes.N_CLASSES
    assert np.bincount(data.y[split.queries]).tolist() == [10] * fakes.N_CLASSES
    assert np.array_equal(np.sort(np.concatenate([split.database, split.queries])), np.arange(len(data)))
    assert np.isin(split.train, split.database).all()
    assert len(np.unique(split.train)) == len(split.train)


def test_the_seed_alone_decides():
    data = fakes.dataset()
    first, again, other = (SMALL.draw(data, seed) for seed in (0, 0, 1))
    for part in ("train", "database", "queries"):
        assert np.array_equal(getattr(first, part), getattr(again, part))
    assert not np.array_equal(first.train, other.train)
    assert not np.array_equal(first.queries, other.queries)


def test_canonical_queries_are_the_test_part_whatever_the_seed():
    data = fakes.dataset(n_queries=15)
    splits = [Protocol("canonical", 30).draw(data, seed) for seed in (0, 1)]
    for split in splits:
        assert np.array_equal(split.queries, np.flatnonzero(data.is_query))
        assert np.array_equal(split.database, np.flatnonzero(~data.is_query))
        assert split.description["queries"] == "canonical"
    assert not np.array_equal(splits[0].train, splits[1].train)


def test_the_k_nn_protocol_searches_the_training_samples_alone():
    data = fakes.dataset((250,) * 10, n_queries=20)
    split = PROTOCOLS["knn"].draw(data, 0)
    assert np.array_equal(split.database, np.sort(split.train))
    assert split.description["n_database"] == 2000
    assert split.description["n_queries"] == 200


def test_description_says_what_was_drawn():
    assert SMALL.draw(fakes.dataset((40, 50, 60)), 0).description == {
        "name": "small",
        "split": "drawn",
        "train_per_class": 20,
        "queries": "10 per class",
        "most_queries": None,
        "database": "rest",
        "class_size_above": 0,
        "n_train": 60,
        "n_database": 120,
        "n_queries": 30,
        "n_classes": 3,
        "n_classes_left_out": 0,
    }


@pytest.mark.parametrize(
    ("sizes", "above", "n_classes"),
    [
        ((60, 70, 80), 50, 3),  # the paper's numbers, where all classes are large enough
        ((60, 70, 30, 20), 50, 2),  # half of the classes suffice
        ((60, 40, 30, 20), 25, 3),  # else numbers are halved
        ((51, 11, 12, 10, 9), 10, 3),  # or divided by 5
    ],
)
def test_numbers_shrink_until_enough_classes_are_left(sizes, above, n_classes):
    split = SIZED.draw(fakes.dataset(sizes), 0)
    assert split.description["class_size_above"] == above
    assert split.description["n_classes"] == n_classes
    assert split.description["n_classes_left_out"] == len(sizes) - n_classes
    divisor = 50 // above
    assert split.description["train_per_class"] == 12 // divisor
    assert split.description["n_queries"] == n_classes * (10 // divisor)


def test_classes_left_out_are_nowhere():
    data = fakes.dataset((60, 70, 30, 20))
    split = SIZED.draw(data, 0)
    for part in (split.train, split.database, split.queries):
        assert set(data.y[part]) == {0, 1}


def test_of_many_classes_as_many_as_in_the_paper_suffice():
    sizes = (60,) * 42 + (20,) * 60
    assert SIZED.draw(fakes.dataset(sizes), 0).description["n_classes"] == 42
    assert SIZED.draw(fakes.dataset((20,) * 3 + sizes[3:]), 0).description["class_size_above"] == 10


@pytest.mark.parametrize(
    ("protocol", "sizes", "message"),
    [
        (SIZED, (9, 9, 9), "needs 2 classes with more than 10 samples, got 0"),
        (SMALL, (25, 40), "needs 20 training samples a class, class 0 has 15"),
        (PROTOCOLS["500 per class"], (600, 600), "needs a test part of the data set's own"),
    ],
)
def test_data_that_does_not_suit_is_refused(protocol, sizes, message):
    with pytest.raises(ValueError, match=message):
        protocol.draw(fakes.dataset(sizes), 0)


needs_data = pytest.mark.skipif("HASHLEARN_DATA" not in os.environ, reason="HASHLEARN_DATA is not set")


@needs_data
def test_caltech_101_is_drawn_in_a_tenth_of_the_papers_numbers():
    name = "caltech101_efficientnet_lite0"
    if name not in [data.name for data in datasets.known()]:
        pytest.skip(f"no {name}.npz in the data folder")
    found = PROTOCOLS["120 per class"].draw(datasets.load(name), 0).description
    assert (found["class_size_above"], found["train_per_class"], found["queries"]) == (50, 12, "10 per class")
    assert found["n_classes"] >= 42
    assert found["n_classes"] + found["n_classes_left_out"] == 101


@needs_data
def test_mnist_is_drawn_as_the_paper_says():
    try:
        data = datasets.load("mnist")
    except datasets.DataError as error:
        pytest.skip(str(error))
    found = PROTOCOLS["500 per class"].draw(data, 0).description
    assert (found["n_train"], found["n_database"], found["n_queries"]) == (5_000, 60_000, 10_000)


def test_unseen_classes_are_asked_for_and_never_learned_from():
    data = fakes.dataset((60,) * 10)
    protocol = Protocol("unseen", 20, 10, unseen_share=0.3)
    drawn = set()
    for seed in range(3):
        split = protocol.draw(data, seed)
        unseen = split.description["unseen_classes"]
        assert len(unseen) == 3
        assert sorted(set(data.y[split.queries].tolist())) == unseen
        assert not set(data.y[split.train].tolist()) & set(unseen)
        assert set(data.y[split.database].tolist()) == set(range(10))
        assert not np.isin(split.queries, split.database).any()
        assert split.description["n_train"] == 140
        drawn.add(tuple(unseen))
    assert len(drawn) > 1


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_test_part_is_in_neither_database_nor_training_set_whatever_the_protocol(name):
    data = fakes.dataset((700,) * 4, n_queries=30)
    for seed in (0, 1):
        split = PROTOCOLS[name].draw(data, seed)
        assert not data.is_query[split.database].any()
        assert not data.is_query[split.train].any()
        assert data.is_query[split.queries].all()
        assert split.description["queries"] == "canonical"
        asked = split.description.get("unseen_classes", range(4))
        assert split.description["n_queries"] == 30 * len(asked)


def test_sizes_are_counted_beside_the_test_part():
    data = fakes.dataset((60, 70, 80), n_queries=19)  # 41, 51 and 61 are left; more than 50 − 10 are wanted
    found = SIZED.draw(data, 0).description
    assert (found["class_size_above"], found["train_per_class"], found["n_classes"]) == (40, 12, 3)
    smaller = SIZED.draw(fakes.dataset((60, 59, 58), n_queries=20), 0).description
    assert (smaller["class_size_above"], smaller["train_per_class"], smaller["n_queries"]) == (20, 6, 60)


def test_a_data_set_of_queries_alone_is_refused():
    data = fakes.dataset((60, 60), n_queries=60)
    with pytest.raises(ValueError, match="needs 1 classes with more than 8 samples beside the test part, got 0"):
        SIZED.draw(data, 0)


@pytest.mark.parametrize("table", TABLES)
def test_protocols_of_files_suit_their_table(table):
    protocol = TABLES[table].protocol("a file of somebody's")
    assert (getattr(protocol, "unseen_share", 0.0) > 0.0) == (table == "unseen")


def test_own_takes_the_test_part_as_it_is_and_draws_only_what_is_asked_for():
    data = fakes.dataset(n_queries=15)
    whole = OwnSplit().draw(data, 0)
    assert np.array_equal(whole.train, np.flatnonzero(~data.is_query))
    assert np.array_equal(whole.train, whole.database)
    assert np.array_equal(whole.queries, np.flatnonzero(data.is_query))
    few = OwnSplit(train=20, most_queries=30).draw(data, 1)
    assert np.bincount(data.y[few.train]).tolist() == [20] * fakes.N_CLASSES
    assert np.array_equal(few.database, whole.database)
    assert len(few.queries) == 30
    assert np.isin(few.queries, whole.queries).all()
    with pytest.raises(ValueError, match="protocol 'own' needs a split with rows marked 'test', it has none"):
        OwnSplit().draw(fakes.dataset(), 0)


def test_every_protocol_has_a_short_name():
    assert set(SHORT_NAMES.values()) == set(PROTOCOLS)
    assert all(protocol_named(name) is protocol_named(short) for short, name in SHORT_NAMES.items())
