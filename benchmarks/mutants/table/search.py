"""The index, its engines, and searches by score."""

from __future__ import annotations

from benchmarks.mutants.mutant import Mutant

INDEX = ("tests/search/test_index.py",)
INPUT = ("tests/search/test_index_input.py",)
MODELS = ("tests/search/test_model_digest.py",)
MARGINS = ("tests/search/test_asymmetric.py",)
RESCORING = ("tests/search/test_rescoring.py",)

MUTANTS = [
    Mutant(
        "filler rows of the last block are found",
        "search/scan.py",
        "        size = min(ITEMS_PER_BLOCK, n - first)\n        for i in range(n_queries):",
        "        size = ITEMS_PER_BLOCK\n        for i in range(n_queries):",
        INDEX,
    ),
    Mutant(
        "rows found within a radius are numbered from the start of their block",
        "search/scan.py",
        "rows[places[i, d]] = first + j",
        "rows[places[i, d]] = j",
        INDEX,
    ),
    Mutant(
        "a radius takes only items that are nearer than it",
        "search/scan.py",
        "                if d <= radius:",
        "                if d < radius:",
        INDEX,
    ),
    Mutant(
        "FAISS: a radius takes only items that are nearer than it",
        "search/faiss_backends.py",
        "index.range_search(queries, min(radius, index.d) + 1)",
        "index.range_search(queries, min(radius, index.d))",
        INDEX,
    ),
    Mutant(
        "the last margin of a query does not count",
        "search/asymmetric.py",
        "if 8 * byte + bit < n_bits else 0.0",
        "if 8 * byte + bit < n_bits - 1 else 0.0",
        MARGINS,
    ),
    Mutant(
        "items past the first block are scored by the first byte of others",
        "search/asymmetric.py",
        "score = tables[i, 0, codes[first + j, 0]]",
        "score = tables[i, 0, codes[j, 0]]",
        MARGINS,
    ),
    Mutant(
        "a bound forgets that margins were rounded up",
        "search/asymmetric.py",
        "np.sum(sizes + 2.0 * np.maximum(levels * steps - sizes, 0.0), axis=1)",
        "np.sum(sizes, axis=1)",
        MARGINS,
    ),
    Mutant(
        "the fourth digit of a rounded margin counts too much",
        "bits/hamming.py",
        "digits[place, w]) << np.uint64(place)",
        "digits[place, w]) << np.uint64(place + 1)",
        MARGINS,
    ),
    Mutant(
        "rows of the second span of codes are numbered from 0",
        "search/asymmetric.py",
        "    rows += first_row\n",
        "",
        MARGINS,
    ),
    Mutant(
        "an index answers margins by row",
        "search/index.py",
        "return ScoredResult(ids[found.indices], found.scores)",
        "return ScoredResult(found.indices, found.scores)",
        MARGINS,
    ),
    Mutant(
        "the second batch of vectors is taken for the first",
        "search/rescoring.py",
        "places[here] - done, metric",
        "(places[here] - done) % 1, metric",
        RESCORING,
    ),
    Mutant(
        "places without a candidate are scored as row 0",
        "search/rescoring.py",
        "pairs = np.flatnonzero(rows >= 0)",
        "rows = np.maximum(rows, 0)\n    pairs = np.flatnonzero(rows >= 0)",
        RESCORING,
    ),
    Mutant(
        "a vector of zeros has cosine 1 with all",
        "search/rescoring.py",
        "dot / size if size > 0.0 else 0.0",
        "dot / size if size > 0.0 else 1.0",
        RESCORING,
    ),
    Mutant(
        "ids that are not ascending find the vectors of others",
        "search/rescoring.py",
        "rows = order[places] if n",
        "rows = places if n",
        RESCORING,
    ),
    Mutant(
        "an id is given twice after lower ids were added",
        "search/code_table.py",
        "self.next_id = max(self.next_id, int(sorted_ids[-1]) + 1)",
        "self.next_id = int(sorted_ids[-1]) + 1",
        (*INDEX, *INPUT),
    ),
    Mutant(
        "the last id can be added a second time",
        "search/code_table.py",
        "sorted_ids[0] > self._ids[-1][-1]",
        "sorted_ids[0] >= self._ids[-1][-1]",
        (*INDEX, *INPUT),
    ),
    Mutant(
        "removing ids of which some are missing removes the last code",
        "search/code_table.py",
        "        if (rows < 0).any():",
        "        if (rows < 0).all():",
        (*INDEX, *INPUT),
    ),
    Mutant(
        "codes go with the wrong ids when ids are not ascending",
        "search/code_table.py",
        "sorted_ids, codes = ids[order], codes[order]",
        "sorted_ids, codes = ids[order], codes",
        INDEX,
    ),
    Mutant(
        "after as many codes are removed as added, the old ones are searched",
        "search/index.py",
        "state = (table.rewritten, len(table))",
        "state = (0, len(table))",
        INDEX,
    ),
    Mutant(
        "changing the ids that the index returned changes the index",
        "search/index.py",
        "return self._table.ids.copy()",
        "return self._table.ids",
        INDEX,
    ),
    Mutant(
        "a loaded index gives out ids of removed codes again",
        "search/index.py",
        "index._table.next_id = max(index._table.next_id, next_id)",
        "pass",
        ("tests/search/test_index_files.py",),
    ),
    Mutant(
        "codes of another model are read",
        "search/model_digest.py",
        "if stored is not None and model is not None and stored != model:",
        "if False:",
        MODELS,
    ),
    Mutant(
        "an index file forgets its model",
        "search/index.py",
        '**({} if self.model is None else {"model": self.model}),',
        "",
        MODELS,
    ),
    Mutant(
        "ids of which one is negative are taken",
        "search/interface.py",
        "if array.min() < 0 or array.max() > np.iinfo(np.int64).max:",
        "if array.max() > np.iinfo(np.int64).max:",
        INPUT,
    ),
]
