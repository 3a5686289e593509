"""Builds ONNX graphs node by node. The `onnx` package is imported with the first graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.packages import require

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

    def signed_roots(self, rows: str) -> str:
        """sgn(x) · √|x|."""
        return self.op("Mul", self.op("Sign", rows), self.op("Sqrt", self.op("Abs", rows)))

    def trees(self, rows: str, **attributes: Any) -> str:
        """An operator TreeEnsemble, which needs `ML_DOMAIN`."""
        self.uses_trees = True
        return self.op("TreeEnsemble", rows, domain=ML_DOMAIN, **attributes)


def optional(package: str) -> Any:
    """A package that only the export needs."""
    return require(package, "onnx", "ONNX export")
