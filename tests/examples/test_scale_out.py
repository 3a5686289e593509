"""The recipes of docs/scale-out.md are run as they are printed; each writes the codes of `hasher.encode`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hashlearn.hashers import ITQ

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

PAGE = Path(__file__).parents[2] / "docs" / "scale-out.md"
RECIPES = {"Ray": "ray", "Spark": "pyspark", "Polars": "polars", "DuckDB": "duckdb"}
N_FILES, N_ROWS = 3, 20


def recipe(heading: str) -> str:
    section = PAGE.read_text("utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    (text,) = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return text


@pytest.fixture
def codes(tmp_path: Path) -> dict[str, tuple[str, bytes]]:
    """Write rows and a model; what should come out, by id."""
    X = np.random.default_rng(0).standard_normal((N_FILES * N_ROWS, 8)).astype(np.float32)
    hasher = ITQ(n_bits=8, random_state=0).fit(X)
    hasher.save(tmp_path / "model.hashlearn", codes=False)
    (tmp_path / "rows").mkdir()
    ids = [f"doc-{row}'\n" for row in range(len(X))]
    languages = ["en", "de"] * (len(X) // 2)
    for part in range(N_FILES):
        rows = slice(part * N_ROWS, (part + 1) * N_ROWS)
        vectors = pyarrow.array(X[rows].tolist(), pyarrow.list_(pyarrow.float32()))
        table = pyarrow.table({"id": ids[rows], "lang": languages[rows], "x": vectors})
        parquet.write_table(table, tmp_path / "rows" / f"part-{part}.parquet")
    found = zip(languages, hasher.encode(X), strict=True)
    return dict(zip(ids, ((language, code.tobytes()) for language, code in found), strict=True))


@pytest.mark.parametrize("heading", RECIPES)
def test_a_recipe_writes_the_codes_of_the_model(
    heading: str, codes: dict[str, tuple[str, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(RECIPES[heading])
    monkeypatch.chdir(tmp_path)
    if heading in ("Ray", "Spark"):  # they start processes, which end with this one
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        script = [sys.executable, "-c", recipe(heading)]
        done = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
    else:
        exec(compile(recipe(heading), heading, "exec"), {})
    outputs = [path for path in tmp_path.rglob("*.parquet") if path.is_file() and path.parent.name != "rows"]
    tables = [parquet.ParquetFile(path).read() for path in outputs]
    assert sum(len(table) for table in tables) == len(codes)
    assert all(table.column_names == ["id", "lang", "code"] for table in tables)
    rows = [row for table in tables for row in table.to_pylist()]
    assert {row["id"]: (row["lang"], row["code"]) for row in rows} == codes


def test_every_recipe_is_tested() -> None:
    headings = re.findall(r"^## (.*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert {*headings} - {"Dask"} == {*RECIPES}
