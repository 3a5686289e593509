"""CPU and device on the same data: objectives, gaps, and certificates held against the other's solutions."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.gpu.sections import embeddings
from hashlearn import bqp, inference
from hashlearn.inference.whole_bits import WholeBits
from hashlearn.targets import Distance


def agreement(n: int, n_features: int, n_bits: int, n_sweeps: int, device: str) -> dict[str, Any]:
    """The same fit on the CPU (NumPy, float64) and as float32 tensors on the device; certificates held against the
    other's relaxation, whose value in float64 no valid bound exceeds."""
    X, _ = embeddings(n, n_features, "cpu", seed=1)
    P = Distance().build(X, None, np.random.default_rng(0)).P
    tensors = bqp.LowRank(P.to(device), np.ones(P.shape[1]))
    reference = bqp.LowRank(P.double().numpy(), np.ones(P.shape[1]))
    results, solutions = {}, {}
    for name, target, solver in (
        ("cpu", reference, "quick_sdr"),
        ("device", tensors, "quick_sdr"),
        ("device_as_by_default", tensors, "auto"),
    ):
        start = inference.start_codes("auto", target.P, n_bits, np.random.default_rng(0), target)
        began = time.perf_counter()
        _, report = inference.infer_codes(target, start, solver=solver, n_sweeps=n_sweeps, rng=np.random.default_rng(1))
        results[name] = {
            "objective": report.final_objective,
            "seconds": time.perf_counter() - began,
            "gap_mean": float(np.mean([bit.gap for bit in report.bits if np.isfinite(bit.gap)])),
            "gap_max": max(bit.gap for bit in report.bits if np.isfinite(bit.gap)),
            "converged": all(bit.status in ("converged", "optimal") for bit in report.bits),
        }
        if solver == "auto":
            continue
        relaxation = bqp.SemidefiniteRelaxation(tol=1e-4)
        problems = WholeBits(target, start, relaxation, relaxation, monotone=True, rng=np.random.default_rng(1))
        solutions[name] = []
        for bit in range(min(4, n_bits)):
            A = problems.problem(bit)
            solution = bqp.solve(A, relaxation, random_state=bit)
            solutions[name].append((solution.bound, solution.details["relaxation_value"], solution.value))
    cpu, other = np.array(solutions["cpu"]), np.array(solutions["device"])
    difference = {name: results[name]["objective"] / results["cpu"]["objective"] - 1.0 for name in results}
    return {
        **results,
        "objective_relative_difference": difference,
        "device_bounds_below_cpu_relaxation": bool((other[:, 0] <= cpu[:, 1]).all()),
        "device_bounds_below_cpu_values": bool((other[:, 0] <= cpu[:, 2]).all()),
        "cpu_bounds_below_device_values": bool((cpu[:, 0] <= other[:, 2]).all()),
        "bounds_relative_difference_max": float(np.abs(other[:, 0] / cpu[:, 0] - 1.0).max()),
    }
