"""RankingHasher on sentence embeddings (CLINC150, 384 floats): neighbors kept, other domains, and labels.

``python -m benchmarks.ranking_codes sizes``   recall@10 of float neighbors against bytes, over seeds
``python -m benchmarks.ranking_codes domain``  queries of two domains that were not in the training rows
``python -m benchmarks.ranking_codes labels``  labels of 105 of 150 classes: mAP of both kinds, and neighbors kept
``python -m benchmarks.ranking_codes depth``   without labels: mAP against neighbors kept, by temperature

The database are the parts train and val, 18,000 rows, and the queries are the part test, 4,500. Recall is Hamming /
asymmetric, with the float neighbors by cosine. mAP is that of the asymmetric ranking of the whole database. With
``--device cuda`` training runs there. ``--full`` means 2,048 hidden units, batches of 2,048 rows and 3,000 steps.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.claims.recording import add_option, record
from hashlearn import RankingHasher, metrics
from hashlearn.core.threads import map_row_blocks
from hashlearn.experiments import datasets
from hashlearn.hashers import SignCodes
from hashlearn.search import HammingIndex, asymmetric_search

K = 10
ENCODERS = {"mlp": "MLP", "linear": "linear"}  # as pages call them
FULL: dict[str, Any] = {"hidden": 2048, "batch_size": 2048, "n_steps": 3000}
# Two of the corpus's ten domains (Larson et al. 2019), 15 intents each.
BANKING = """transfer transactions balance freeze_account pay_bill bill_balance bill_due interest_rate routing
min_payment order_checks pin_change report_fraud account_blocked spending_history"""
TRAVEL = """plug_type travel_notification translate flight_status international_visa timezone exchange_rate
travel_suggestion travel_alert vaccines lost_luggage book_flight book_hotel carry_on car_rental"""
GIVEN_QUERIES = 500
TEMPERATURES = ((0.033, 0.1), (0.05, 0.1), (0.065, 0.1), (0.08, 0.1), (0.08, 0.4))  # each with its noise
UNLABELED_CLASSES = 45


class Task:
    """Database, queries, and the true neighbors."""

    def __init__(self, options: argparse.Namespace) -> None:
        data = datasets.load(options.dataset)
        X, y = np.ascontiguousarray(data.X, dtype=np.float32), data.y
        if options.metric == "cosine":
            X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-30)
        asked = data.is_query
        if asked is None:
            asked = np.ones(len(X), bool)
            asked[np.random.default_rng(0).permutation(len(X))[: options.database]] = False
        self.D, self.Q, self.y_D, self.y_Q = X[~asked], X[asked], y[~asked], y[asked]
        self.names, self.device, self.metric = np.array(data.class_names), options.device, options.metric
        self.true = metrics.float_neighbors(self.Q, self.D, K, metric=self.metric)

    def fit(self, hasher: Any, X: NDArray[Any], y: Any = None, **more: Any) -> tuple[Any, float]:
        """The fitted hasher and the seconds it took."""
        began = time.perf_counter()
        hasher.fit(self.moved(X), y, **{name: self.moved(value) for name, value in more.items()})
        return hasher, time.perf_counter() - began

    def moved(self, X: NDArray[Any]) -> Any:
        """X on the device."""
        if self.device == "cpu":
            return X
        import torch

        return torch.as_tensor(X).to(self.device)

    def recall(self, hasher: Any, asked: Any = slice(None)) -> tuple[float, float]:
        """In percent, by Hamming distance and by asymmetric score."""
        codes = hasher.encode(self.D)
        index = HammingIndex(hasher.n_bits)
        index.add(codes)
        answers = (
            index.search(hasher.encode(self.Q[asked]), K),
            asymmetric_search(hasher.decision_function(self.Q[asked]), codes, K),
        )
        first, second = (100 * metrics.recall_of_neighbors(found, self.true[asked], k=K) for found in answers)
        return first, second

    def average_precision(self, hasher: Any) -> NDArray[np.float64]:
        """Of each query, in percent, in the asymmetric ranking of all rows."""
        signs = np.where(hasher.decision_function(self.D) >= 0, np.float32(1), np.float32(-1))
        margins = hasher.decision_function(self.Q).astype(np.float32)

        def some(a: int, b: int) -> NDArray[np.float64]:
            order = np.argsort(-(margins[a:b] @ signs.T), axis=1, kind="stable")
            hits = self.y_D[order] == self.y_Q[a:b, None]
            precision = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
            return 100 * (precision * hits).sum(axis=1) / np.maximum(hits.sum(axis=1), 1)

        return np.concatenate(map_row_blocks(some, len(margins), len(signs)))


def sizes(task: Task, options: argparse.Namespace, settings: dict[str, Any]) -> None:
    """Recall against bytes."""
    rows, deviations, times = [], [], []
    for n_bytes in options.bytes:
        rows.append([f"{n_bytes}", pair(task.recall(pca_sign(8 * n_bytes).fit(task.D)))])
        print(f"{n_bytes} bytes: PCA sign {rows[-1][1]}", flush=True)
        for encoder in options.encoders:
            found, seconds = [], []
            for seed in range(options.seeds):
                hasher = RankingHasher(8 * n_bytes, encoder=encoder, random_state=seed, metric=task.metric, **settings)
                hasher, spent = task.fit(hasher, task.D)
                found.append(task.recall(hasher))
                seconds.append(spent)
            mean, deviation = np.mean(found, axis=0), np.std(found, axis=0, ddof=1 if len(found) > 1 else 0)
            print(f"{n_bytes} bytes: {encoder} {pair(mean)} ± {pair(deviation)}, {np.mean(seconds):.1f} s", flush=True)
            rows[-1].append(pair(mean))
            deviations.append(np.max(deviation))
            times.append(np.mean(seconds))
    values = {"fit_seconds": f"{min(times):.0f} to {max(times):.0f}", "largest_deviation": round(max(deviations), 1)}
    record(
        options.json, ("bytes", "PCA signs", *(f"{ENCODERS[name]} encoder" for name in options.encoders)), rows, values
    )


def domain(task: Task, options: argparse.Namespace, settings: dict[str, Any]) -> None:
    """Learn without banking and travel, search everything for their queries; then with some of these queries."""
    inside = np.isin(task.names, [*BANKING.split(), *TRAVEL.split()])
    learned = task.D[~inside[task.y_D]]
    asked = np.random.default_rng(0).permutation(np.flatnonzero(inside[task.y_Q]))
    given, asked = asked[:GIVEN_QUERIES], asked[GIVEN_QUERIES:]
    rows, names = [], [ENCODERS[encoder] for encoder in options.encoders]
    for n_bytes in options.bytes:
        rows.append([f"{n_bytes}", pair(task.recall(pca_sign(8 * n_bytes).fit(learned), asked))])
        print(f"{n_bytes} bytes: PCA sign {rows[-1][1]}", flush=True)
        for encoder in options.encoders:
            for more in ({}, {"queries": task.Q[given]}):
                hasher = RankingHasher(8 * n_bytes, encoder=encoder, random_state=0, **settings)
                found = task.recall(task.fit(hasher, learned, **more)[0], asked)
                print(f"{n_bytes} bytes: {encoder}, {len(given) if more else 0} queries {pair(found)}", flush=True)
                rows[-1].append(pair(found))
    record(options.json, ("bytes", "PCA signs", *(n for name in names for n in (name, f"{name}, with queries"))), rows)


def labels(task: Task, options: argparse.Namespace, settings: dict[str, Any]) -> None:
    """mAP of classes with labels and of those without, and neighbors kept, by label weight."""
    shown = []
    for n_bytes in options.bytes:
        for weight in options.weights:
            rows = []
            for draw in range(options.seeds):
                rng = np.random.default_rng(draw)
                hidden = np.isin(np.arange(len(task.names)), rng.choice(len(task.names), UNLABELED_CLASSES, False))
                y = np.where(hidden[task.y_D], -1, task.y_D)
                hasher = RankingHasher(8 * n_bytes, random_state=draw, label_weight=weight, **settings)
                hasher, _ = task.fit(hasher, task.D, y)
                precision, unknown = task.average_precision(hasher), hidden[task.y_Q]
                rows.append([precision[~unknown].mean(), precision[unknown].mean(), *task.recall(hasher)])
            mean, spread = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1 if len(rows) > 1 else 0)
            names = ("labeled mAP", "unlabeled mAP", "neighbors Hamming", "asymmetric")
            cells = ", ".join(f"{n} {m:.1f} ± {s:.1f}" for n, m, s in zip(names, mean, spread, strict=True))
            print(f"{8 * n_bytes} bits, label_weight {weight}: {cells}", flush=True)
            precisions = (f"{m:.1f} ± {s:.1f}" for m, s in zip(mean[:2], spread[:2], strict=True))
            shown.append([f"{8 * n_bytes}", f"{weight:g}", *precisions, pair(mean[2:])])
    classes = "mAP, classes with labels", "mAP, classes without"
    record(options.json, ("bits", "`label_weight`", *classes, "float neighbors, Hamming / asymmetric"), shown)


def depth(task: Task, options: argparse.Namespace, settings: dict[str, Any]) -> None:
    """mAP over whole classes against recall of the nearest, by temperature; nothing sees labels."""
    rows, values = {chosen: ["{:g}, {:g}".format(*chosen)] for chosen in TEMPERATURES}, {}
    columns = ["`temperature`, `noise`"]
    for n_bytes in options.bytes:
        columns += [f"{8 * n_bytes} bits: mAP", "neighbors"]
        start = pca_sign(8 * n_bytes).fit(task.D)
        precision, found = task.average_precision(start).mean(), pair(task.recall(start))
        print(f"{8 * n_bytes} bits, PCA sign: mAP {precision:.1f}, neighbors {found}")
        values[f"pca_{8 * n_bytes}"] = round(precision, 1)
        for temperature, noise in TEMPERATURES:
            chosen = {"temperature": temperature, "noise": noise, **settings}
            hasher, _ = task.fit(RankingHasher(8 * n_bytes, random_state=0, **chosen), task.D)
            precision, found = task.average_precision(hasher).mean(), pair(task.recall(hasher))
            name = f"temperature {temperature}, noise {noise}"
            print(f"{8 * n_bytes} bits, {name}: mAP {precision:.1f}, neighbors {found}", flush=True)
            rows[temperature, noise] += [f"{precision:.1f}", found]
    record(options.json, columns, list(rows.values()), values)


def pca_sign(n_bits: int) -> SignCodes:
    """Signs of principal components."""
    return SignCodes(n_bits, features="pca")


def pair(values: Any) -> str:
    return " / ".join(f"{value:.1f}" for value in values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {"sizes": sizes, "domain": domain, "labels": labels, "depth": depth}
    parser.add_argument("part", choices=parts)
    parser.add_argument("--dataset", default="clinc150_minilm")
    parser.add_argument("--database", type=int, default=4760, help="rows to search in, for data without a test part")
    parser.add_argument("--metric", default="cosine", choices=("cosine", "euclidean"))
    parser.add_argument("--bytes", type=int, nargs="+", default=[8, 16])
    parser.add_argument("--encoders", nargs="+", choices=ENCODERS, default=["mlp", "linear"])
    parser.add_argument("--weights", type=float, nargs="+", default=[0.0, 0.1, 0.18, 0.3])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--full", action="store_true")
    add_option(parser)
    options = parser.parse_args()
    parts[options.part](Task(options), options, FULL if options.full else {})


if __name__ == "__main__":
    main()
