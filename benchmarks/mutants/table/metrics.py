"""Averages of precision, radii, labels and statistics of bits."""

from __future__ import annotations

from benchmarks.mutants.mutant import Mutant

PRECISION = ("tests/metrics/test_average_precision.py",)
NEAREST = ("tests/metrics/test_radius_and_knn.py",)
NEIGHBORS = ("tests/metrics/test_recall_of_neighbors.py",)
STATISTICS = ("tests/metrics/test_bit_statistics.py",)

MUTANTS = [
    Mutant(
        "up to three items at the end of the database do not count",
        "metrics/counting.py",
        "for j in range(whole, n):",
        "for j in range(whole + 1, n):",
        PRECISION,
    ),
    Mutant(
        "with more than 64 labels only the last ones are compared",
        "metrics/counting.py",
        "shared |= own[w] & sets[w, j]",
        "shared = own[w] & sets[w, j]",
        PRECISION,
    ),
    Mutant(
        "with top_k, average precision is divided by all relevant items",
        "metrics/retrieval.py",
        "np.minimum(counts.n_relevant, last)",
        "counts.n_relevant",
        PRECISION,
    ),
    Mutant(
        "precision within a radius leaves out the items at the radius",
        "metrics/retrieval.py",
        "part[:, : radius + 1].sum(axis=1)",
        "part[:, :radius].sum(axis=1)",
        NEAREST,
    ),
    Mutant(
        "evaluate forgets top_k for ties in database order",
        "metrics/retrieval.py",
        "database_order=stable, top_k=top_k, k=k, voters",
        "database_order=stable, top_k=None, k=k, voters",
        PRECISION,
    ),
    Mutant(
        "true neighbors at the k-th distance never count",
        "metrics/tie_rules.py",
        "nearer = retrieved.cumsum(axis=1) - retrieved",
        "nearer = retrieved.cumsum(axis=1)",
        ("tests/metrics/test_neighbors.py",),
    ),
    Mutant(
        "a row past the database is taken for a neighbor",
        "metrics/recall.py",
        "truth.max() >= n_database",
        "truth.max() > n_database",
        ("tests/metrics/test_neighbors.py",),
    ),
    Mutant(
        "every code collides with itself",
        "metrics/bit_statistics.py",
        "collisions = int(np.sum(counts * (counts - 1) // 2))",
        "collisions = int(np.sum(counts * (counts + 1) // 2))",
        STATISTICS,
    ),
    Mutant(
        "correlations are not divided by the spread of both bits",
        "metrics/bit_statistics.py",
        "(spread[upper[0]] * spread[upper[1]])",
        "(spread[upper[0]] * spread[upper[0]])",
        STATISTICS,
    ),
    Mutant(
        "labels that are numbers and labels that are text are compared",
        "metrics/counting.py",
        "    if len(kinds) > 1:",
        "    if False:",
        PRECISION,
    ),
    Mutant(
        "missing labels pass for a class",
        "core/labels.py",
        "if any(value is None or value != value for value in values):",
        "if False:",
        PRECISION,
    ),
    Mutant(
        "recall counts all results, not the first of them",
        "metrics/recall.py",
        "results, true = results[:, :depth], true[:, :k]",
        "true = true[:, :k]",
        NEIGHBORS,
    ),
    Mutant(
        "equal float neighbors come in any order",
        "linalg/nearest.py",
        'np.argsort(distances[:count], kind="mergesort")',
        "np.argsort(distances[:count])",
        NEIGHBORS,
    ),
    Mutant(
        "float neighbors by cosine are those by distance from the largest row",
        "metrics/recall.py",
        'by_product=metric == "cosine"',
        'by_product=metric != "cosine"',
        NEIGHBORS,
    ),
]
