"""The example runs against a real server, finds the right digits, and is as short as it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.search import server

EXAMPLE = Path(__file__).parents[2] / "examples" / "postgres_search.py"


def test_it_finds_digits_like_the_ones_asked_for() -> None:
    command = [sys.executable, str(EXAMPLE), server.start()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"a (\d): nearest are \[([\d ]+)\]", done.stdout)
    assert len(lines) == 5
    assert sum(near.split().count(digit) for digit, near in lines) >= 20
