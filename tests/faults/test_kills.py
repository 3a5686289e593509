"""Kills at random moments of encode, distributed.encode, export and fit; HASHLEARN_KILLS sets how many of each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

KILLS = int(os.environ.get("HASHLEARN_KILLS", "2"))
ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kills_leave_nothing_mixed_and_nothing_half_written():
    works = ["encode", "distributed", "fit"]
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401

        works.append("onnx")
    except ImportError:
        pass
    command = [sys.executable, "-m", "benchmarks.kills", "--kills", str(KILLS), "--works", *works]
    one_thread = dict.fromkeys(("HASHLEARN_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, timeout=120 + 20 * KILLS, env={**os.environ, **one_thread}
    )
    counts = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["killed"] for row in counts] == [KILLS] * len(works), done.stderr
    assert [row["wrong"] for row in counts] == [0] * len(works)
