"""Problems from what people have: graphs and matrices for max-cut, dicts, matrices and dimod models for energies.

`max_cut_problem` takes networkx, scipy.sparse, arrays and lists of edges: cut(x) = Σ w_ij (1 − x_i x_j) / 2 over the
edges. In `qubo_problem` and `ising_problem` each entry counts once: a pair (u, v) has the coefficient of (u, v) plus
that of (v, u), as in dimod. So an array stands for zᵀQz or sᵀJs, and only Q + Qᵀ matters. Cost: O(number of terms).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from hashlearn.bqp.modeling.problem import Problem
from hashlearn.bqp.modeling.terms import (
    Terms,
    edges_of_matrix,
    finite_numbers,
    matrix_terms,
    parallel_note,
    real_number,
)


def max_cut_problem(graph: Any, *, weight: str = "weight", nodes: Iterable[Hashable] | None = None) -> Problem:
    """The `Problem` of the largest cut of a graph, as `max_cut` takes it.

    >>> from hashlearn import bqp
    >>> bqp.max_cut_problem([("a", "b"), ("b", "c")])
    Problem(max-cut, n=3, terms=2)
    """
    networkx = sys.modules.get("networkx")
    is_graph = networkx is not None and isinstance(graph, networkx.Graph)
    is_matrix = sp.issparse(graph) or hasattr(graph, "__array__")
    if nodes is not None and (is_graph or is_matrix):
        raise ValueError("nodes goes with a list of edges; a networkx graph or a matrix knows its nodes")
    if is_matrix:
        return Problem("max-cut", *edges_of_matrix(graph, "graph"), maximize=True)
    if isinstance(graph, str | bytes | Mapping) or not isinstance(graph, Iterable):
        raise TypeError(
            "graph must be a networkx graph, a symmetric array or sparse matrix, or a list of edges (u, v) or "
            f"(u, v, w), got {type(graph).__name__}"
        )
    terms = _terms_of_networkx(graph, weight) if is_graph else _terms_of_edges(graph, nodes)
    labels, (i, j, w) = terms.labels, terms.arrays()
    notes = parallel_note(i, j, len(labels), labels.__getitem__, "graph")
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=3)
    return Problem("max-cut", len(labels), i, j, w, maximize=True, labels=labels, notes=notes)


def _terms_of_networkx(graph: Any, weight: str) -> Terms:
    if graph.is_directed():
        raise ValueError("graph is directed, and a cut has no direction; pass graph.to_undirected()")
    terms = Terms(graph.nodes)
    for u, v, w in graph.edges(data=weight, default=1):
        terms.add(u, v, w, "the weight of edge")
    return terms


def _terms_of_edges(edges: Iterable[Any], nodes: Iterable[Hashable] | None) -> Terms:
    terms = Terms(() if nodes is None else nodes)
    n_nodes = len(terms.number)
    for k, edge in enumerate(edges):
        if isinstance(edge, list | np.ndarray):
            raise TypeError(
                "graph is a list of lists, which may mean a matrix or edges; pass np.array(graph) for a matrix, "
                "[tuple(edge) for edge in graph] for edges"
            )
        if not isinstance(edge, tuple) or len(edge) not in (2, 3):
            raise ValueError(f"edge {k} of graph must be a tuple (u, v) or (u, v, w), got {edge!r}")
        terms.add(edge[0], edge[1], edge[2] if len(edge) == 3 else 1.0, "the weight of edge")
        if nodes is not None and len(terms.number) > n_nodes:
            raise ValueError(f"edge {k} of graph is {edge!r}, but nodes does not hold {terms.labels[-1]!r}")
    return terms


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
        return _problem_of_dicts("qubo", linear, Q, offset, maximize, "Q", "linear")
    return _with_linear(Problem("qubo", *matrix_terms(Q, "Q"), offset, maximize), linear, "linear")


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
        return _problem_of_dicts("ising", h, J or {}, offset, False, "J", "h")
    if isinstance(h, Mapping):
        raise TypeError("h is a dict of labels, and J a matrix; pass both as dicts, or both as arrays")
    if J is None:
        J = sp.coo_array((finite_numbers(h, "h").size,) * 2)
    n, i, j, w = matrix_terms(J, "J")
    diagonal = np.flatnonzero((i == j) & (w != 0.0))
    if len(diagonal):
        k = int(i[diagonal[0]])
        raise ValueError(
            f"J[{k}, {k}] = {w[diagonal[0]]:.6g}, but s² is always 1: set the diagonal to 0 and add its sum to offset"
        )
    return _with_linear(Problem("ising", n, i, j, w, offset), h, "h")


def model_problem(model: Any, maximize: bool = False) -> Problem:
    """The `Problem` of a dimod ``BinaryQuadraticModel``: its energy, its labels, its kind of variables."""
    sense: Literal["qubo", "ising"] = "ising" if model.vartype.name == "SPIN" else "qubo"
    offset = real_number(model.offset, "the offset of the model")
    labels = tuple(model.variables)
    linear, (rows, columns, biases), _ = model.to_numpy_vectors(variable_order=labels)
    variables = np.arange(len(labels))
    i, j = np.append(variables, rows).astype(np.int64), np.append(variables, columns).astype(np.int64)
    w = finite_numbers(
        np.append(linear, biases).astype(np.float64),
        "the model",
        lambda k: f"the bias of ({labels[i[k]]!r}, {labels[j[k]]!r})",
    )
    return Problem(sense, len(labels), i, j, w, offset, maximize, labels)


def _problem_of_dicts(
    sense: Literal["qubo", "ising"], linear: Any, pairs: Any, offset: float, maximize: bool, name: str, linear_name: str
) -> Problem:
    if linear is not None and not isinstance(linear, Mapping):
        raise TypeError(f"{name} is a dict of labels, so {linear_name} must be a dict too, got {type(linear).__name__}")
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
    variables = np.arange(problem.n)
    i, j = np.append(problem.i, variables), np.append(problem.j, variables)
    return Problem(problem.sense, problem.n, i, j, np.append(problem.w, bias), problem.offset, problem.maximize)
