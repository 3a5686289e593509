"""What to copy into hashlearn, FAISS, PostgreSQL (pgvector) and SQLite (sqlite-vec) to search the chosen codes.

Other engines search by Hamming distance and may return any of several equally near codes. The ranks of a promise count
ties against the codes, so it holds for every one of these engines that compares all codes.
"""

from __future__ import annotations

from hashlearn.compression.result import Compression
from hashlearn.compression.vector_index import RESCORING
from hashlearn.pages.rendering import render

MOST_HNSW_CANDIDATES = 1000  # pgvector's limit on hnsw.ef_search
TEMPLATES = {
    "hashlearn": "engines/hashlearn.txt",  # the promised search itself
    "FAISS": "engines/faiss.txt",
    "PostgreSQL with pgvector": "engines/postgres.txt",
    "SQLite with sqlite-vec": "engines/sqlite.txt",
}


def hamming_depth(plan: Compression) -> int | None:
    """How many candidates a search by Hamming distance of the chosen codes must return; None if none is promised."""
    promise = plan.certificate
    if promise.mode == "hamming":
        return promise.depth
    code = (promise.family, plan.bytes_per_row, "hamming")
    row = next((row for row in plan.frontier if (row.family, row.bytes_per_row, row.mode) == code), None)
    if row is None:
        return None
    if not promise.keep_floats:
        return promise.k if row.codes_bound >= promise.promised else None
    return row.depth


def engine_settings(plan: Compression) -> dict[str, str]:
    """Text to copy by engine; only that of hashlearn if the others cannot keep the promise."""
    data = {"plan": plan, "promise": plan.certificate, "depth": hamming_depth(plan), "rescoring": RESCORING}
    engines = list(TEMPLATES) if data["depth"] is not None else ["hashlearn"]
    data["most_graph_candidates"] = MOST_HNSW_CANDIDATES
    return {engine: render(TEMPLATES[engine], **data) for engine in engines}
