"""Options that change what is measured: metrics by hand, and what is stored and printed of them."""

from __future__ import annotations

import numpy as np
import pytest

from hashlearn.experiments.bench.choices import Choice, measured
from hashlearn.experiments.bench.protocols import PROTOCOLS

DATABASE = np.array([[0b0], [0b1], [0b11], [0b111], [0b1111]], np.uint8)  # 0, 1, 2, 3, 4 bits from the query
LABELS = (np.array([1]), np.array([1, 0, 1, 1, 0]))


def test_metrics_of_the_first_items_by_hand():
    found = measured(("p@3", "p@4", "map@3", "map@1"), (DATABASE[:1], DATABASE), LABELS)
    assert found == pytest.approx({"p@3": 2 / 3, "p@4": 3 / 4, "map@3": (1 + 2 / 3) / 2, "map@1": 1.0})
    with pytest.raises(ValueError, match="metric 'p@6' needs 6 rows in the database, got 5"):
        measured(("p@6",), (DATABASE[:1], DATABASE), LABELS)


def test_options_are_stored_by_the_names_of_results_and_printed_by_those_of_the_command():
    choice = Choice("500", "all", 30, ("MAP@10", "precision-radius", "map@10"))
    assert choice.sizes == {"protocol": "500 per class", "train_per_class": "all", "queries": 30}
    assert choice.options() == {
        "protocol": "500",
        "train-per-class": "all",
        "queries": 30,
        "metric": ["map@10", "precision@2"],
    }
    assert choice.extra_metrics == ("map@10",)
    assert (Choice().sizes, Choice().options()) == (None, {})


def test_sizes_that_a_protocol_cannot_have_are_refused():
    with pytest.raises(ValueError, match="'all rows' learns from every row"):
        Choice(train_per_class=5).applied_to(PROTOCOLS["all rows"])
    with pytest.raises(ValueError, match="'knn' searches its training samples"):
        Choice(train_per_class="all").applied_to(PROTOCOLS["knn"])
    for wrong in (0, -1, True, "few", 1.5):
        with pytest.raises(ValueError, match="train_per_class must be a positive integer or 'all'"):
            Choice(train_per_class=wrong)
