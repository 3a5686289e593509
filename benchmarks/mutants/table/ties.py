"""Which of equally near items come first, and how metrics count them."""

from __future__ import annotations

from benchmarks.mutants.mutant import Mutant

INDEX = ("tests/search/test_index.py",)
MARGINS = ("tests/search/test_asymmetric.py",)
RESCORING = ("tests/search/test_rescoring.py",)
STORES = ("tests/search/test_stores.py",)
PRECISION = ("tests/metrics/test_average_precision.py",)
NEAREST = ("tests/metrics/test_radius_and_knn.py",)

MUTANTS = [
    Mutant(
        "equal scores go to the higher row",
        "search/asymmetric.py",
        "score == other_score and row > other_row",
        "score == other_score and row < other_row",
        MARGINS,
    ),
    Mutant(
        "the last child of a heap is never compared",
        "search/asymmetric.py",
        "if child + 1 < size and _worse",
        "if child + 2 < size and _worse",
        MARGINS,
    ),
    Mutant(
        "the two best scores are not put in order",
        "search/asymmetric.py",
        "for size in range(k - 1, 0, -1):",
        "for size in range(k - 1, 1, -1):",
        MARGINS,
    ),
    Mutant(
        "equal scores of candidates keep the order that they came in",
        "search/rescoring.py",
        "order = np.lexsort((ranks, -scores), axis=1)[:, :k]",
        'order = np.argsort(-scores, axis=1, kind="stable")[:, :k]',
        RESCORING,
    ),
    Mutant(
        "items at the k-th distance enter though k nearer ones are known",
        "search/scan.py",
        "                    if distance >= limits[i]:",
        "                    if distance > limits[i]:",
        INDEX,
    ),
    Mutant(
        "all items at the k-th distance are kept, not the first ones",
        "search/scan.py",
        "            at_limit -= 1\n",
        "            at_limit -= 0\n",
        INDEX,
    ),
    Mutant(
        "a tie at the k-th place is taken for settled",
        "search/stores/base.py",
        "done = (far.max(axis=1) > last)",
        "done = (far.max(axis=1) >= last)",
        STORES,
    ),
    Mutant(
        "equal distances keep the order of the engine",
        "search/stores/base.py",
        "near = near[order_of(found[query][near])]",
        "near = near[::-1]",
        STORES,
    ),
    Mutant(
        "a distance that rank top_k cuts counts whole",
        "metrics/tie_rules.py",
        "_random_order(R, N, n, r, min(n, top_k - N), harmonic)",
        "_random_order(R, N, n, r, n, harmonic)",
        PRECISION,
    ),
    Mutant(
        "expected precision draws with replacement",
        "metrics/tie_rules.py",
        "q = (r - 1) / (n - 1) if n > 1 else 0.0",
        "q = r / n",
        PRECISION,
    ),
    Mutant(
        "the trapezoid of the nearest distance starts at precision 0",
        "metrics/tie_rules.py",
        "before = 1.0 + q * (places - 1)",
        "before = q * (places - 1)",
        PRECISION,
    ),
    Mutant(
        "harmonic numbers lose what rounding takes",
        "metrics/tie_rules.py",
        "out[0, t], out[1, t] = high, low",
        "out[0, t], out[1, t] = high, 0.0",
        PRECISION,
    ),
    Mutant(
        "in database order the item at rank top_k does not count",
        "metrics/counting.py",
        "        if rank <= top_k:",
        "        if rank < top_k:",
        PRECISION,
    ),
    Mutant(
        "in database order the trapezoid starts at precision 0",
        "metrics/counting.py",
        "(n_hits[d] - 1) / (rank - 1) if rank > 1 else 1.0",
        "(n_hits[d] - 1) / (rank - 1) if rank > 1 else 0.0",
        PRECISION,
    ),
    Mutant(
        "the first number of hits at the cut distance has no chance",
        "metrics/tie_rules.py",
        "shares = np.exp(logarithms - logarithms.max())",
        "shares = np.exp(logarithms - logarithms.max()) * (h > h[0])",
        PRECISION,
    ),
    Mutant(
        "distances do not decide ties of votes",
        "metrics/counting.py",
        "votes[classes[j]] += full_vote - d",
        "votes[classes[j]] += full_vote",
        NEAREST,
    ),
    Mutant(
        "the classes of the query before vote too",
        "metrics/counting.py",
        "    votes[:] = 0\n",
        "",
        NEAREST,
    ),
]
