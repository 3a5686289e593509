"""What has a name is public, on the page of all names, in the changelog, and offered by the commands.

Nothing here is a list of names: a new entry of a registry is checked without a change of this file.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

from benchmarks import registry_page
from hashlearn import bqp, hash_functions, hashers, inference, targets
from hashlearn.cli import main
from hashlearn.experiments.bench.methods import METHODS
from hashlearn.search import stores

ROOT = Path(__file__).parents[1]
# Each registry of classes with its package, and with the base class of its entries.
CLASSES: dict[str, tuple[Mapping[str, Any], Any, type]] = {
    "solver": (bqp.METHODS, bqp, bqp.Solver),
    "target": (targets.TARGETS, targets, targets.Target),
    "hash function": (hash_functions.HASH_FUNCTIONS, hash_functions, hash_functions.HashFunction),
    "hasher": (hashers.HASHERS, hashers, hashers.BaseHasher),
    "store": (stores.STORES, stores, stores.Store),
}
# Where the shell completes a name.
OPTIONS = {
    "solver": ["fit --solver", "bqp --method"],
    "preset": ["fit --solver"],
    "target": ["fit --target"],
    "hash function": ["fit --hash-function"],
    "hasher": ["fit --method"],
}
ENTRIES = [(kind, name, made) for kind, (registry, _, _) in CLASSES.items() for name, made in registry.items()]
PRESETS = [("preset", name, preset) for name, preset in inference.PRESETS.items()]
STARTS = [("start", name, start) for name, start in inference.STARTS.items()]


def entries(*lists: list[tuple[str, str, Any]]) -> Any:
    chosen = [entry for entries in lists for entry in entries]
    return pytest.mark.parametrize(("kind", "name", "made"), chosen, ids=[f"{kind} {name}" for kind, name, _ in chosen])


@entries(ENTRIES)
def test_it_is_public_and_has_its_name(kind: str, name: str, made: Any) -> None:
    _, package, base = CLASSES[kind]
    assert made.__name__ in package.__all__
    assert getattr(package, made.__name__) is made
    assert getattr(made, "name", name) == name
    if kind == "solver":  # a protocol; the others have a base class
        assert isinstance(made(), base)
    else:
        assert issubclass(made, base)


def test_the_page_of_all_names_is_that_of_the_registries() -> None:
    written = registry_page.PAGE.read_text("utf-8")
    assert written == registry_page.page(), "run python -m benchmarks.registry_page --write"


@entries(ENTRIES, PRESETS, STARTS)
def test_it_has_a_row_on_the_page(kind: str, name: str, made: Any) -> None:
    rows = [line for line in registry_page.page().splitlines() if line.startswith((f'| `"{name}"` |', f"| `{name}` |"))]
    assert rows
    if kind != "preset":
        assert inspect.getdoc(made)
        assert registry_page.summary(made).endswith("."), "its docstring must begin with a whole sentence"
        assert any(f"`{made.__name__}` | {registry_page.summary(made)} |" in row for row in rows)


@entries(ENTRIES, PRESETS, STARTS)
def test_the_changelog_names_it(kind: str, name: str, made: Any) -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f'`"{name}"`' in text or f"`{made.__name__}`" in text


@entries([entry for entry in [*ENTRIES, *PRESETS] if entry[0] in OPTIONS])
def test_commands_offer_it(kind: str, name: str, made: Any) -> None:
    complete = BashComplete(main, {}, "hashlearn", "_HASHLEARN_COMPLETE")
    for words in OPTIONS[kind]:
        command, option = words.split()
        assert name in {item.value for item in complete.get_completions([command, option], name)}
        text = " ".join(CliRunner().invoke(main, [command, "--help"]).stdout.split())
        assert f" {name}," in text or f" {name}." in text


def test_every_hasher_is_compared_by_some_method() -> None:
    assert {method.hasher for method in METHODS.values()} >= set(hashers.HASHERS)


@pytest.mark.parametrize("name", stores.STORES)
def test_a_store_can_be_installed(name: str) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert stores.STORES[name].extra in extras
