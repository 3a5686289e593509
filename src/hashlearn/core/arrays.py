"""NumPy arrays and PyTorch tensors: which is which, and how to turn one into the other."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
EPS = float(np.finfo(np.float64).eps)
Tensor: TypeAlias = Any  # torch.Tensor, which type checkers without PyTorch do not know


def is_tensor(x: Any) -> bool:
    """Whether x is a PyTorch tensor; PyTorch is not imported to find out.

    >>> is_tensor(np.ones(3))
    False
    """
    return type(x).__module__.partition(".")[0] == "torch" and hasattr(x, "requires_grad")


def to_numpy(x: Any) -> Any:
    """A tensor as a NumPy array of the same dtype; anything else unchanged."""
    return x.detach().cpu().numpy() if is_tensor(x) else x


def to_float64(x: Tensor) -> FloatArray:
    """A tensor as a C-contiguous float64 NumPy array."""
    return np.ascontiguousarray(x.detach().double().cpu().numpy())


def tensor_like(array: Any, like: Tensor, dtype: Any = None) -> Tensor:
    """A NumPy array as a tensor on the device of ``like``, in its dtype unless another is named."""
    import torch

    return torch.as_tensor(np.ascontiguousarray(array)).to(device=like.device, dtype=dtype or like.dtype)


def numbers_at_once(device: Any, on_cpu: int, elsewhere: int) -> int:
    """How many numbers a temporary may have: a cache's worth on a CPU, enough to fill an accelerator elsewhere."""
    return on_cpu if device.type == "cpu" else elsewhere
