"""Under ``python -O`` asserts are gone, FAISS's check of widths among them; ours stay."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

from tests.search.codes import EXACT

CODE = """
import sys, numpy as np
from hashlearn.search import HammingIndex
assert False, "asserts are on"
wrong = [np.zeros((1, 1), np.uint8), np.zeros((1, 3), np.uint8), np.zeros((1, 2), np.int32), np.zeros(2, np.uint8)]
for backend in sys.argv[1:]:
    index = HammingIndex(16, backend)
    index.add(np.arange(20, dtype=np.uint8).reshape(10, 2))
    calls = [lambda bad: index.search(bad, 1), lambda bad: index.search_radius(bad, 1), index.add]
    for call, bad in [(call, bad) for call in calls for bad in wrong]:
        try:
            call(bad)
        except (TypeError, ValueError):
            continue
        print("accepted", bad.shape, bad.dtype)
    for k in (0, 11):
        try:
            index.search(np.zeros((1, 2), np.uint8), k)
        except ValueError:
            continue
        print("accepted k =", k)
    print(backend, len(index), index.search(np.zeros((1, 2), np.uint8), 1).indices)
"""


def test_wrong_codes_are_refused_without_asserts() -> None:
    backends = [backend for backend in EXACT if backend == "numpy" or find_spec("faiss")]
    command = [sys.executable, "-O", "-c", CODE, *backends]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == [f"{backend} 10 [[0]]" for backend in backends]
