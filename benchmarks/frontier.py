"""Recall of float neighbors against bytes: our codes beside FAISS's, and README's picture of the stored results.

``python -m benchmarks.frontier measure [DATA] [--bytes 4 8]`` prints recall@10 in percent for each method and size:
Hamming / asymmetric / first 100 of the asymmetric search rescored by floats. DATA is a data set or a file. The queries
are its test part, or else a random tenth; all other rows are learned from and searched. With the cosine metric all rows
get unit length first. ``--methods`` takes names of `CODES` and `QUANTIZERS`.

``python -m benchmarks.frontier draw`` draws docs/front.svg again; a test compares it with docs/results. Codes without
labels are all of 8 bytes, because some of FAISS's quantizers were not measured at more.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.claims.recording import Table, add_option
from benchmarks.claims.stored import Stored, read_all
from benchmarks.markup import Markup, element
from hashlearn import RankingHasher, metrics
from hashlearn.core.packages import require
from hashlearn.experiments import datasets
from hashlearn.experiments.bench.protocols import AllRows
from hashlearn.hashers import ITQ, BaseHasher, SignCodes
from hashlearn.linalg.unit_rows import scale_to_unit, typical_norm
from hashlearn.search import HammingIndex, asymmetric_search

K, DEPTH = 10, 100
Rows = NDArray[np.float32]
Rankings = tuple[NDArray[np.int64] | None, NDArray[np.int64]]  # row numbers by Hamming distance and by float query


class FaissITQ(BaseHasher):
    """ITQTransform of FAISS; its signs are the bits."""

    def fit(self, X: Rows, y: Any = None) -> FaissITQ:
        """Learn the rotation. FAISS makes at most one bit of each feature."""
        if self.n_bits > X.shape[1]:
            raise ValueError(f"n_bits must be at most the number of features, {X.shape[1]}, got {self.n_bits}")
        self.transform_ = _faiss().ITQTransform(X.shape[1], self.n_bits, True)
        self.transform_.train(X)
        return self

    def decision_function(self, X: Rows) -> NDArray[Any]:
        """The rotated principal components."""
        return np.asarray(self.transform_.apply(X))


# Hashers by (bits, metric).
CODES: dict[str, Callable[[int, str], BaseHasher]] = {
    "Ranking full": lambda n, metric: RankingHasher(n, metric=metric, random_state=0, **FULL),
    "Ranking": lambda n, metric: RankingHasher(n, metric=metric, random_state=0, encoder="mlp"),
    "Ranking linear": lambda n, metric: RankingHasher(n, metric=metric, random_state=0, encoder="linear"),
    "Sign": lambda n, metric: SignCodes(n, features="pca"),
    "Sign cut": lambda n, metric: SignCodes(n, threshold="mean"),
    "FAISS ITQ": lambda n, metric: FaissITQ(n),
    "ITQ": lambda n, metric: ITQ(n, random_state=0),
}
FULL: dict[str, Any] = {"hidden": 2048, "batch_size": 2048, "n_steps": 3000}
# Strings of FAISS's index factory: {n} bytes, {half} of them, {dim} components that fit beside RaBitQ's 8 bytes.
QUANTIZERS = {
    "LSQ": "LSQ{n}x8",
    "RQ": "RQ{n}x8",
    "PRQ": "PRQ2x{half}x8",
    "OPQ": "OPQ{n},PQ{n}x8np",
    "PQ": "PQ{n}x8np",  # "np": without polysemous training, which only a filter by Hamming distance needs
    "RaBitQ 1 bit": "PCAR{dim},RaBitQ1",
}
RABITQ_FACTORS = 8  # bytes
ROOT = Path(__file__).parents[1]
WIDTH, HEIGHT = 920, 340
TOP, STEP, BAR = 78, 25, 15
LEFT, RIGHT = 28, 480  # where the two halves begin
NAMES, LONGEST = 226, 170  # widths of the names and of a bar of 100 %
EMBEDDINGS, CLASSIFIER = "embeddings_clinc150", "embeddings_classifier"
FOUND = "mAP by intent"
WITH_LABELS = {  # name in the picture: stored result and its cell
    "hashlearn, defaults, 8 bytes": (CLASSIFIER, f"[its code of 8 bytes][{FOUND}]"),
    "classifier, labels kept, 1 byte": (CLASSIFIER, f"[its known label][{FOUND}]"),
    "classifier, 1 byte": (CLASSIFIER, f"[its predicted class][{FOUND}]"),
    "floats, 1,536 bytes": (EMBEDDINGS, f"[–][cosine of the 384 floats][{FOUND}]"),
    "ITQ without labels, 8 bytes": (EMBEDDINGS, f"[64][ITQ][{FOUND}]"),
    "signs of PCA, 8 bytes": (EMBEDDINGS, f"[64][sign code after PCA][{FOUND}]"),
}
WITHOUT_LABELS = {
    name: ("frontier_clinc150", f"[`{row}`][8 bytes]")
    for name, row in {
        "hashlearn, full settings, GPU": "Ranking full",
        "FAISS LSQ": "LSQ",
        "FAISS RQ": "RQ",
        "hashlearn, defaults": "Ranking",
        "FAISS PRQ": "PRQ",
        "signs of PCA": "Sign",
        "FAISS OPQ": "OPQ",
        "FAISS ITQ": "FAISS ITQ",
        "FAISS PQ": "PQ",
    }.items()
}
ASYMMETRIC = 1  # its place in a cell that holds Hamming / asymmetric / rescored
STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif; fill: #46556a; }
.page { fill: #fbfcfe; stroke: #d5dce6; } .title { font-size: 16px; font-weight: 600; }
.ours { fill: #2f6fc4; } .other { fill: #aab6c6; } .strong { font-weight: 600; fill: #1d2a3c; }
@media (prefers-color-scheme: dark) {
  text { fill: #b6c3d4; } .page { fill: #151b24; stroke: #303b4a; }
  .ours { fill: #6ba6f2; } .other { fill: #56657a; } .strong { fill: #eef3fa; }
}
"""


def measure(arguments: argparse.Namespace) -> None:
    """Fit, search and score each method at each size."""
    data = datasets.load(arguments.data)
    split = AllRows(arguments.queries).draw(data, 0)
    database, queries = (_rows(data.X[part], arguments.metric) for part in (split.database, split.queries))
    true = metrics.float_neighbors(data.X[split.queries], data.X[split.database], K, metric=arguments.metric)
    table = Table("", *(f"{n_bytes} bytes" for n_bytes in arguments.bytes))
    for name in arguments.methods:
        cells = []
        for n_bytes in arguments.bytes:
            try:
                by_codes, by_floats = _searched(name, n_bytes, database, queries, arguments.metric)
            except (ValueError, RuntimeError) as error:  # a size that the method does not have
                print(f"{name}, {n_bytes} bytes: {error}", file=sys.stderr)
                cells.append("–")
                continue
            recalls = [None if by_codes is None else metrics.recall_of_neighbors(by_codes, true, k=K)]
            recalls += [metrics.recall_of_neighbors(by_floats, true, k=K, depth=depth) for depth in (K, DEPTH)]
            cells.append(" / ".join("–" if recall is None else f"{100 * recall:.1f}" for recall in recalls))
        table.row(f"`{name}`", *cells)
    table.record(arguments.json)


def _searched(name: str, n_bytes: int, database: Rows, queries: Rows, metric: str) -> Rankings:
    began = time.perf_counter()
    if name in CODES:
        hasher: Any = CODES[name](8 * n_bytes, metric)
        hasher.fit(database)
        codes = hasher.encode(database)
        index = HammingIndex(8 * n_bytes)
        index.add(codes)
        margins = hasher.decision_function(queries)
        found = index.search(hasher.encode(queries), DEPTH).indices, asymmetric_search(margins, codes, DEPTH).indices
    else:
        found = None, _quantized(name, n_bytes, database, queries)
    print(f"{name}, {n_bytes} bytes: {time.perf_counter() - began:.1f} s", file=sys.stderr)
    return found


def _quantized(name: str, n_bytes: int, database: Rows, queries: Rows) -> NDArray[np.int64]:
    """Zero columns are added up to a multiple of the parts that the quantizer cuts rows into."""
    faiss = _faiss()
    parts = {"PQ": n_bytes, "OPQ": n_bytes, "PRQ": 2}.get(name, 1)
    if (name == "PRQ" and n_bytes % 2) or (name.startswith("RaBitQ") and n_bytes <= RABITQ_FACTORS):
        raise ValueError("the method has no codes of this size")
    database, queries = (np.pad(rows, ((0, 0), (0, -rows.shape[1] % parts))) for rows in (database, queries))
    dim = min(database.shape[1], 8 * (n_bytes - RABITQ_FACTORS))
    index = faiss.index_factory(database.shape[1], QUANTIZERS[name].format(n=n_bytes, half=n_bytes // 2, dim=dim))
    assert index.sa_code_size() <= n_bytes
    index.train(database)
    index.add(database)
    if name in ("LSQ", "RQ", "PRQ"):  # the index decodes every row again for every query: this finds the same
        return np.asarray(faiss.knn(queries, index.reconstruct_n(0, index.ntotal), DEPTH)[1])
    return np.asarray(index.search(queries, DEPTH)[1])


def _faiss() -> Any:
    return require("faiss", "faiss", "this row of the frontier")


def _rows(part: NDArray[Any], metric: str) -> Rows:
    rows = np.ascontiguousarray(part, dtype=np.float32)
    return scale_to_unit(rows, typical_norm(rows)) if metric == "cosine" else rows


def picture(results: Mapping[str, Stored]) -> str:
    """The whole file."""
    title = "CLINC150: what 8 bytes of hashlearn find, with and without labels, beside floats, a classifier and FAISS"
    neighbors = float(results[EMBEDDINGS].value("[64][labels][recall@10 of the float neighbors, Hamming]"))
    notes = (
        "Codes from labels lose the order within a class:",
        f"they find {neighbors:.0f} % of the 10 nearest neighbors.",
    )
    parts = [
        element("title", title),
        element("style", Markup(STYLE)),
        element("rect", x=1, y=1, width=WIDTH - 2, height=HEIGHT - 2, rx=12, class_="page"),
        _text("With labels: intents found", LEFT, 34, kind="strong title"),
        _text("mean average precision, %; the classifier is linear", LEFT, 56),
        *_bars(results, WITH_LABELS, LEFT),
        *(_text(note, LEFT, TOP + (len(WITH_LABELS) + 1) * STEP + 18 * place) for place, note in enumerate(notes)),
        _text("Without labels: neighbors found with 8 bytes", RIGHT, 34, kind="strong title"),
        _text("share of the 10 nearest, float query against codes, %", RIGHT, 56),
        *_bars(results, WITHOUT_LABELS, RIGHT),
        _text("CLINC150: 18,000 sentences, embeddings of 384 floats, 4,500 queries", WIDTH - 24, HEIGHT - 14, "end"),
    ]
    size = {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "width": WIDTH, "height": HEIGHT, "role": "img"}
    return str(element("svg", parts, xmlns="http://www.w3.org/2000/svg", **size)) + "\n"


def _bars(results: Mapping[str, Stored], cells: Mapping[str, tuple[str, str]], left: float) -> list[Markup]:
    """A line for each value: name, bar, number."""
    parts = []
    for place, (name, (result, cell)) in enumerate(cells.items()):
        parts_of_cell = results[result].value(cell).split(" / ")
        value = float(parts_of_cell[ASYMMETRIC if len(parts_of_cell) > 1 else 0])
        y, length, ours = TOP + place * STEP, LONGEST * value / 100, name.startswith("hashlearn")
        kind, begin = "strong" if ours else None, left + NAMES
        size = {"width": f"{length:.1f}", "height": BAR, "rx": 3, "class_": "ours" if ours else "other"}
        parts += [
            _text(name, begin - 8, y + 12, "end", kind),
            element("rect", x=begin, y=y, **size),
            _text(f"{value:.1f}", begin + length + 8, y + 12, kind=kind),
        ]
    return parts


def _text(text: str, x: float, y: float, anchor: str = "start", kind: str | None = None) -> Markup:
    return element("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, class_=kind)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    parts.add_parser("draw")
    measuring = parts.add_parser("measure")
    measuring.add_argument("data", nargs="?", default="digits")
    measuring.add_argument("--bytes", type=int, nargs="+", default=[4, 8])
    usual = [name for name in (*CODES, *QUANTIZERS) if name != "Ranking full"]  # that one takes minutes
    measuring.add_argument("--methods", nargs="+", choices=[*CODES, *QUANTIZERS], default=usual, metavar="NAME")
    measuring.add_argument("--metric", choices=("cosine", "euclidean"), default="cosine")
    measuring.add_argument("--queries", type=int, help="at most this many, drawn at random")
    add_option(measuring)
    given = parser.parse_args(arguments)
    if given.part == "measure":
        measure(given)
    else:
        (ROOT / "docs" / "front.svg").write_text(picture(read_all(ROOT)), encoding="utf-8")


if __name__ == "__main__":
    main()
