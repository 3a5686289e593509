"""Every fit of the table gives what is on record: the same codes on the same machine, as good ones on any other.

A difference that is meant is recorded by ``python -m tests.regression.fits --record``. When two results count as equal
is said in `tests.regression.record.difference`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
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


def test_this_run_compares_codes_and_not_only_objectives() -> None:
    made_by, recorded = record.read()
    if others := record.other_facts(made_by):
        pytest.skip(f"the record was made on another machine, so objectives decide: {others}")
    name = next(name for name, fit in FITS.items() if not fit.needs)
    assert codes_of(FITS[name]).digest() == recorded[name].digest


def test_record_and_table_name_the_same_fits() -> None:
    assert set(record.read()[1]) == set(FITS)


def _result(signs: list[int], objective: float = float("nan"), **numbers: Any) -> record.Result:
    return record.Result(8, {"training": np.array(signs, dtype=np.uint8)[:, None]}, objective, **numbers)


@pytest.mark.parametrize(
    ("objective", "passes"), [(10.0, True), (10.19, True), (10.21, False), (3.0, True), (float("nan"), False)]
)
@pytest.mark.parametrize("negative", [False, True])
def test_elsewhere_the_objective_decides(objective: float, passes: bool, negative: bool) -> None:
    shift = -20.0 if negative else 0.0  # values of problems may be negative; 2 % of -10 is 0.2 as well
    before = _result([0] * 9, 10.0 + shift, bound=1.0).recorded()
    other_codes = _result([255] * 9, objective + shift, bound=2.0, status="3 sweeps")
    assert (not record.difference(other_codes, before, same_machine=False)) == passes
    assert record.difference(other_codes, before, same_machine=True)


def test_elsewhere_bits_decide_only_without_an_objective() -> None:
    before = _result([0] * 100).recorded()
    assert not record.difference(_result([255] * 3 + [0] * 97), before, same_machine=False)
    assert record.difference(_result([255] * 4 + [0] * 96), before, same_machine=False)
    assert record.difference(_result([0] * 99), before, same_machine=False)


@pytest.mark.parametrize(
    ("result", "same"),
    [
        (_result([7, 1], 2.0, bound=1.0), True),
        (_result([7, 1], 2.0 + 1e-6, bound=1.0), False),
        (_result([7, 1], 2.0, bound=1.0 - 1e-6), False),
        (_result([7, 1], 2.0, bound=1.0, status="proven"), False),
        (_result([7, 3], 2.0, bound=1.0), False),
    ],
)
def test_on_the_machine_of_the_record_everything_is_equal(result: record.Result, same: bool) -> None:
    assert (not record.difference(result, _result([7, 1], 2.0, bound=1.0).recorded(), same_machine=True)) == same
