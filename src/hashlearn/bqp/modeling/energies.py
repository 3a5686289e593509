"""`qubo` and `ising`: energies over 0 and 1, or over spins ±1, from arrays, sparse matrices, dicts and dimod models.

In every form each entry counts once: a pair (u, v) has the coefficient of (u, v) plus that of (v, u), as in dimod. So
an array stands for zᵀQz or sᵀJs, and only Q + Qᵀ matters. Reading is O(number of entries).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from hashlearn.bqp.modeling.labels import Terms, real_number
from hashlearn.bqp.modeling.matrices import entries, finite_numbers
from hashlearn.bqp.modeling.problem import Problem
from hashlearn.bqp.modeling.solutions import IsingSolution, QuboSolution, solved
from hashlearn.core.arrays import FloatArray, IntArray


def qubo(
    Q: Any,
    *,
    linear: Any = None,
    offset: float = 0.0,
    sense: Literal["min", "max"] = "min",
    fixed: Mapping[Any, int] | None = None,
    **options: Any,
) -> QuboSolution:
    """Minimize (or maximize) zᵀQz + linearᵀz + offset over z of 0 and 1, with a proven bound.

    Parameters
    ----------
    Q : one of

        - a square array or scipy.sparse matrix. Any one will do, upper triangular or symmetric: the energy is zᵀQz, so
          only Q + Q.T matters, and a diagonal entry is linear.
        - a dict ``{(u, v): coefficient}`` with any labels, as in dimod: (u, v) and (v, u) add up, (u, u) is linear
        - a dimod ``BinaryQuadraticModel``. It keeps its labels; one of spins is solved over −1 and +1.
    linear : linear coefficients, as an array for a matrix or as a dict for a dict; None for 0
    offset : a constant
    sense : "min" or "max"
    fixed : variables that are given, as ``{label: 0 or 1}`` (for a matrix the label is the index)
    **options : passed to `solve`: ``method``, ``time_limit``, ``random_state``, ``max_iter``, ``verbose``; ``x0``
        with values 0 and 1 and ``progress`` are in the words of the QUBO

    Returns
    -------
    QuboSolution

    Examples
    --------
    >>> from hashlearn import bqp
    >>> answer = bqp.qubo({("a", "a"): -3, ("b", "b"): -2, ("a", "b"): 4}, method="exact")
    >>> answer.energy, answer.lower_bound, answer.assignment
    (-3.0, -3.0, {'a': 1, 'b': 0})
    >>> bqp.qubo([[2, -3], [0, 1]], sense="max", method="exact").assignment.tolist()
    [1, 0]
    """
    problem = qubo_problem(Q, linear=linear, offset=offset, sense=sense)
    return solved(QuboSolution, problem, fixed, options)


def qubo_problem(Q: Any, *, linear: Any = None, offset: float = 0.0, sense: Literal["min", "max"] = "min") -> Problem:
    """The `Problem` of a QUBO, as `qubo` takes it.

    >>> from hashlearn import bqp
    >>> bqp.qubo_problem([[1, -3], [0, 1]], sense="max")
    Problem(max qubo, n=2, terms=3)
    """
    if sense not in ("min", "max"):
        raise ValueError(f"sense must be 'min' or 'max', got {sense!r}")
    maximize, offset = sense == "max", real_number(offset, "offset")
    dimod = sys.modules.get("dimod")
    if dimod is not None and isinstance(Q, dimod.BinaryQuadraticModel):
        if linear is not None or offset:
            raise ValueError("linear and offset belong to the model here; leave them out, or change the model")
        return model_problem(Q, maximize)
    if isinstance(Q, Mapping):
        return _of_dict("qubo", linear, Q, offset, maximize, "Q", "linear")
    n, i, j, w = entries(Q, "Q")
    return _with_linear(Problem("qubo", n, i, j, w, offset, maximize), linear, "linear")


def ising(
    h: Any = None,
    J: Any = None,
    offset: float = 0.0,
    *,
    fixed: Mapping[Any, int] | None = None,
    **options: Any,
) -> IsingSolution:
    """Minimize Σ h_i s_i + Σ J_ij s_i s_j + offset over spins s of −1 and +1, with a proven bound.

    Parameters
    ----------
    h : fields, as a dict from label or as an array; None for 0
    J : couplings, as a dict ``{(u, v): coefficient}``, a square array or a scipy.sparse matrix with zero diagonal.
        Every entry counts, as in dimod: a pair has the coefficient of (u, v) plus that of (v, u). A symmetric array
        counts every pair twice; pass ``np.triu(J)`` if that is not meant.
    offset : a constant
    fixed : spins that are given, as ``{label: -1 or 1}``
    **options : as for `qubo`

    Returns
    -------
    IsingSolution

    Examples
    --------
    >>> from hashlearn import bqp
    >>> answer = bqp.ising({"a": 0.5}, {("a", "b"): 1.0, ("b", "c"): -2.0}, method="exact")
    >>> answer.energy, answer.status.value, answer.spins
    (-3.5, 'optimal', {'a': -1, 'b': 1, 'c': 1})
    """
    return solved(IsingSolution, ising_problem(h, J, offset), fixed, options)


def ising_problem(h: Any = None, J: Any = None, offset: float = 0.0) -> Problem:
    """The `Problem` of an Ising model, as `ising` takes it.

    >>> from hashlearn import bqp
    >>> bqp.ising_problem([1.0, -1.0], [[0.0, 2.0], [0.0, 0.0]])
    Problem(min ising, n=2, terms=3)
    """
    if h is None and J is None:
        raise ValueError("ising needs h or J; both are None")
    offset = real_number(offset, "offset")
    if isinstance(J, Mapping) or (J is None and isinstance(h, Mapping)):
        problem = _of_dict("ising", h, J or {}, offset, False, "J", "h")
    elif isinstance(h, Mapping):
        raise TypeError("h is a dict of labels, and J a matrix; pass both as dicts, or both as arrays")
    elif J is None:
        field = finite_numbers(h, "h")
        none = np.empty(0, np.int64)
        problem = _with_linear(Problem("ising", field.size, none, none, np.empty(0), offset), h, "h")
    else:
        n, i, j, w = entries(J, "J")
        _require_no_diagonal(i, j, w)
        problem = _with_linear(Problem("ising", n, i, j, w, offset), h, "h")
    return problem


def model_problem(model: Any, maximize: bool = False) -> Problem:
    """The `Problem` of a dimod ``BinaryQuadraticModel``: its energy, its labels, its kind of variables."""
    sense: Literal["qubo", "ising"] = "ising" if model.vartype.name == "SPIN" else "qubo"
    offset = real_number(model.offset, "the offset of the model")
    labels = tuple(model.variables)
    linear, (rows, columns, biases), _ = model.to_numpy_vectors(variable_order=labels)
    own = np.arange(len(labels))
    i, j = (np.concatenate(parts).astype(np.int64) for parts in ((own, rows), (own, columns)))
    w = finite_numbers(
        np.concatenate([linear, biases]).astype(np.float64),
        "the model",
        lambda k: f"the bias of ({labels[i[k]]!r}, {labels[j[k]]!r})",
    )
    return Problem(sense, len(labels), i, j, w, offset, maximize, labels)


def _of_dict(
    sense: Literal["qubo", "ising"], linear: Any, pairs: Any, offset: float, maximize: bool, name: str, linear_name: str
) -> Problem:
    if linear is not None and not isinstance(linear, Mapping):
        raise TypeError(f"{name} is a dict of labels, so {linear_name} must be a dict too, got {type(linear).__name__}")
    if sp.issparse(pairs) or not isinstance(pairs, Mapping):
        raise TypeError(f"{name} must be a dict here, got {type(pairs).__name__}")
    terms = Terms()
    for label, bias in (linear or {}).items():
        terms.add(label, label, bias, f"{linear_name} of")
    for key, coefficient in pairs.items():
        if not isinstance(key, tuple) or len(key) != 2:
            raise ValueError(f"{name} must have pairs of labels (u, v) as keys, got {key!r}")
        if sense == "ising" and key[0] == key[1]:
            raise ValueError(f"J has the pair {key!r}, but s² is always 1: add its coefficient to the offset")
        terms.add(key[0], key[1], coefficient, f"{name} of")
    return Problem(sense, len(terms.number), *terms.arrays(), offset, maximize, terms.labels)


def _with_linear(problem: Problem, linear: Any, name: str) -> Problem:
    """The problem of a matrix with linear terms added."""
    if linear is None:
        return problem
    if isinstance(linear, Mapping):
        raise TypeError(f"{name} must be an array here, since the matrix has no labels; got a dict")
    bias = finite_numbers(linear.toarray().ravel() if sp.issparse(linear) else linear, name)
    if bias.shape != (problem.n,):
        raise ValueError(f"{name} must have {problem.n} entries, one for each variable, got shape {bias.shape}")
    own = np.arange(problem.n)
    i, j = np.concatenate([problem.i, own]), np.concatenate([problem.j, own])
    return Problem(problem.sense, problem.n, i, j, np.append(problem.w, bias), problem.offset, problem.maximize)


def _require_no_diagonal(i: IntArray, j: IntArray, w: FloatArray) -> None:
    diagonal = np.flatnonzero((i == j) & (w != 0.0))
    if len(diagonal):
        k = int(i[diagonal[0]])
        raise ValueError(
            f"J[{k}, {k}] = {w[diagonal[0]]:.6g}, but s² is always 1: set the diagonal to 0 and add its sum to offset"
        )
