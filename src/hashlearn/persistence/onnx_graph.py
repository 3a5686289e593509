"""ONNX graphs: a builder of nodes, and every kind of fitted hash function from features to margins.

The `onnx` package is imported with the first graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.core.container import PersistenceError
from hashlearn.core.packages import require
from hashlearn.hash_functions import DistinctBits, FittedHashFunctions, KernelExpansion, LinearMargins, NetworkMargins
from hashlearn.hash_functions.kernels import RBFPoints
from hashlearn.hash_functions.trees import ForestMargins
from hashlearn.linalg.unit_rows import ZERO_ROW

ML_DOMAIN = "ai.onnx.ml"
ML_OPSET = 5  # the first with TreeEnsemble, whose arithmetic may be float64


class Graph:
    """Nodes and constants of one graph that computes in ``dtype``. Methods return the name of what they make."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.onnx = optional("onnx")
        self.dtype = dtype
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.uses_trees = False

    def op(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """One operator of the standard set."""
        name = output or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, array: Any, dtype: Any = None) -> str:
        """An array as it is, or in another dtype."""
        name = f"constant_{len(self.constants)}"
        values = np.ascontiguousarray(array, dtype=dtype).reshape(np.shape(array))
        self.constants.append(self.onnx.numpy_helper.from_array(values, name))
        return name

    def real(self, array: Any) -> str:
        """An array in the dtype of the graph. A float32 matrix is stored as it is, and the graph widens it."""
        array = np.asarray(array)
        if array.dtype == np.float32 and self.dtype == np.float64 and array.ndim == 2:
            return self.cast(self.constant(array), self.dtype)
        return self.constant(array, self.dtype)

    def cast(self, name: str, dtype: Any) -> str:
        """Convert to another dtype."""
        return self.op("Cast", name, to=self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def integers(self, *values: int) -> str:
        """A constant of int64, for shapes and axes."""
        return self.constant(np.array(values, dtype=np.int64))

    def affine(self, rows: str, weights: NDArray[Any], offsets: NDArray[Any]) -> str:
        """rows @ weights + offsets."""
        return self.op("Gemm", rows, self.real(weights), self.real(offsets))

    def squared_norms(self, rows: str) -> str:
        """The squared norm of every row, as a column."""
        return self.op("ReduceSum", self.op("Mul", rows, rows), self.integers(1), keepdims=1)

    def unit_rows(self, rows: str, smallest: float) -> str:
        """Rows divided by their norm; 0 if it is at most ``smallest``. No square overflows or loses digits."""
        tiny = self.constant(np.finfo(self.dtype).tiny, self.dtype)
        largest = self.op("Max", self.op("ReduceMax", self.op("Abs", rows), self.integers(1)), tiny)
        scaled = self.op("Div", rows, largest)
        norms = self.op("Sqrt", self.squared_norms(scaled))
        is_far = self.op("Greater", self.op("Mul", norms, largest), self.constant(smallest, self.dtype))
        return self.op("Mul", scaled, self.op("Div", self.cast(is_far, self.dtype), self.op("Max", norms, tiny)))

    def trees(self, rows: str, **attributes: Any) -> str:
        """An operator TreeEnsemble, which needs `ML_DOMAIN`."""
        self.uses_trees = True
        return self.op("TreeEnsemble", rows, domain=ML_DOMAIN, **attributes)


def optional(package: str) -> Any:
    """A package that only the export needs."""
    return require(package, "onnx", "ONNX export")


LEQ = 0  # TreeEnsemble's code for "true where x ≤ threshold"


def margins_of(graph: Graph, x: str, functions: FittedHashFunctions) -> str:
    """Margins of all bits."""
    if functions.bits.n_distinct == 0:
        nothing = graph.op("Mul", graph.op("Gather", x, graph.integers(0), axis=1), graph.constant(0.0, graph.dtype))
        return _expanded(graph, nothing, functions.bits)
    way = KINDS.get(type(functions))
    if way is None:
        raise PersistenceError(
            f"{functions.description}: hash functions of kind {functions.kind!r} have no ONNX graph; "
            f"what has: {', '.join(sorted(kind.kind for kind in KINDS))}"
        )
    return _expanded(graph, way(graph, x, functions), functions.bits)


def _expanded(graph: Graph, margins: str, bits: DistinctBits) -> str:
    """All bits from the distinct ones: repeated, mirrored, or constant."""
    varying = bits.source >= 0
    source = np.maximum(bits.source, 0)
    factor, constant = np.where(varying, bits.signs, 0), np.where(varying, 0, bits.signs)
    gathered = graph.op("Gather", margins, graph.constant(source, np.int64), axis=1)
    scaled = graph.op("Mul", gathered, graph.constant(factor, graph.dtype))
    return graph.op("Add", scaled, graph.constant(constant, graph.dtype))


def _kernel(graph: Graph, x: str, functions: KernelExpansion) -> str:
    """exp(z·s − ‖z‖²/2 − ‖s‖²/2) @ coefficients + intercepts, as in `RBFPoints`."""
    coefficients, intercepts = functions.coefficients, functions.intercepts
    if len(coefficients) == 0:
        return graph.affine(x, np.zeros((functions.n_features, len(intercepts))), intercepts)
    points = functions.points.toarray() if sp.issparse(functions.points) else functions.points
    ready = RBFPoints(points, functions.gamma, graph.dtype)
    assert ready.center is not None
    center, factor = graph.real(ready.center), graph.constant(ready.factor, graph.dtype)
    z = graph.op("Mul", graph.op("Sub", x, center), factor)
    if points.dtype == np.float32 and graph.dtype == np.float64:  # half the size; the runtime scales them once
        s = graph.op("Mul", graph.op("Sub", graph.real(points), center), factor)
    else:
        s = graph.real(ready.scaled)
    norms = graph.op("ReduceSum", graph.op("Mul", s, s), graph.integers(1), keepdims=0)
    halves = graph.op("Mul", norms, graph.constant(-0.5, graph.dtype))  # constants too: the runtime folds them once
    exponent = graph.op("Gemm", z, s, halves, transB=1)
    half = graph.op("Mul", graph.squared_norms(z), graph.constant(0.5, graph.dtype))
    exponent = graph.op("Min", graph.op("Sub", exponent, half), graph.constant(0.0, graph.dtype))
    return graph.affine(graph.op("Exp", exponent), coefficients, intercepts)


def _linear(graph: Graph, x: str, functions: LinearMargins) -> str:
    return graph.affine(x, functions.weights, functions.intercepts)


def _network(graph: Graph, x: str, functions: NetworkMargins) -> str:
    """r·W + c + max(0, r·V + e)·U."""
    if functions.unit_rows:
        r = graph.unit_rows(x, ZERO_ROW * functions.scale)
    else:
        r = graph.op("Div", x, graph.constant(functions.scale, graph.dtype))
    margins = graph.affine(r, functions.weights, functions.intercepts)
    if functions.n_hidden:
        hidden = graph.op("Relu", graph.affine(r, functions.hidden_weights, functions.hidden_intercepts))
        margins = graph.op("Gemm", hidden, graph.real(functions.output_weights), margins)
    return margins


def _trees(graph: Graph, x: str, functions: ForestMargins) -> str:
    """All trees of all bits in one operator; node k of tree t is number t · n_nodes + k."""
    features, leaves = functions.forest_features, functions.forest_leaves
    thresholds = functions.forest_thresholds
    n_bits, n_trees, n_nodes = features.shape
    if n_nodes == 0:  # every tree is a constant
        return graph.affine(x, np.zeros((1, 1)), leaves.sum(axis=(1, 2)))
    down = thresholds.astype(graph.dtype)
    if graph.dtype == np.float32:  # x ≤ t holds for a float32 x where x ≤ the largest float32 that is not above t
        down = np.where(down > thresholds, np.nextafter(down, np.float32(-np.inf)), down)
    tree = np.arange(n_bits * n_trees)[:, None]
    left = 2 * np.arange(n_nodes) + 1
    is_leaf = left >= n_nodes
    children = [np.where(is_leaf, tree * (n_nodes + 1) + c - n_nodes, tree * n_nodes + c) for c in (left, left + 1)]
    flags = np.broadcast_to(is_leaf, children[0].shape).ravel().astype(int).tolist()
    tensor = graph.onnx.numpy_helper.from_array
    return graph.trees(
        x,
        n_targets=n_bits,
        aggregate_function=1,
        post_transform=0,
        tree_roots=(tree.ravel() * n_nodes).tolist(),
        nodes_featureids=features.ravel().tolist(),
        nodes_splits=tensor(down.ravel()),
        nodes_modes=tensor(np.full(features.size, LEQ, dtype=np.uint8)),
        nodes_truenodeids=children[0].ravel().tolist(),
        nodes_falsenodeids=children[1].ravel().tolist(),
        nodes_trueleafs=flags,
        nodes_falseleafs=flags,
        leaf_targetids=np.repeat(np.arange(n_bits), n_trees * (n_nodes + 1)).tolist(),
        leaf_weights=tensor(leaves.ravel().astype(graph.dtype)),
    )


KINDS: dict[type[FittedHashFunctions], Callable[..., str]] = {
    KernelExpansion: _kernel,
    LinearMargins: _linear,
    NetworkMargins: _network,
    ForestMargins: _trees,
}
