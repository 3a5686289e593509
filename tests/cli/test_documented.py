"""The session of docs/cli.md runs as it stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from hashlearn import load
from tests.cli.files import N, X, Y, invoke

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def test_the_commands_of_the_page_run(folder: Path) -> None:
    for package in ("onnxruntime", "pyarrow", "sqlite_vec", "apsw"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    np.savez("data.npz", X=X[:N], y=Y[:N])
    (session,) = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    lines = session.splitlines()
    assert len(lines) >= 10
    for line in lines:
        result = invoke(*shlex.split(line)[1:])
        assert (result.exit_code, result.stderr) == (0, ""), f"{line}\n{result.output}"
        assert result.stdout
    np.testing.assert_array_equal(np.load("codes.npy"), load("digits.hashlearn").encode(X[:N]))
