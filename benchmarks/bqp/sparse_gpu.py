"""The relaxation of random 3-regular graphs on a GPU: ``python -m benchmarks.bqp.sparse_gpu 1000000 10000000``."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import torch

from hashlearn import bqp


def regular(n: int, seed: int, device: str) -> Any:
    """Three random perfect matchings as a CSR tensor; an edge that occurs twice has weight 2."""
    generator = torch.Generator(device=device).manual_seed(seed)
    pairs = [torch.randperm(n, generator=generator, device=device).reshape(-1, 2) for _ in range(3)]
    edges = torch.cat(pairs)
    index = torch.cat([edges, edges.flip(1)]).T
    ones = torch.ones(index.shape[1], dtype=torch.float64, device=device)
    return torch.sparse_coo_tensor(index, ones, (n, n)).coalesce().to_sparse_csr()


def main() -> None:
    """One line of JSON for each n, after a small graph that loads the libraries of the device."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n", type=int, nargs="+")
    parser.add_argument("--gap", type=float, default=1e-4)
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    solver = bqp.SemidefiniteRelaxation(tol=options.gap)
    bqp.solve(regular(2000, 0, device), solver, random_state=0)
    for n in options.n * options.repeats:
        matrix = regular(n, 0, device)
        if device == "cuda":
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        started = time.perf_counter()
        solution = bqp.solve(matrix, solver, random_state=0)  # its answer is on the host's clock already
        result = {"n": n, "seconds": round(time.perf_counter() - started, 3), "value": solution.value}
        result |= {name: solution.details[name] for name in ("rank", "relaxation_value", "relaxation_gap")}
        result["bound"] = solution.bound
        result["peak_gib"] = torch.cuda.max_memory_allocated() / 2**30 if device == "cuda" else None
        result["device"] = torch.cuda.get_device_name() if device == "cuda" else device
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
