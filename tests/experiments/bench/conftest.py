"""The bench's registries with the fakes in them, for one test at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hashlearn.experiments.bench.methods import METHODS
from hashlearn.hashers import HASHERS
from tests.experiments.bench import fakes


@pytest.fixture(autouse=True)
def _fake_methods() -> Iterator[None]:
    before = dict(METHODS), dict(HASHERS)
    fakes.register()
    yield
    for registry, content in zip((METHODS, HASHERS), before, strict=True):
        registry.clear()
        registry.update(content)  # type: ignore[arg-type]
