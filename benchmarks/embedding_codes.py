"""Codes of sentence embeddings (CLINC150, 384 floats): by label, and by the nearest vectors of the floats.

``python -m benchmarks.embedding_codes`` learns from the train part, which is the database, and asks with the test part.
Printed for each method: mAP by intent; recall of the 10 nearest float vectors (cosine) among the nearest 10 codes by
Hamming distance, among the 10 with the highest asymmetric score, and after 100 candidates of that score were rescored
by their floats. Means and deviations over seeds. The floats' own mAP stands first.

``--classifier`` measures what codes from labels have to beat: one byte a row with the class of a linear classifier.
Beside it stands a code of 8 bytes with default settings.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import RidgeClassifier

from benchmarks.claims.recording import Table, add_option
from hashlearn import TwoStepHasher, metrics
from hashlearn.experiments import datasets
from hashlearn.hash_functions import KernelRidge
from hashlearn.hashers import ITQ, SignCodes
from hashlearn.search import asymmetric_search, rescore

K, CANDIDATES = 10, 100
LANDMARKS = KernelRidge(max_gram_rows=5_000)


class CutSigns:
    """Signs of the first n_bits features: the 384-bit sign code, cut."""

    def __init__(self, n_bits: int) -> None:
        self.n_bits = n_bits

    def fit(self, X: Any, y: Any = None) -> CutSigns:
        """Nothing to learn."""
        return self

    def decision_function(self, X: Any) -> Any:
        """The features themselves."""
        return X[:, : self.n_bits]

    def encode(self, X: Any) -> Any:
        """Packed signs."""
        return np.packbits(self.decision_function(X) >= 0.0, axis=1)


def methods(n_bits: int, seed: int) -> dict[str, tuple[Callable[[], Any], bool]]:
    """Name → how to build it, and whether it sees labels."""

    def two_step(**parameters: Any) -> Callable[[], Any]:
        chosen = {"solver": "sweeps" if "target" in parameters else "local_search", "random_state": seed, **parameters}
        return lambda: TwoStepHasher(n_bits, **chosen)

    return {
        "sign code of 384, cut": (lambda: CutSigns(n_bits), False),
        "sign code after PCA": (lambda: SignCodes(n_bits, features="pca"), False),
        "ITQ": (lambda: ITQ(n_bits, random_state=seed), False),
        '`target="distance"`': (two_step(target="distance"), False),
        '`target="distance"`, 3,000 landmarks': (two_step(target="distance", hash_function=LANDMARKS), False),
        '`target="neighbors"`': (two_step(target="neighbors"), False),
        "labels": (two_step(), True),
    }


def main() -> None:
    options = _options()
    data = datasets.load("clinc150_minilm")
    assert data.is_query is not None
    X, asked = data.X.astype(np.float32), data.is_query
    database, queries, labels, query_labels = X[~asked], X[asked], data.y[~asked], data.y[asked]
    if options.classifier:
        table = _class_bytes(database, queries, labels, query_labels)
        hasher = TwoStepHasher(64, random_state=0).fit(database, labels)
        score = metrics.mean_average_precision(hasher.encode(queries), hasher.encode(database), query_labels, labels)
        table.row("its code of 8 bytes", f"{100 * score:.2f}")
        table.record(options.json)
        return
    similarities = queries @ database.T
    truth = metrics.float_neighbors(queries, database, K)
    recall = f"recall@{K} of the float neighbors, Hamming"
    table = Table("bits", "method", "mAP by intent", recall, "asymmetric", f"{CANDIDATES} rescored", "fit")
    table.row("–", "cosine of the 384 floats", f"{100 * _map(similarities, query_labels, labels):.2f}", 100, "", "", "")
    for n_bits in options.bits:
        for name in methods(n_bits, 0):
            if options.only and not any(word in name for word in options.only):
                continue
            rows = []
            for seed in range(options.seeds):
                build, sees_labels = methods(n_bits, seed)[name]
                began = time.perf_counter()
                hasher = build().fit(database, labels if sees_labels else None)
                spent = time.perf_counter() - began
                found = _scores(hasher, database, queries, labels, query_labels, truth)
                rows.append([*(100.0 * value for value in found), spent])
            table.row(n_bits, name, *_cells(np.array(rows)))
    table.record(options.json)


def _scores(hasher: Any, database: Any, queries: Any, labels: Any, query_labels: Any, truth: Any) -> list[float]:
    codes, query_codes = hasher.encode(database), hasher.encode(queries)
    margins = hasher.decision_function(queries)
    candidates = asymmetric_search(margins, codes, CANDIDATES)
    final = rescore(candidates, queries, database, K)
    return [
        float(metrics.mean_average_precision(query_codes, codes, query_labels, labels)),
        metrics.neighbor_recall(query_codes, codes, truth, k=K),
        metrics.recall_of_neighbors(candidates, truth, k=K),
        metrics.recall_of_neighbors(final, truth, k=K),
    ]


def _class_bytes(database: Any, queries: Any, labels: Any, query_labels: Any) -> Table:
    """mAP if a row is one byte: its class. Rows of the query's predicted class come first, in any order."""
    classifier = RidgeClassifier().fit(database, labels)
    assert len(classifier.classes_) <= 256
    table = Table("stored for a database row", "mAP by intent")
    predicted = _one_hot(classifier.predict(queries), classifier.classes_)
    for name, stored in {"its predicted class": classifier.predict(database), "its known label": labels}.items():
        codes = _one_hot(stored, classifier.classes_)
        score = metrics.mean_average_precision(predicted, codes, query_labels, labels)
        table.row(name, f"{100 * score:.2f}")
    return table


def _one_hot(labels: Any, classes: Any) -> NDArray[np.uint8]:
    """Packed codes that differ in two bits if the classes differ, so that Hamming distance asks only for equality."""
    return np.packbits(labels[:, None] == classes, axis=1)


def _map(similarities: Any, query_labels: Any, labels: Any) -> float:
    order = np.argsort(-similarities, axis=1, kind="stable")
    relevant = labels[order] == query_labels[:, None]
    precision = np.cumsum(relevant, axis=1) / np.arange(1, relevant.shape[1] + 1)
    return float(np.mean((precision * relevant).sum(axis=1) / relevant.sum(axis=1)))


def _cells(rows: NDArray[np.float64]) -> list[str]:
    mean, seconds = rows.mean(axis=0)[:-1], f"{rows[:, -1].mean():.0f} s"
    if len(rows) == 1:
        return [*(f"{m:.2f}" for m in mean), seconds]
    spread = rows.std(axis=0, ddof=1)[:-1]
    return [*(f"{m:.2f} ± {s:.2f}" for m, s in zip(mean, spread, strict=True)), seconds]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--bits", type=int, nargs="+", default=[64, 128])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", help="words; methods that hold none of them are left out")
    parser.add_argument("--classifier", action="store_true", help="only a linear classifier and default codes")
    add_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
