"""Save in child processes that are killed at random moments; after each kill the file must load as one of two models.

    python killed_saves.py PATH KILLS

Prints counts as JSON. A process of its own, so that the tests' one is never forked.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

from hashlearn import load
from hashlearn.core.atomic_files import UNFINISHED
from hashlearn.hashers import LSH


def main(path: Path, kills: int) -> None:
    rows = np.random.default_rng(0).standard_normal((50, 2000))
    models = [LSH(n_bits=64, random_state=seed).fit(rows) for seed in (0, 1)]  # 1 MB each
    answers = [model.encode(rows).tobytes() for model in models]
    assert answers[0] != answers[1]
    models[0].save(path)
    counts = {"kills": 0, "loaded": 0, "half_written": 0}
    # Goes on past ``kills`` until one has hit in the middle: on a busy machine children may not get that far.
    while counts["kills"] < kills or (counts["half_written"] == 0 and counts["kills"] < 50 * kills):
        child = os.fork()
        if child == 0:
            while True:
                for model in models:
                    model.save(path)
        time.sleep(random.uniform(0.001, 0.03))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        counts["kills"] += 1
        counts["loaded"] += load(path).encode(rows).tobytes() in answers
        for left in path.parent.glob(f"*{UNFINISHED}"):
            counts["half_written"] += 1
            left.unlink()
    sys.stdout.write(json.dumps(counts) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
