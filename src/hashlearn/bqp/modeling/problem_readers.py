"""Problems from what people have: graphs and matrices for max-cut, dicts, matrices and dimod models for energies.

`max_cut_problem` takes networkx, scipy.sparse, arrays and lists of edges: cut(x) = Σ w_ij (1 − x_i x_j) / 2 over the
edges. In `qubo_problem` and `ising_problem` each entry counts once: a pair (u, v) has the coefficient of (u, v) plus
that of (v, u), as in dimod. So an array stands for zᵀQz or sᵀJs, and only Q + Qᵀ matters. Cost: O(number of terms).
"""

from __future__ import annotations

import math
import numbers
import sys
import warnings
from array import array
from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from hashlearn.bqp.modeling.problem import Problem
from hashlearn.core.arrays import FloatArray, IntArray
from hashlearn.core.checks import SYMMETRY_TOLERANCE, numeric_array, require_whole

Labels = tuple[Hashable, ...]
Terms = tuple[IntArray, IntArray, FloatArray]  # i, j, w


def max_cut_problem(graph: Any, *, weight: str = "weight") -> Problem:
    """The `Problem` of the largest cut of a graph, as `max_cut` takes it.

    >>> from hashlearn import bqp
    >>> bqp.max_cut_problem([("a", "b"), ("b", "c")])
    Problem(max-cut, n=3, terms=2)
    """
    networkx = sys.modules.get("networkx")
    if sp.issparse(graph) or hasattr(graph, "__array__"):
        n, i, j, w = _symmetric_terms(graph, "graph")
        return Problem("max-cut", n, i, j, w, maximize=True)
    if networkx is not None and isinstance(graph, networkx.Graph):
        if graph.is_directed():
            raise ValueError("graph is directed, and a cut has no direction; pass graph.to_undirected()")
        labels, (i, j, w) = _labeled(graph.edges(data=weight, default=1), graph.nodes)
    elif isinstance(graph, str | bytes | Mapping) or not isinstance(graph, Iterable):
        raise TypeError(
            "graph must be a networkx graph, a symmetric array or sparse matrix, or a list of edges (u, v) or "
            f"(u, v, w), got {type(graph).__name__}"
        )
    else:
        labels, (i, j, w) = _labeled(_edges(graph))
    problem = Problem("max-cut", len(labels), i, j, w, maximize=True, labels=labels)
    for note in problem.notes:
        if "parallel" in note:  # which may be a mistake; a self-loop changes no cut
            warnings.warn(f"graph has {note}", UserWarning, stacklevel=3)
    return problem


def qubo_problem(Q: Any, *, linear: Any = None, offset: float = 0.0, sense: Literal["min", "max"] = "min") -> Problem:
    """The `Problem` of a QUBO, as `qubo` takes it.

    >>> from hashlearn import bqp
    >>> bqp.qubo_problem([[1, -3], [0, 1]], sense="max")
    Problem(max qubo, n=2, terms=3)
    """
    if sense not in ("min", "max"):
        raise ValueError(f"sense must be 'min' or 'max', got {sense!r}")
    dimod = sys.modules.get("dimod")
    if dimod is None or not isinstance(Q, dimod.BinaryQuadraticModel):
        return _energy_problem("qubo", {"linear": linear, "Q": Q}, offset, sense == "max")
    if linear is not None or offset:
        raise ValueError("linear and offset belong to the model here; leave them out, or change the model")
    return model_problem(Q, sense == "max")


def ising_problem(h: Any = None, J: Any = None, offset: float = 0.0) -> Problem:
    """The `Problem` of an Ising model, as `ising` takes it.

    >>> from hashlearn import bqp
    >>> bqp.ising_problem([1.0, -1.0], [[0.0, 2.0], [0.0, 0.0]])
    Problem(min ising, n=2, terms=3)
    """
    if h is None and J is None:
        raise ValueError("ising needs h or J; both are None")
    return _energy_problem("ising", {"h": h, "J": J}, offset, False)


def model_problem(model: Any, maximize: bool = False) -> Problem:
    """The `Problem` of a dimod ``BinaryQuadraticModel``: its energy, its labels, its kind of variables."""
    labels = tuple(model.variables)
    linear, (rows, columns, biases), offset = model.to_numpy_vectors(variable_order=labels)
    i, j = (np.append(np.arange(len(labels)), side).astype(np.int64) for side in (rows, columns))
    w = np.append(linear, biases).astype(np.float64)
    sense: Literal["qubo", "ising"] = "ising" if model.vartype.name == "SPIN" else "qubo"
    return Problem(sense, len(labels), i, j, w, float(offset), maximize, labels)


def _energy_problem(sense: Literal["qubo", "ising"], parts: Mapping[str, Any], offset: Any, maximize: bool) -> Problem:
    """The problem of ``parts``: the weights of variables and those of pairs, by argument name; None for none."""
    (linear_name, linear), (name, pairs) = parts.items()
    if len({isinstance(part, Mapping) for part in parts.values() if part is not None}) > 1:
        raise TypeError(f"{linear_name} and {name} must be both dicts of labels, or both arrays")
    labels: Labels | None = None
    if isinstance(linear, Mapping) or isinstance(pairs, Mapping):
        linear, pairs = linear or {}, pairs or {}
        single_terms = ((label, label, weight) for label, weight in linear.items())
        labels, (i, j, w) = _labeled(chain(single_terms, _labeled_pairs(pairs, name)))
        n, n_single = len(labels), len(linear)
    else:
        single = _vector(linear, linear_name)
        n, i, j, w = _matrix_terms(sp.coo_array((single.size,) * 2) if pairs is None else pairs, name)
        if linear is not None and single.shape != (n,):
            raise ValueError(f"{linear_name} must have {n} entries, one for each variable, got shape {single.shape}")
        n_single = len(single)
        i, j, w = np.append(np.arange(n_single), i), np.append(np.arange(n_single), j), np.append(single, w)
    loops = n_single + np.flatnonzero((i == j)[n_single:] & (w[n_single:] != 0.0))
    if sense == "ising" and len(loops):
        label = int(i[loops[0]]) if labels is None else labels[i[loops[0]]]
        raise ValueError(f"{name} has the pair ({label!r}, {label!r}), but s² is always 1: add its weight to offset")
    return Problem(sense, n, i, j, w, _real_number(offset, "offset"), maximize, labels)


def _edges(graph: Iterable[Any]) -> Iterator[tuple[Any, Any, Any]]:
    """The edges of a list, those without a weight with weight 1."""
    for k, edge in enumerate(graph):
        if not isinstance(edge, tuple) or len(edge) not in (2, 3):
            raise ValueError(
                f"edge {k} of graph must be a tuple (u, v) or (u, v, w), got {edge!r}; is it a row of a matrix? "
                "Then pass np.array(graph)"
            )
        yield edge if len(edge) == 3 else (*edge, 1.0)


def _labeled_pairs(pairs: Mapping[Any, Any], name: str) -> Iterator[tuple[Any, Any, Any]]:
    for key, weight in pairs.items():
        if not isinstance(key, tuple) or len(key) != 2:
            raise ValueError(f"{name} must have pairs of labels (u, v) as keys, got {key!r}")
        yield *key, weight


def _labeled(terms: Iterable[tuple[Any, Any, Any]], labels: Iterable[Hashable] = ()) -> tuple[Labels, Terms]:
    """``labels``, then those of the terms (u, v, weight) in the order in which they come, and the terms by number."""
    number = {label: k for k, label in enumerate(labels)}
    i, j, w = array("q"), array("q"), array("d")
    for u, v, weight in terms:
        i.append(number.setdefault(u, len(number)))
        j.append(number.setdefault(v, len(number)))
        w.append(
            weight if type(weight) is float else _real_number(weight, f"the weight of {u if u is v else (u, v)!r}")
        )
    return tuple(number), (np.array(i, np.int64), np.array(j, np.int64), np.array(w, np.float64))


def _real_number(value: Any, name: str) -> float:
    """``value`` as float64; `Problem` refuses what is not finite."""
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, got {value!r} ({type(value).__name__})")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _vector(values: Any, name: str) -> FloatArray:
    """Linear coefficients as an array; none for None."""
    values = () if values is None else values.toarray().ravel() if sp.issparse(values) else values
    return numeric_array(values, name).astype(np.float64)


def _matrix_terms(matrix: Any, name: str) -> tuple[int, IntArray, IntArray, FloatArray]:
    """n and the entries of a square matrix that are not 0; those that a sparse matrix holds twice stay apart."""
    if sp.issparse(matrix):
        require_whole(matrix, name)
    else:
        matrix = numeric_array(matrix, name)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name} must be square, got shape {matrix.shape}")
    coo = sp.coo_array(matrix)
    i, j = (side.astype(np.int64) for side in coo.coords)
    return coo.shape[0], i, j, numeric_array(coo.data, name).astype(np.float64)


def _symmetric_terms(matrix: Any, name: str) -> tuple[int, IntArray, IntArray, FloatArray]:
    """The terms of a symmetric matrix, each pair once. Entries that differ by rounding count as above the diagonal."""
    n, i, j, w = _matrix_terms(matrix, name)
    summed = sp.coo_array((w, (i, j)), shape=(n, n)).tocsr()
    with np.errstate(invalid="ignore"):  # entries that are not finite are refused later
        difference = abs(summed - summed.T)
    if len(w) and difference.max() > SYMMETRY_TOLERANCE * np.abs(w).max():
        a, b = (int(q) for q in np.unravel_index(int(difference.argmax()), (n, n)))
        raise ValueError(
            f"{name} must be symmetric, but {name}[{a}, {b}] = {summed[a, b]:.6g} and {name}[{b}, {a}] = "
            f"{summed[b, a]:.6g}; pass {name} + {name}.T if it holds every edge once"
        )
    above = i <= j
    return n, i[above], j[above], w[above]
