"""Margins of tensors: the same functions as for arrays, on the tensor's own device, many rows at a time.

A row's margin may differ in its last digits between batches there: products on a device are not those of fixed panels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

NUMBERS_AT_ONCE = {"cpu": 1 << 22}  # of a temporary, on a CPU
NUMBERS_ON_DEVICE = 1 << 28


def placed_beside(array: Any, tensor: Any) -> Any:
    """A NumPy array as a tensor on the device of ``tensor``, in its dtype."""
    import torch

    return torch.as_tensor(np.ascontiguousarray(array)).to(device=tensor.device, dtype=tensor.dtype)


def evaluate_in_chunks(function: Callable[[Any], Any], X: Any, width: int) -> Any:
    """``function`` of chunks of rows, stacked; ``width``: numbers that it makes of one row."""
    import torch

    numbers = NUMBERS_AT_ONCE.get(X.device.type, NUMBERS_ON_DEVICE)
    rows = max(256, numbers // max(width, 1))
    return torch.cat([function(X[first : first + rows]) for first in range(0, X.shape[0], rows)])


def expand(bits: Any, margins: Any) -> Any:
    """`DistinctBits.expand` of a tensor."""
    import torch

    constant = placed_beside(np.where(bits.source < 0, bits.signs, 0.0), margins)
    source = torch.as_tensor(np.maximum(bits.source, 0), device=margins.device)
    signs = placed_beside(np.where(bits.source < 0, 0.0, bits.signs), margins)
    if margins.shape[1] == 0:
        return constant.expand(margins.shape[0], -1).clone()
    return margins[:, source] * signs + constant
