"""The page docs/registry.md: everything that is chosen by name, generated from the registries and their docstrings.

python -m benchmarks.registry_page            # prints the page
python -m benchmarks.registry_page --write    # writes docs/registry.md
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hashlearn import bqp, hash_functions, hashers, inference, targets
from hashlearn.inference.presets import described
from hashlearn.search import stores

PAGE = Path(__file__).parents[1] / "docs" / "registry.md"
HEAD = """# Everything that has a name

`python -m benchmarks.registry_page --write` generates this page from the registries. A name stands for the class with
its defaults, wherever it is written; an object of the class gives full control.
"""
CLASSES = "| name | class or function | what it is |\n|---|---|---|"


def page() -> str:
    """The whole document."""
    sections = [
        _section("Solvers", "bqp.METHODS", "`bqp.solve(method=…)` and `TwoStepHasher(solver=…)`", bqp.METHODS),
        _presets(),
        _section("Targets", "targets.TARGETS", "`TwoStepHasher(target=…)`", targets.TARGETS),
        _section("Starts", "inference.STARTS", "`TwoStepHasher(init=…)`", inference.STARTS),
        _section("Hash functions", "hash_functions.HASH_FUNCTIONS", "`hash_function=…`", hash_functions.HASH_FUNCTIONS),
        _section("Hashers", "hashers.HASHERS", "`hashlearn fit --method …`", hashers.HASHERS),
        _stores(),
    ]
    return "\n".join([HEAD, *sections])


def summary(thing: Any) -> str:
    """The whole sentences of a docstring's first paragraph, on one line.

    >>> summary(bqp.Exact)
    'Tries all signs of up to 24 variables, or distinct rows: the optimum, with a bound that proves it.'
    """
    paragraph = " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())
    return paragraph[: paragraph.rfind(".") + 1].replace("|", r"\|")


def _section(title: str, registry: str, use: str, entries: Mapping[str, Any]) -> str:
    rows = [f'| `"{name}"` | `{kind.__name__}` | {summary(kind)} |' for name, kind in entries.items()]
    return "\n".join([f"## {title}\n\n`{registry}`, for {use}.\n", CLASSES, *rows, ""])


def _presets() -> str:
    rows = []
    for name, preset in inference.PRESETS.items():
        rows.append(f'| `"{name}"` | `{type(preset).__name__}` | {described(preset)} |')
    about = "`inference.PRESETS`, for `TwoStepHasher(solver=…)`.\n"
    return "\n".join([f"## Presets of solvers\n\n{about}", CLASSES, *rows, ""])


def _stores() -> str:
    rows = [
        f"| `{name}` | `{kind.__name__}` | {summary(kind)} | `{kind.extra}` |" for name, kind in stores.STORES.items()
    ]
    about = "`search.stores.STORES`: databases and indexes that hold codes. [Search](searching.md) compares them.\n"
    head = "| name | class | what it is | extra |\n|---|---|---|---|"
    return "\n".join([f"## Stores\n\n{about}", head, *rows, ""])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write docs/registry.md")
    if parser.parse_args().write:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page())
