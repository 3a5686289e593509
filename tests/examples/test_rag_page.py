"""The program and the commands of docs/rag.md run as they are printed, against a real server."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hashlearn import load
from hashlearn.bits import hamming_distances
from hashlearn.search.about import About
from hashlearn.search.stores import PostgresStore
from tests.cli.files import invoke
from tests.search import server
from tests.search.codes import engine

PAGE = Path(__file__).parents[2] / "docs" / "rag.md"
N, WIDTH, DEPTH, K = 600, 192, 100, 5


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new database; docs.parquet is in the current folder."""
    pyarrow, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    base, name = server.start(), f"rag_{secrets.token_hex(4)}"
    with engine("psycopg").connect(base, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((40, WIDTH))[rng.integers(40, size=N)] + 0.7 * rng.standard_normal((N, WIDTH))
    columns = {
        "id": [f"doc-{i:04}" for i in range(N)],
        "lang": ["en", "de", "fr"] * (N // 3),
        "text": [f"it's text {i}" for i in range(N)],
        "embedding": vectors.astype(np.float32).tolist(),
    }
    parquet.write_table(pyarrow.table(columns), "docs.parquet")
    parquet.write_table(pyarrow.table(columns).slice(0, 3), "questions.parquet")
    assert base.count("/postgres?") == 1
    return base.replace("/postgres?", f"/{name}?")


def two_stages() -> list[str]:
    """What the program must print, computed here: nearest codes of English rows, then cosines."""
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table("docs.parquet")
    vectors = np.array(table["embedding"].to_pylist())
    ids, english = np.array(table["id"].to_pylist()), np.array(table["lang"].to_pylist()) == "en"
    codes = load("docs.hashlearn").encode(vectors.astype(np.float32))
    lines = []
    for query in range(3):
        rows = np.flatnonzero(english)
        far = hamming_distances(codes[query : query + 1], codes[rows])[0]
        near = rows[np.lexsort((ids[rows], far))][:DEPTH]
        lengths = np.linalg.norm(vectors[near], axis=1) * np.linalg.norm(vectors[query])
        cosines = vectors[near] @ vectors[query] / lengths
        best = np.argsort(-cosines, kind="stable")[:K]
        lines.append(" ".join(f"{ids[near[i]]} ({cosines[i]:.3f})" for i in best))
    return lines


def test_the_page(url: str) -> None:
    text = PAGE.read_text("utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for line in program.splitlines() if line.strip()]
    assert 15 < len(lines) <= 25
    environment = {**os.environ, "DATABASE_URL": url}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == two_stages()
    assert done.stdout.startswith("doc-0000 (1.000) ")

    commands = re.findall(r"^hashlearn .*$", text, re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        said = invoke(*shlex.split(command.replace('"$DATABASE_URL"', shlex.quote(url)))[1:])
        assert (said.exit_code, said.stderr) == (0, ""), said.output
    found = [re.findall(r"doc-\d+", line) for line in said.stdout.splitlines()]
    assert [ids[1 : K + 1] for ids in found] == [re.findall(r"doc-\d+", line) for line in two_stages()]
    with PostgresStore.open(url, About(128), table="codes") as store:
        assert (store.count(), store.count({"lang": "en"}), store.id_type) == (N, N // 3, "string")
