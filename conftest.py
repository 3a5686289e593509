"""Modules that import PyTorch at their top are left out of the doctests where it is not installed."""

import re
from importlib.util import find_spec
from pathlib import Path

SOURCE = Path(__file__).with_name("src")
IMPORTS_TORCH = re.compile(r"^(import|from) torch\b", re.MULTILINE)


def _needs_torch(module: Path) -> bool:
    return bool(IMPORTS_TORCH.search(module.read_text("utf-8")))


collect_ignore = [] if find_spec("torch") else list(filter(_needs_torch, SOURCE.rglob("*.py")))
