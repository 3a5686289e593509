"""Targets: what codes should preserve."""

from __future__ import annotations

from benchmarks.mutants.mutant import Mutant

TARGETS = ("tests/targets/test_targets.py",)
NEIGHBORS = ("tests/targets/test_neighbors.py",)

MUTANTS = [
    Mutant(
        "samples must share two labels to be similar",
        "targets/labels.py",
        "sets.T.astype(np.float64) > 0)",
        "sets.T.astype(np.float64) > 1)",
        TARGETS,
    ),
    Mutant(
        "samples of other classes are unrelated, not opposite",
        "targets/labels.py",
        "np.r_[-1.0, np.full(one_hot.shape[1], 2.0)]",
        "np.r_[0.0, np.full(one_hot.shape[1], 1.0)]",
        TARGETS,
    ),
    Mutant(
        "only mutual neighbors are similar",
        "targets/similarities.py",
        "near.maximum(near.T)",
        "near.minimum(near.T)",
        TARGETS,
    ),
    Mutant(
        "entries of a similarity count on top of the background",
        "targets/similarities.py",
        "shifted.data = shifted.data - self.background",
        "shifted.data = shifted.data.copy()",
        TARGETS,
    ),
    Mutant(
        "a pair that is named twice counts twice",
        "targets/similarities.py",
        "        total.data = np.clip(total.data, -1.0, 1.0)",
        "        total.data = np.clip(total.data, -2.0, 2.0)",
        TARGETS,
    ),
    Mutant(
        "a pair may name the sample past the last",
        "targets/similarities.py",
        "    if array.min() < 0 or array.max() >= n:",
        "    if array.min() < 0 or array.max() > n:",
        TARGETS,
    ),
    Mutant(
        "a similarity with entries of up to 2 is taken",
        "targets/similarities.py",
        "np.abs(entries).max() > 1.0 + 1e-9",
        "np.abs(entries).max() > 2.0",
        TARGETS,
    ),
    Mutant(
        "the neighbor graph is not symmetric",
        "targets/neighbors.py",
        "return sp.csr_array(weights.maximum(weights.T)), place",
        "return sp.csr_array(weights), place",
        NEIGHBORS,
    ),
    Mutant(
        "neighbors that share no neighbor are not connected",
        "targets/neighbors.py",
        "(1.0 + shared.ravel(), directed.indices, directed.indptr)",
        "(shared.ravel(), directed.indices, directed.indptr)",
        NEIGHBORS,
    ),
    Mutant(
        "the trivial eigenvector of the graph is kept",
        "targets/neighbors.py",
        "inverse[:, None] * inverse - np.outer(trivial, trivial)",
        "inverse[:, None] * inverse",
        NEIGHBORS,
    ),
    Mutant(
        "the walk is twice as long as wanted",
        "targets/neighbors.py",
        "** (2.0 * power)",
        "** power",
        NEIGHBORS,
    ),
    Mutant(
        "the graph counts on top of the labels",
        "targets/labels.py",
        "np.r_[graph_weights, -w * graph_weights, w * classes.weights]",
        "np.r_[graph_weights, 0.0 * graph_weights, w * classes.weights]",
        NEIGHBORS,
    ),
]
