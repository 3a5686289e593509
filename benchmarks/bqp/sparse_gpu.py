"""The relaxation of random 3-regular graphs on a GPU: ``python -m benchmarks.bqp.sparse_gpu 1000000 10000000``.

It needs NumPy and PyTorch alone. If Numba is missing the modules are loaded without the packages around them.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
import types
from pathlib import Path
from typing import Any

import torch

SOURCE = Path(__file__).parents[2] / "src"


def device_module() -> Any:
    """`hashlearn.bqp.sdr.device`."""
    if importlib.util.find_spec("numba") is None:
        for name in ("hashlearn", "hashlearn.bqp", "hashlearn.bqp.sdr", "hashlearn.core"):
            package = types.ModuleType(name)
            package.__path__ = [str(SOURCE / name.replace(".", "/"))]
            sys.modules[name] = package
    return importlib.import_module("hashlearn.bqp.sdr.device")


def regular(n: int, seed: int, device: str) -> Any:
    """Three random perfect matchings as a CSR tensor; an edge that occurs twice has weight 2."""
    generator = torch.Generator(device=device).manual_seed(seed)
    pairs = [torch.randperm(n, generator=generator, device=device).reshape(-1, 2) for _ in range(3)]
    edges = torch.cat(pairs)
    index = torch.cat([edges, edges.flip(1)]).T
    ones = torch.ones(index.shape[1], dtype=torch.float64, device=device)
    return torch.sparse_coo_tensor(index, ones, (n, n)).coalesce().to_sparse_csr()


def clock(device: str) -> float:
    """The clock after all work on the device has ended."""
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main() -> None:
    """One line of JSON for each n."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n", type=int, nargs="+")
    parser.add_argument("--gap", type=float, default=1e-4)
    parser.add_argument("--width", type=int, default=0, help="columns of V; 0: as the solver does")
    options = parser.parse_args()
    module = device_module()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for n in options.n:
        matrix = regular(n, 0, device)
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        seconds = [clock(device)]
        A = module.ColoredMatrix(matrix)
        seconds.append(clock(device))
        relaxation = module.DeviceRelaxation(A, options.gap)
        V = relaxation.solve(options.width or max(16, 8 * -(-int(n ** (1 / 3)) // 8)))
        seconds.append(clock(device))
        X = A.descend(module.draws(A, V, 8))
        value = float(A.values(X).min())
        seconds.append(clock(device))
        names = ("coloring", "relaxation", "rounding")
        result = {name: round(b - a, 3) for name, a, b in zip(names, seconds[:-1], seconds[1:], strict=True)}
        result |= {
            "n": n,
            "colors": len(A.classes),
            "columns": V.shape[1],
            "sweeps": relaxation.sweeps,
            "relaxation_value": relaxation.value,
            "bound": relaxation.bound,
            "gap": (relaxation.value - relaxation.bound) / abs(relaxation.bound),
            "value": value,
            "peak_gib": torch.cuda.max_memory_allocated() / 2**30 if device == "cuda" else None,
            "device": torch.cuda.get_device_name() if device == "cuda" else device,
        }
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
