"""ONNX graphs: a builder of nodes, and every kind of fitted hash function as a piece from features to margins.

Each piece also states how large the terms of a margin's sum are. The rounding error of a runtime, in any order of
addition, is a small multiple of machine precision times this size. The `onnx` package is imported with the first graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.core.container import PersistenceError
from hashlearn.core.packages import require
from hashlearn.hash_functions import DistinctBits, FittedHashFunctions, KernelExpansion, LinearMargins, NetworkMargins
from hashlearn.hash_functions.kernels import RBFPoints
from hashlearn.hash_functions.trees import Forest, ForestMargins, TreeMargins, as_forests
from hashlearn.hashers.baselines.kmeans_hashing import CodewordMargins
from hashlearn.hashers.baselines.spectral_hashing import CosineMargins
from hashlearn.hashers.baselines.spherical_hashing import SphereMargins
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


class Piece(NamedTuple):
    """Margins in the graph, and the size of their terms for the sample rows, broadcastable to (n, n_bits)."""

    margins: str
    size: NDArray[np.float64]


def margins_of(graph: Graph, x: str, functions: FittedHashFunctions, rows: NDArray[Any]) -> Piece:
    """Margins of all bits; ``rows`` are what the export will be tried on."""
    if functions.bits.n_distinct == 0:
        nothing = graph.op("Mul", graph.op("Gather", x, graph.integers(0), axis=1), graph.constant(0.0, graph.dtype))
        return _expanded(graph, Piece(nothing, np.ones((1, 1))), functions.bits)
    way = KINDS.get(type(functions))
    if way is None:
        raise PersistenceError(
            f"{functions.description}: hash functions of kind {functions.kind!r} have no ONNX graph; "
            f"what has: {', '.join(sorted({kind.kind for kind in KINDS if kind is not TreeMargins}))}, and trees"
        )
    return _expanded(graph, way(graph, x, functions, rows.astype(np.float64)), functions.bits)


def _expanded(graph: Graph, piece: Piece, bits: DistinctBits) -> Piece:
    """All bits from the distinct ones: repeated, mirrored, or constant."""
    varying = bits.source >= 0
    source = np.maximum(bits.source, 0)
    factor, constant = np.where(varying, bits.signs, 0), np.where(varying, 0, bits.signs)
    gathered = graph.op("Gather", piece.margins, graph.constant(source, np.int64), axis=1)
    scaled = graph.op("Mul", gathered, graph.constant(factor, graph.dtype))
    size = piece.size if piece.size.shape[1] == 1 else piece.size[:, source]
    return Piece(graph.op("Add", scaled, graph.constant(constant, graph.dtype)), size)


def _kernel(graph: Graph, x: str, functions: KernelExpansion, rows: NDArray[Any]) -> Piece:
    """exp(z·s − ‖z‖²/2 − ‖s‖²/2) @ coefficients + intercepts, as in `RBFPoints`."""
    coefficients, intercepts = functions.coefficients, functions.intercepts
    if len(coefficients) == 0:
        none = np.zeros((functions.n_features, len(intercepts)))
        return Piece(graph.affine(x, none, intercepts), np.abs(intercepts)[None, :])
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
    margins = graph.affine(graph.op("Exp", exponent), coefficients, intercepts)
    distances = 2.0 * functions.gamma * np.square(rows - ready.center).sum(axis=1) + 2.0 * ready.half_norms.max()
    return Piece(margins, (1.0 + distances)[:, None] * (np.abs(coefficients).sum(axis=0) + np.abs(intercepts)))


def _linear(graph: Graph, x: str, functions: LinearMargins, rows: NDArray[Any]) -> Piece:
    size = np.abs(rows) @ np.abs(functions.weights) + np.abs(functions.intercepts)
    return Piece(graph.affine(x, functions.weights, functions.intercepts), size)


def _cosine(graph: Graph, x: str, functions: CosineMargins, rows: NDArray[Any]) -> Piece:
    phases = _linear(graph, x, functions, rows)
    return Piece(graph.op("Cos", phases.margins), 1.0 + phases.size)


def _network(graph: Graph, x: str, functions: NetworkMargins, rows: NDArray[Any]) -> Piece:
    """r·W + c + max(0, r·V + e)·U."""
    W, c, U = functions.weights, functions.intercepts, functions.output_weights
    if functions.unit_rows:
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        r, rows = graph.unit_rows(x, ZERO_ROW * functions.scale), rows / np.where(norms > 0.0, norms, 1.0)
    else:
        r, rows = graph.op("Div", x, graph.constant(functions.scale, graph.dtype)), rows / functions.scale
    margins = graph.affine(r, W, c)
    size = np.abs(rows) @ np.abs(W) + np.abs(c)
    if functions.n_hidden:
        V, e = functions.hidden_weights, functions.hidden_intercepts
        hidden = graph.op("Relu", graph.affine(r, V, e))
        margins = graph.op("Gemm", hidden, graph.real(U), margins)
        size += (np.abs(rows) @ np.abs(V) + np.abs(e)) @ np.abs(U)
    return Piece(margins, size)


def _spheres(graph: Graph, x: str, functions: SphereMargins, rows: NDArray[Any]) -> Piece:
    power = functions.squared_radii - np.square(functions.centers).sum(axis=1)
    seen = graph.op(
        "Sub", graph.op("Div", x, graph.constant(functions.scale, graph.dtype)), graph.real(functions.origin)
    )
    pull = graph.affine(seen, 2.0 * functions.centers.T, power)
    size = np.square(np.abs(rows / functions.scale) + np.abs(functions.origin)).sum(axis=1)[:, None]
    return Piece(graph.op("Sub", pull, graph.squared_norms(seen)), 2.0 * size + 2.0 * np.abs(power).max())


def _codewords(graph: Graph, x: str, functions: CodewordMargins, rows: NDArray[Any]) -> Piece:
    """Bit t of a subspace: the best codeword that has it, less the best that has not."""
    scaled = graph.op("Div", x, graph.constant(functions.scale, graph.dtype))
    nearness = graph.affine(scaled, functions.weights, functions.offsets)
    bits, first = [], 0
    for size in map(int, functions.sizes):
        block = graph.op("Slice", nearness, graph.integers(first), graph.integers(first + 2**size), graph.integers(1))
        first += 2**size
        for t in range(size):
            apart = graph.op("Reshape", block, graph.integers(0, 2**t, 2, 2 ** (size - 1 - t)))
            both = graph.op("ReduceMax", apart, graph.integers(1, 3), keepdims=0)
            bits.append(graph.op("Gemm", both, graph.constant([[-1.0], [1.0]], graph.dtype)))
    terms = np.abs(rows / functions.scale) @ np.abs(functions.weights) + np.abs(functions.offsets)
    return Piece(graph.op("Concat", *bits, axis=1), 2.0 * terms.max(axis=1, keepdims=True))


def _trees(graph: Graph, x: str, forests: list[Forest]) -> Piece:
    """All trees of all bits in one operator; node k of tree t is number t · n_nodes + k."""
    features, thresholds, leaves = (np.array([getattr(f, part) for f in forests]) for part in Forest._fields)
    n_bits, n_trees, n_nodes = features.shape
    size = np.abs(leaves).max(axis=2).sum(axis=1)[None, :]
    if n_nodes == 0:  # every tree is a constant
        return Piece(graph.affine(x, np.zeros((1, 1)), leaves.sum(axis=(1, 2))), size)
    down = thresholds.astype(graph.dtype)
    if graph.dtype == np.float32:  # x ≤ t holds for a float32 x where x ≤ the largest float32 that is not above t
        down = np.where(down > thresholds, np.nextafter(down, np.float32(-np.inf)), down)
    tree = np.arange(n_bits * n_trees)[:, None]
    left = 2 * np.arange(n_nodes) + 1
    is_leaf = left >= n_nodes
    children = [np.where(is_leaf, tree * (n_nodes + 1) + c - n_nodes, tree * n_nodes + c) for c in (left, left + 1)]
    flags = np.broadcast_to(is_leaf, children[0].shape).ravel().astype(int).tolist()
    tensor = graph.onnx.numpy_helper.from_array
    margins = graph.trees(
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
    return Piece(margins, size)


KINDS: dict[type[FittedHashFunctions], Callable[..., Piece]] = {
    KernelExpansion: _kernel,
    LinearMargins: _linear,
    NetworkMargins: _network,
    CosineMargins: _cosine,
    SphereMargins: _spheres,
    CodewordMargins: _codewords,
    ForestMargins: lambda graph, x, functions, rows: _trees(graph, x, functions.forests),
    TreeMargins: lambda graph, x, functions, rows: _trees(graph, x, as_forests(functions.estimators)),
}
