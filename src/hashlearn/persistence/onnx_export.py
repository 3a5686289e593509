"""`export_onnx`: the encoder of a fitted hasher as an ONNX graph, compared with `encode` before it is written.

Input ``features`` (n, n_features); outputs ``margins`` (n, n_bits) and ``codes`` (n, ⌈n_bits/8⌉), uint8, packed as
`encode` packs them: the first bit is the highest of the first byte, pad bits are zero.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import hashlearn
from hashlearn import bits
from hashlearn.core.atomic_files import output_place, write_atomically
from hashlearn.core.container import PersistenceError
from hashlearn.hash_functions import KernelExpansion
from hashlearn.hashers import BaseHasher
from hashlearn.persistence.onnx_graph import ML_DOMAIN, ML_OPSET, Graph, margins_of, optional
from hashlearn.persistence.values import HASHER_NAMES

OPSET = 18
SAMPLE_ROWS = 300
SMALL_ROW = 0.01  # of the usual size of margins; rows of smaller margins may differ as those of this size
LARGEST_FILE = 2**31 - 1  # protobuf's


class OnnxReport(NamedTuple):
    """How the exported graph compares with `encode` on the sample."""

    opset: int
    dtype: str
    bytes: int
    rows: int
    bits: int  # compared, of all rows
    differing: int  # of them; only margins within rounding of 0 may
    within_rounding: int  # bits whose margin is within rounding of 0
    largest_difference: float  # between margins


def export_onnx(
    hasher: BaseHasher, path: str | os.PathLike[str], *, sample: Any = None, dtype: str = "float64", opset: int = OPSET
) -> OnnxReport:
    """Write the encoder as ONNX (needs ``onnx`` and ``onnxruntime``), after onnxruntime gave the codes of `encode`.

    Parameters
    ----------
    hasher : fitted; its hash functions are a kernel expansion, linear, a network or trees
    path : of the file, ``encoder.onnx`` for example
    sample : rows to compare on, your own data if possible; None: 300 made-up ones
    dtype : of the input and of all arithmetic. "float32" is smaller and faster, and rounds margins to 6 digits
    opset : of the standard operators, 18 or later; trees use version 5 of ai.onnx.ml besides

    Returns
    -------
    OnnxReport
        Two ways of adding the same numbers differ in the last digits, so a margin near 0 may get either bit. All other
        bits are equal, and margins agree to half their digits: else this is a `PersistenceError`, and nothing is
        written.
    """
    if type(hasher) not in HASHER_NAMES:
        raise PersistenceError(
            f"only hashers of hashlearn.hashers.HASHERS can be exported, got {type(hasher).__name__}"
        )
    if dtype not in ("float64", "float32"):
        raise PersistenceError(f"dtype must be 'float64' or 'float32', got {dtype!r}")
    if isinstance(opset, bool) or not isinstance(opset, int) or opset < OPSET:
        raise PersistenceError(f"opset must be an integer of at least {OPSET}, got {opset!r}")
    check_is_fitted(hasher)
    output_place(path)
    rows = _sample_rows(hasher, sample).astype(dtype)
    graph = Graph(np.dtype(dtype))
    _encoder(graph, hasher)
    data = _serialized(graph, hasher, opset)
    report = _compared(hasher, data, rows, opset)
    write_atomically(Path(path), [data])
    return report


def _sample_rows(hasher: Any, sample: Any) -> NDArray[Any]:
    if sample is not None:
        rows = hasher._validated(sample, reset=False)
        return rows.toarray() if hasattr(rows, "toarray") else rows
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((SAMPLE_ROWS, hasher.n_features_in_)) * 10.0 ** (np.arange(SAMPLE_ROWS) % 4 - 1)[:, None]
    functions = hasher.hash_functions_
    if isinstance(functions, KernelExpansion) and functions.points.shape[0]:  # far from all points nothing happens
        drawn = functions.points[rng.integers(functions.points.shape[0], size=SAMPLE_ROWS)]
        drawn = drawn.toarray() if hasattr(drawn, "toarray") else drawn
        rows = drawn + rng.standard_normal(drawn.shape) * 0.3 * (drawn.std() or 1.0)
    return rows


def _encoder(graph: Graph, hasher: Any) -> None:
    margins = graph.op("Identity", margins_of(graph, "features", hasher.hash_functions_), output="margins")
    n_bits, n_bytes = int(hasher.n_bits), -(-int(hasher.n_bits) // 8)
    ones = graph.cast(graph.op("GreaterOrEqual", margins, graph.constant(0.0, graph.dtype)), np.int32)
    full = graph.op("Pad", ones, graph.integers(0, 0, 0, 8 * n_bytes - n_bits))
    weighed = graph.op(
        "Mul",
        graph.op("Reshape", full, graph.integers(0, n_bytes, 8)),
        graph.constant(2 ** np.arange(7, -1, -1), np.int32),
    )
    total = graph.op("ReduceSum", weighed, graph.integers(2), keepdims=0)
    graph.op("Cast", total, to=graph.onnx.TensorProto.UINT8, output="codes")


def _serialized(graph: Graph, hasher: Any, opset: int) -> bytes:
    helper = graph.onnx.helper
    real = helper.np_dtype_to_tensor_dtype(graph.dtype)
    inputs = [helper.make_tensor_value_info("features", real, ["n", hasher.n_features_in_])]
    outputs = [
        helper.make_tensor_value_info("margins", real, ["n", int(hasher.n_bits)]),
        helper.make_tensor_value_info("codes", graph.onnx.TensorProto.UINT8, ["n", -(-int(hasher.n_bits) // 8)]),
    ]
    body = helper.make_graph(graph.nodes, "hashlearn_encoder", inputs, outputs, graph.constants)
    opsets = [helper.make_opsetid("", opset), *([helper.make_opsetid(ML_DOMAIN, ML_OPSET)] if graph.uses_trees else [])]
    model = helper.make_model(body, opset_imports=opsets, producer_name="hashlearn")
    model.producer_version, model.ir_version = hashlearn.__version__, helper.find_min_ir_version_for(opsets)
    helper.set_model_props(
        model, {"method": HASHER_NAMES[type(hasher)], "bit_order": "big", "n_bits": str(hasher.n_bits)}
    )
    size = model.ByteSize()
    if size > LARGEST_FILE:
        raise PersistenceError(f"the graph would take {size:,} bytes, and ONNX files end at 2 GB; use fewer landmarks")
    graph.onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _compared(hasher: Any, data: bytes, rows: NDArray[Any], opset: int) -> OnnxReport:
    """Run the graph. Margins may differ by √ε of the largest one of their row, ε being the precision of the graph."""
    session = optional("onnxruntime").InferenceSession(data, providers=["CPUExecutionProvider"])
    margins, codes = session.run(["margins", "codes"], {"features": np.ascontiguousarray(rows)})
    wanted = hasher.decision_function(rows)
    sizes = np.abs(wanted).max(axis=1, keepdims=True)
    allowed = np.sqrt(np.finfo(rows.dtype).eps) * np.maximum(sizes, SMALL_ROW * np.median(sizes))
    difference = np.abs(margins.astype(np.float64) - wanted)
    unpacked = bits.unpack_bits(codes, int(hasher.n_bits))
    wrong = unpacked != (wanted >= 0.0)
    near = np.abs(wanted) <= allowed
    if not (difference <= allowed).all() or (wrong & ~near).any():
        raise PersistenceError(
            f"onnxruntime gives other codes than encode: {int((wrong & ~near).sum())} bits differ, and margins by "
            f"up to {difference.max():.3g}; nothing was written"
        )
    return OnnxReport(
        opset=opset,
        dtype=str(rows.dtype),
        bytes=len(data),
        rows=len(rows),
        bits=wrong.size,
        differing=int(wrong.sum()),
        within_rounding=int(near.sum()),
        largest_difference=float(difference.max()),
    )
