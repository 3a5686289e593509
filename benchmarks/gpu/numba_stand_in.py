"""Where Numba is not installed, a stand-in that leaves kernels uncompiled, so that the device code can be measured.

Importing this module before hashlearn is enough. NumPy's side of hashlearn is then far too slow to be compared with.
"""

from __future__ import annotations

import sys
import types
from typing import Any


def install() -> bool:
    """Whether the stand-in had to be used."""
    try:
        import numba

        return False
    except ImportError:
        pass
    numba, extending = types.ModuleType("numba"), types.ModuleType("numba.extending")

    def njit(*arguments: Any, **options: Any) -> Any:
        return arguments[0] if arguments and callable(arguments[0]) else lambda function: function

    numba.njit = njit  # type: ignore[attr-defined]
    extending.intrinsic = lambda function: function  # type: ignore[attr-defined]
    sys.modules["numba"], sys.modules["numba.extending"] = numba, extending
    return True
