"""What to copy into hashlearn, FAISS, PostgreSQL (pgvector) and SQLite (sqlite-vec) to search the chosen codes.

Other engines search by Hamming distance and may return any of several equally near codes. The ranks of a promise count
ties against the codes, so it holds for every one of these engines that compares all codes.
"""

from __future__ import annotations

from typing import NamedTuple

from hashlearn.compression.result import Compression
from hashlearn.compression.vector_index import RESCORING

MOST_HNSW_CANDIDATES = 1000  # pgvector's limit on hnsw.ef_search
_POSTGRES_OPERATORS = {"cosine": "<=>", "euclidean": "<->"}
_SQLITE_DISTANCES = {"cosine": "vec_distance_cosine", "euclidean": "vec_distance_L2"}


class EngineSetting(NamedTuple):
    """Text to copy, and what it needs."""

    engine: str
    about: str
    text: str


def hamming_depth(plan: Compression) -> int | None:
    """How many candidates a search by Hamming distance of the chosen codes must return; None if none is promised."""
    promise = plan.certificate
    if promise.mode == "hamming":
        return promise.depth
    size = plan.bytes_per_row
    same = [
        row for row in plan.frontier if (row.family, row.bytes_per_row, row.mode) == (promise.family, size, "hamming")
    ]
    if not same:
        return None
    if not promise.keep_floats:
        return promise.k if same[0].codes_bound >= promise.promised else None
    return same[0].depth


def hashlearn_setting(plan: Compression) -> EngineSetting:
    """The promised search itself."""
    lines = [
        'plan.save("plan.hashlearn")  # later: plan = hashlearn.compression.Compression.load("plan.hashlearn")',
        "index = plan.index(X)",
        f"found = index.search(queries, k={plan.certificate.k})",
    ]
    return EngineSetting("hashlearn", "Python. This is the search that was tested.", "\n".join(lines))


def hamming_settings(plan: Compression) -> list[EngineSetting]:
    """The settings of engines that search by Hamming distance; empty if they cannot keep the promise."""
    depth = hamming_depth(plan)
    if depth is None:
        return []
    return [_faiss(plan, depth), _postgres(plan, depth), _sqlite(plan, depth)]


def _faiss(plan: Compression, depth: int) -> EngineSetting:
    promise = plan.certificate
    lines = ["import faiss"]
    if promise.keep_floats:
        lines.append("from hashlearn.search import rescore")
    lines += ["", f"index = faiss.IndexBinaryFlat({8 * plan.bytes_per_row})", "index.add(plan.hasher.encode(X))"]
    if promise.keep_floats:
        lines.append(f"_, candidates = index.search(plan.hasher.encode(queries), {depth})")
        metric = RESCORING[promise.metric]
        lines.append(f'found = rescore(candidates, queries, X, k={promise.k}, metric="{metric}").indices')
    else:
        lines.append(f"_, found = index.search(plan.hasher.encode(queries), {promise.k})")
    return EngineSetting("FAISS", "Python.", "\n".join(lines))


def _postgres(plan: Compression, depth: int) -> EngineSetting:
    promise = plan.certificate
    n_bits, n_features = promise.n_bits, plan.hasher.n_features_in_
    floats = f", embedding vector({n_features}) NOT NULL" if promise.keep_floats else ""
    nearest = f"ORDER BY code <~> %(code)s::bit({n_bits}) LIMIT {depth if promise.keep_floats else promise.k}"
    if depth <= MOST_HNSW_CANDIDATES:
        graph = [
            "-- Faster, approximate, not covered by the promise:",
            "-- CREATE INDEX ON items USING hnsw (code bit_hamming_ops);",
            f"-- SET hnsw.ef_search = {depth};",
        ]
    else:
        graph = [f"-- No HNSW index: it returns {MOST_HNSW_CANDIDATES:,} candidates at most."]
    if promise.keep_floats:
        query = [
            "SELECT id FROM (",
            f"  SELECT id, embedding FROM items {nearest}",
            ") AS candidates",
            f"ORDER BY embedding {_POSTGRES_OPERATORS[promise.metric]} %(query)s::vector LIMIT {promise.k};",
        ]
    else:
        query = [f"SELECT id FROM items {nearest};"]
    lines = [
        "CREATE EXTENSION IF NOT EXISTS vector;",
        f"CREATE TABLE items (id bigint PRIMARY KEY, code bit({n_bits}) NOT NULL{floats});",
        *graph,
        "",
        *query,
    ]
    about = 'SQL. A code is text of zeros and ones: "".join(map(str, plan.hasher.transform(x[None])[0])).'
    return EngineSetting("PostgreSQL with pgvector", about, "\n".join(lines))


def _sqlite(plan: Compression, depth: int) -> EngineSetting:
    promise = plan.certificate
    by_code = "SELECT id FROM codes ORDER BY vec_distance_hamming(vec_bit(code), vec_bit(:code))"
    lines = [f"CREATE VIRTUAL TABLE codes USING vec0(id INTEGER PRIMARY KEY, code bit[{8 * plan.bytes_per_row}]);"]
    about = "SQL. A code is its bytes: plan.hasher.encode(x[None]).tobytes(), inserted as vec_bit(:code)."
    if not promise.keep_floats:
        lines += ["", f"{by_code} LIMIT {promise.k};"]
    else:
        lines += [
            "CREATE TABLE items (id INTEGER PRIMARY KEY, embedding BLOB NOT NULL);",
            "",
            "SELECT id FROM items WHERE id IN (",
            f"  {by_code} LIMIT {depth}",
            f") ORDER BY {_SQLITE_DISTANCES[promise.metric]}(embedding, :query) LIMIT {promise.k};",
        ]
        about += " Floats are float32 bytes."
    return EngineSetting("SQLite with sqlite-vec", about, "\n".join(lines))
