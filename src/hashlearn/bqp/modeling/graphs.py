"""`max_cut`: split the nodes of a graph in two so that the edges between the parts weigh most.

Graphs come from networkx, scipy.sparse, arrays or lists of edges. cut(x) = Σ w_ij (1 − x_i x_j) / 2 over the edges.
Reading a graph is O(nodes + edges).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from hashlearn.bqp.modeling.labels import Terms, parallel_note
from hashlearn.bqp.modeling.matrices import entries, halved
from hashlearn.bqp.modeling.problem import Problem
from hashlearn.bqp.modeling.solutions import CutSolution, solved


def max_cut(
    graph: Any,
    *,
    weight: str = "weight",
    nodes: Iterable[Hashable] | None = None,
    fixed: Mapping[Any, int] | None = None,
    **options: Any,
) -> CutSolution:
    """Find a large cut of a graph, and prove that no cut is larger than a bound.

    Parameters
    ----------
    graph : one of

        - a networkx ``Graph`` or ``MultiGraph``; an edge without a weight has weight 1
        - a symmetric array or scipy.sparse matrix of weights; entry (i, j) is the edge between nodes i and j
        - an iterable of tuples ``(u, v)`` or ``(u, v, w)``; labels may be any hashable objects, of mixed types

        Parallel edges are summed, and a warning says so. Self-loops are in no cut. Nodes without edges are kept. A
        graph without nodes has the cut 0.
    weight : the edge attribute of networkx that holds the weights
    nodes : all nodes of an edge list, in order, to keep nodes without edges
    fixed : sides that are given, as ``{node: 1 or -1}``
    **options : passed to `solve`: ``method``, ``time_limit``, ``random_state``, ``max_iter``, ``verbose``; ``x0``
        with sides and ``progress`` are in the words of the graph

    Returns
    -------
    CutSolution

    Examples
    --------
    >>> from hashlearn import bqp
    >>> answer = bqp.max_cut([("a", "b", 3), ("b", "c", 2), ("a", "c", 1)], method="exact")
    >>> answer.cut, answer.upper_bound, answer.status.value
    (5.0, 5.0, 'optimal')
    >>> answer.sides["a"] != answer.sides["b"] != answer.sides["c"]
    True
    """
    problem = max_cut_problem(graph, weight=weight, nodes=nodes)
    return solved(CutSolution, problem, fixed, options)


def max_cut_problem(graph: Any, *, weight: str = "weight", nodes: Iterable[Hashable] | None = None) -> Problem:
    """The `Problem` of the largest cut of a graph, as `max_cut` takes it.

    >>> from hashlearn import bqp
    >>> bqp.max_cut_problem([("a", "b"), ("b", "c")])
    Problem(max-cut, n=3, terms=2)
    """
    networkx = sys.modules.get("networkx")
    if networkx is not None and isinstance(graph, networkx.Graph):
        _require_no_nodes(nodes, "a networkx graph")
        return _of_networkx(graph, weight)
    if sp.issparse(graph) or hasattr(graph, "__array__"):
        _require_no_nodes(nodes, "a matrix")
        return Problem("max-cut", *halved(*entries(graph, "graph"), "graph"), maximize=True)
    if isinstance(graph, str | bytes | Mapping) or not isinstance(graph, Iterable):
        raise TypeError(
            "graph must be a networkx graph, a symmetric array or sparse matrix, or a list of edges (u, v) or "
            f"(u, v, w), got {type(graph).__name__}"
        )
    return _of_edges(graph, nodes)


def _of_networkx(graph: Any, weight: str) -> Problem:
    if graph.is_directed():
        raise ValueError("graph is directed, and a cut has no direction; pass graph.to_undirected()")
    terms = Terms(graph.nodes)
    for u, v, w in graph.edges(data=weight, default=1):
        terms.add(u, v, w, "the weight of edge")
    return _summed(terms, "graph")


def _of_edges(edges: Iterable[Any], nodes: Iterable[Hashable] | None) -> Problem:
    terms = Terms(() if nodes is None else nodes)
    known = None if nodes is None else len(terms.number)
    for k, edge in enumerate(edges):
        if isinstance(edge, list | np.ndarray):
            raise TypeError(
                "graph is a list of lists, which may mean a matrix or edges; pass np.array(graph) for a matrix, "
                "[tuple(edge) for edge in graph] for edges"
            )
        if not isinstance(edge, tuple) or len(edge) not in (2, 3):
            raise ValueError(f"edge {k} of graph must be a tuple (u, v) or (u, v, w), got {edge!r}")
        terms.add(edge[0], edge[1], edge[2] if len(edge) == 3 else 1.0, "the weight of edge")
        if known is not None and len(terms.number) > known:
            raise ValueError(f"edge {k} of graph is {edge!r}, but nodes does not hold {terms.labels[-1]!r}")
    return _summed(terms, "graph")


def _summed(terms: Terms, name: str) -> Problem:
    """The problem; parallel edges stay separate terms, which add up."""
    i, j, w = terms.arrays()
    labels = terms.labels
    notes = parallel_note(i, j, len(labels), labels.__getitem__, name)
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=5)
    return Problem("max-cut", len(labels), i, j, w, maximize=True, labels=labels, notes=notes)


def _require_no_nodes(nodes: Any, what: str) -> None:
    if nodes is not None:
        raise ValueError(f"nodes goes with a list of edges; {what} knows its nodes")
