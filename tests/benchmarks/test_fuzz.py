"""Every fuzz target for a part of a minute; HASHLEARN_FUZZ_SECONDS makes it longer, HASHLEARN_FUZZ_SEED another one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from benchmarks.fuzz.__main__ import fuzz
from benchmarks.fuzz.worker import TARGETS

SECONDS = float(os.environ.get("HASHLEARN_FUZZ_SECONDS", "20")) / len(TARGETS)
SEED = int(os.environ.get("HASHLEARN_FUZZ_SEED", "0"))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is limited by what /proc says is in use")
@pytest.mark.parametrize("name", TARGETS)
def test_no_mutated_file_does_harm(name: str, tmp_path: Path) -> None:
    report = fuzz(name, tmp_path, seconds=SECONDS, seed=SEED)
    assert not report.failures, "\n".join(report.failures)
    assert report.counts["works"] > 0
    assert report.counts["refused"] > 0 or name == "shards"  # a damaged shard is made again
