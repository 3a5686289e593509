"""scikit-learn's own checks, for every solver and every hash function. No check is expected to fail.

"exact" and "branch_and_bound" are not among the solvers: they are made for few variables.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from hashlearn import TwoStepHasher, bqp
from hashlearn.hash_functions import HASH_FUNCTIONS, Trees
from hashlearn.hashers import HASHERS

SMALL = {"trees": Trees(n_trees=5)}


def configurations():
    for solver in bqp.METHODS:
        if solver not in ("exact", "branch_and_bound"):
            yield TwoStepHasher(n_bits=3, solver=solver, hash_function="kernel_ridge", n_sweeps=1)
    for name in HASH_FUNCTIONS:
        yield TwoStepHasher(n_bits=3, solver="local_search", hash_function=SMALL.get(name, name), n_sweeps=1)


@parametrize_with_checks(list(configurations()))
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_registry_knows_the_estimators():
    assert HASHERS["two_step"] is TwoStepHasher
