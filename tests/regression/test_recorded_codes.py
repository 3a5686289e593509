"""Every fit of the table gives the codes that are on record.

A difference that is meant is recorded by ``python -m tests.regression.fits --record``. When two results count as equal
is said in `tests.regression.record.difference`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.regression import record
from tests.regression.fits import FITS, codes_of, dask_client, missing_packages

pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """One Dask client for all fits that need it."""
    opened = dask_client()
    yield opened
    opened.close()


@pytest.mark.parametrize("name", FITS)
def test_codes_are_those_on_record(name: str, request: pytest.FixtureRequest) -> None:
    fit = FITS[name]
    if missing := missing_packages(fit):
        pytest.skip(f"{', '.join(missing)} is not installed")
    made_by, recorded = record.read()
    result = codes_of(fit, request.getfixturevalue("client") if fit.way == "dask" else None)
    assert not record.difference(result, recorded[name], same_machine=made_by == record.fingerprint())


def test_record_and_table_name_the_same_fits() -> None:
    assert set(record.read()[1]) == set(FITS)
