"""A new solver, target, hash function, hasher or store needs its file, its registry line and its changelog line.

Each toy of `tests/toys` is added by these edits to a copy of the repository. Then the generated page is written, and
the tests of the registries and the contract tests of every kind pass there.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from benchmarks.mutants.scratch import Scratch

ROOT = Path(__file__).parents[1]
TOYS = ROOT / "tests" / "toys"


class Kind(NamedTuple):
    """Where a new thing of this kind goes."""

    folder: str  # of its file, below src/hashlearn
    registry: str  # the file of its registry
    name: str  # of the registry
    contract: tuple[str, ...]  # tests that iterate over the registry


KINDS = {
    "toy_solver": Kind(
        "bqp/methods",
        "bqp/methods/__init__.py",
        "METHODS",
        ("tests/bqp/test_solve.py", "tests/inference/test_presets.py"),
    ),
    "toy_target": Kind("targets", "targets/__init__.py", "TARGETS", ("tests/targets/test_targets.py",)),
    "toy_hash_function": Kind(
        "hash_functions",
        "hash_functions/__init__.py",
        "HASH_FUNCTIONS",
        ("tests/hash_functions/test_every_method.py", "tests/persistence/test_round_trip.py"),
    ),
    "toy_hasher": Kind(
        "hashers/baselines",
        "hashers/__init__.py",
        "HASHERS",
        ("tests/hashers/test_contract.py", "tests/persistence/test_round_trip.py", "tests/persistence/test_onnx.py"),
    ),
    "toy_store": Kind(
        "search/stores",
        "search/stores/__init__.py",
        "STORES",
        ("tests/search/test_stores.py", "tests/search/test_stores_writers.py"),
    ),
}
PAGE = "docs/registry.md"


def class_name(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def edits(root: Path, name: str) -> dict[str, str]:
    """The new text of every file that is edited by hand, by path."""
    kind = KINDS[name]
    module = ".".join(["hashlearn", *kind.folder.split("/"), name])
    registry = f"src/hashlearn/{kind.registry}"
    begin = re.compile(rf"^{kind.name}: dict.* = {{\n", re.MULTILINE)
    line = f'    "{name}": {class_name(name)},\n'
    imported = f"from {module} import {class_name(name)}\n"
    return {
        f"src/hashlearn/{kind.folder}/{name}.py": (TOYS / f"{name}.py").read_text("utf-8"),
        registry: begin.sub(lambda found: imported + found[0] + line, (root / registry).read_text("utf-8")),
        "CHANGELOG.md": (root / "CHANGELOG.md").read_text("utf-8") + f"\n- `{class_name(name)}`.\n",
    }


def run(scratch: Scratch, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *words]
    environment = {**scratch.environment(), "PYTHONPATH": f"{scratch.root / 'src'}:{scratch.root}"}
    return subprocess.run(command, cwd=scratch.root, env=environment, capture_output=True, text=True, timeout=600)


def run_tests(scratch: Scratch, *paths: str, only: str) -> subprocess.CompletedProcess[str]:
    return run(scratch, "pytest", "-q", "-p", "no:cacheprovider", "-rf", *paths, "-k", only)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scratch]:
    """A copy in which every toy is added."""
    scratch = Scratch.copied(ROOT, tmp_path_factory.mktemp("adding") / "copy")
    for name in KINDS:
        for path, text in edits(scratch.root, name).items():
            (scratch.root / path).write_text(text, "utf-8")
    return scratch


def test_nothing_else_is_needed(scratch: Scratch) -> None:
    assert run(scratch, "benchmarks.registry_page", "--write").returncode == 0
    pages = ("tests/test_registries.py", "tests/test_docs.py", "tests/test_project.py")
    documents = run_tests(scratch, *pages, only="toy or page or extra")
    assert documents.returncode == 0, documents.stdout
    contracts = sorted({path for kind in KINDS.values() for path in kind.contract})
    done = run_tests(scratch, *contracts, only="toy or Toy")
    assert done.returncode == 0, done.stdout + done.stderr
    for name in KINDS:
        assert (ROOT / f"src/hashlearn/{KINDS[name].folder}/{name}.py").exists() is False
