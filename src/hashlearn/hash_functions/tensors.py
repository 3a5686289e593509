"""Margins of tensors: the same functions as for arrays, on the tensor's own device, many rows at a time.

A row's margin may differ in its last digits between batches there: products on a device are not those of fixed panels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hashlearn.core.arrays import tensor_like

NUMBERS_AT_ONCE = {"cpu": 1 << 22}  # of a temporary, on a CPU
NUMBERS_ON_DEVICE = 1 << 28


def evaluate_in_chunks(function: Callable[[Any], Any], X: Any, width: int) -> Any:
    """``function`` of chunks of rows, stacked; ``width``: numbers that it makes of one row."""
    import torch

    numbers = NUMBERS_AT_ONCE.get(X.device.type, NUMBERS_ON_DEVICE)
    rows = max(256, numbers // max(width, 1))
    return torch.cat([function(X[first : first + rows]) for first in range(0, X.shape[0], rows)])


def expand(bits: Any, margins: Any) -> Any:
    """`DistinctBits.expand` of a tensor."""
    import torch

    constant = tensor_like(np.where(bits.source < 0, bits.signs, 0.0), margins)
    source = torch.as_tensor(np.maximum(bits.source, 0), device=margins.device)
    signs = tensor_like(np.where(bits.source < 0, 0.0, bits.signs), margins)
    if margins.shape[1] == 0:
        return constant.expand(margins.shape[0], -1).clone()
    return margins[:, source] * signs + constant
