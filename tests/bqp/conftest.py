"""What the tests of solvers share."""

from collections.abc import Iterator

import pytest

from hashlearn.core.threads import one_blas_thread


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """As inside `solve`: two pools of threads would fight over the cores."""
    with one_blas_thread():
        yield
