"""All bits at once against one SVC for each bit: fit and encode MNIST, in one interleaved run.

``python -m benchmarks.hash_function_speed`` learns 32 bits from 5,000 rows and encodes all 70,000, with `RBFSVM` and
with ``MultiOutputClassifier(SVC(kernel="rbf"))`` at the same γ and C, turn by turn. Codes are random words of the ten
labels. It prints seconds, their ratio, the share of equal bits, and how encoding compares with the bare product
rows × features × support vectors in the same run. The full size takes the peer an hour; ``--peer-encode-rows 7000`` has
it encode every tenth row and multiplies those seconds by ten (they are linear in rows).
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.multioutput import MultiOutputClassifier
from sklearn.svm import SVC

from benchmarks.bqp.mnist import data_file, read_idx, training_set
from hashlearn.core.threads import n_threads
from hashlearn.hash_functions import RBFSVM, KernelExpansion

TEST_IMAGES = "t10k-images-idx3-ubyte.gz"
PRODUCT_ROWS = 8192


class Turn(NamedTuple):
    """Seconds and codes of one fit and one encoding."""

    fit: float
    encode: float
    bits: NDArray[np.bool_]

    @property
    def both(self) -> float:
        return self.fit + self.encode


def main() -> None:
    options = _options()
    rng = np.random.default_rng(options.seed)
    train, labels = training_set()
    test = read_idx(data_file("mnist", TEST_IMAGES))
    everything = np.vstack([train, test.reshape(len(test), -1)]).astype(np.float32)
    learn = rng.permutation(len(train))[: options.rows]
    words = rng.choice(np.array([-1, 1], dtype=np.int8), size=(10, options.bits))
    X, codes, new = everything[learn], words[labels[learn]], everything[: options.encode_rows]
    print(f"{platform.machine()}, {os.cpu_count()} cores, {n_threads()} threads for ours, {options.jobs} for the peer")

    _ours(X[:300], codes[:300], new[:300], options)  # untimed: what the first call loads
    if options.peer_repeats:
        _peer(X[:300], codes[:300], new[:10], 1e-7, options)  # likewise, and its processes start
    ours: list[Turn] = []
    peers: list[Turn] = []
    products: list[float] = []
    for repeat in range(options.repeats):
        turn, fitted = _ours(X, codes, new, options)
        ours.append(turn)
        products.append(_plain_product(new, fitted.points))
        if repeat == 0:
            print(fitted.description)
        print(
            f"ours   fit {turn.fit:8.2f} s  encode {turn.encode:8.2f} s  bare product {products[-1]:.2f} s", flush=True
        )
        if repeat < options.peer_repeats:
            peers.append(_peer(X, codes, new[_peer_rows(options)], fitted.gamma, options))
            print(f"peer   fit {peers[-1].fit:8.2f} s  encode {peers[-1].encode:8.2f} s{_scaled(options)}", flush=True)
    _summary(ours, peers, products, _peer_rows(options))


def _ours(X: NDArray[Any], codes: NDArray[np.int8], new: NDArray[Any], options: Any) -> tuple[Turn, KernelExpansion]:
    spec = RBFSVM(C=options.C)
    fit, fitted = _timed(lambda: spec.fit(X, codes, np.random.default_rng(options.seed)))
    encode, bits = _timed(lambda: fitted.decision_function(new) >= 0)
    return Turn(fit, encode, bits), fitted


def _peer(X: NDArray[Any], codes: NDArray[np.int8], new: NDArray[Any], gamma: float, options: Any) -> Turn:
    model = MultiOutputClassifier(SVC(kernel="rbf", gamma=gamma, C=options.C), n_jobs=options.jobs)
    fit, _ = _timed(lambda: model.fit(X, codes))
    encode, predicted = _timed(lambda: model.predict(new))
    return Turn(fit, encode * _peer_rows(options).step, predicted > 0)


def _peer_rows(options: Any) -> slice:
    """Evenly spaced, about as many as asked for."""
    return slice(None, None, max(1, options.encode_rows // options.peer_encode_rows))


def _scaled(options: Any) -> str:
    step = _peer_rows(options).step
    return "" if step == 1 else f" (that of every {step}th row, times {step})"


def _plain_product(new: NDArray[Any], points: NDArray[Any]) -> float:
    """Seconds of new @ points.T with all BLAS threads, in blocks that reuse one buffer."""
    buffer = np.empty((PRODUCT_ROWS, len(points)), dtype=new.dtype)

    def product() -> None:
        for first in range(0, len(new), PRODUCT_ROWS):
            rows = new[first : first + PRODUCT_ROWS]
            np.matmul(rows, points.T, out=buffer[: len(rows)])

    return _timed(product)[0]


def _timed(function: Callable[[], Any]) -> tuple[float, Any]:
    start = perf_counter()
    result = function()
    return perf_counter() - start, result


def _summary(ours: list[Turn], peers: list[Turn], products: list[float], rows: slice) -> None:
    encode = median(turn.encode for turn in ours)
    print(f"encode: the bare product is {median(products) / encode:.0%} of our time (wanted: at least 60 %)")
    if not peers:
        return
    ratio = median(turn.both for turn in peers) / median(turn.both for turn in ours)
    equal = np.mean(ours[0].bits[rows] == peers[0].bits)
    print(f"fit + encode: {ratio:.1f} times faster (wanted: 10); equal bits {equal:.4%} (wanted: 99.9 %)")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5000, help="rows to learn from")
    parser.add_argument("--bits", type=int, default=32)
    parser.add_argument("--encode-rows", type=int, default=70_000)
    parser.add_argument("--peer-encode-rows", type=int, default=70_000, help="fewer: measured on a part and scaled")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peer-repeats", type=int, default=1, help="turns of the peer, 0 to leave it out")
    parser.add_argument("--jobs", type=int, default=n_threads(), help="processes of the peer")
    parser.add_argument("--C", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
