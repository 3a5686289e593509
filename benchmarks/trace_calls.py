"""Which files a fit and an encode visit: a measure of how far a reader has to walk.

    python -m benchmarks.trace_calls [--files]

Every file of the package is noted when one of its functions is called for the first time. A change of folder is counted
when two files that follow each other in that order are in different folders.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import hashlearn
from hashlearn import TwoStepHasher, distributed

ROOT = Path(hashlearn.__file__).parent


def visited(work: Callable[[], Any]) -> list[Path]:
    """Files of the package in the order of their first call."""
    seen: dict[Path, None] = {}

    def note(frame: Any, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(str(ROOT)):
            seen.setdefault(Path(name).relative_to(ROOT))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(seen)


def changes(files: list[Path]) -> int:
    """How often the folder changes from one file to the next."""
    folders = [file.parts[0] if len(file.parts) > 1 else "" for file in files]
    return sum(a != b for a, b in pairwise(folders))


def walks(passes: str) -> dict[str, Callable[[], Any]]:
    """The three fits, and the encode of each; ``passes`` is the solver that flips signs of many rows."""
    X, y = load_digits(return_X_y=True)
    many = np.random.default_rng(0).standard_normal((20_500, 8))
    fitted: dict[str, Any] = {}

    def labels() -> None:
        fitted["labels"] = TwoStepHasher(8, random_state=0).fit(X[:600], y[:600])

    def no_labels() -> None:
        hasher = TwoStepHasher(8, target="distance", solver=passes, random_state=0)
        fitted["no labels"] = hasher.fit(many)

    def blocks() -> None:
        fitted["blocks"] = distributed.fit(
            many, n_bits=8, n_workers=0, chunk_rows=5125, certify=True, n_sweeps=1, random_state=0
        )

    fits = {"labels": labels, "no labels": no_labels, "blocks": blocks}
    encodes = {
        f"encode, {name}": lambda name=name: fitted[name].encode(X if name == "labels" else many) for name in fits
    }
    return {**{f"fit, {name}": fit for name, fit in fits.items()}, **encodes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", action="store_true", help="print the files too")
    parser.add_argument("--passes", default="passes", help="the solver that flips signs of many rows")
    arguments = parser.parse_args()
    os.environ["HASHLEARN_NUM_THREADS"] = "1"
    for name, work in walks(arguments.passes).items():
        files = visited(work)
        print(f"{name:20} {len(files):3} files, {changes(files):3} changes of folder")
        if arguments.files:
            print("   ", " → ".join(str(file.with_suffix("")) for file in files))


if __name__ == "__main__":
    main()
