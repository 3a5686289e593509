"""A small collection with classes, texts and images, the page of it, and what stands in a page."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from hashlearn.hashers import LSH

N, N_BITS = 400, 44  # 44 bits: codes of 6 bytes, which fill no whole words
X, Y = (part[:N] for part in load_digits(return_X_y=True))
IMAGES = np.rint(X.reshape(-1, 8, 8) * 15.9).astype(np.uint8)
NAMES = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
LABELS = NAMES[Y]
TEXTS = [f"a handwritten {name}, sample {row}" for row, name in enumerate(LABELS)]
HASHER = LSH(n_bits=N_BITS, random_state=0).fit(X)
CODES = HASHER.encode(X)


def data_of(path: Path) -> dict[str, Any]:
    """The data in a page."""
    (text,) = re.findall(
        r'<script type="application/json" id="data">(.*?)</script>', path.read_text("utf-8"), re.DOTALL
    )
    data: dict[str, Any] = json.loads(text)
    return data


def decoded(text: str, dtype: Any) -> NDArray[Any]:
    return np.frombuffer(base64.b64decode(text), dtype)


def ranking(row: int, n_bits: int) -> tuple[list[int], NDArray[np.int64]]:
    """Other rows by Hamming distance of the first bits, equal distances by row, and all distances."""
    bits = np.unpackbits(CODES, axis=1)[:, :n_bits].astype(np.int64)
    distances = np.abs(bits - bits[row]).sum(axis=1)
    order = np.argsort(distances, kind="stable")
    return order[order != row].tolist(), distances
