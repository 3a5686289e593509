"""Inference, encoding, search and metrics of a million rows on one GPU, and the same fit on CPU and GPU.

    python -m benchmarks.gpu_scale --rows 1000000 --features 768 --bits 64 --sweeps 3 --device cuda
    python -m benchmarks.gpu_scale --device cpu --rows 20000 --features 64 --bits 8

Prints a table and, last, one line of JSON. A section that fails says so and the others go on. Needs PyTorch.
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from hashlearn import bqp, inference, metrics
from hashlearn.bits.packing import pack_tensor
from hashlearn.hash_functions import KernelExpansion, LinearMargins, distinct_bits
from hashlearn.inference import PRESETS
from hashlearn.inference.all_rows import WholeBits
from hashlearn.search import nearest_codes
from hashlearn.targets import Distance


def main() -> None:
    options = parsed()
    torch.set_float32_matmul_precision("highest")  # no TF32
    results: dict[str, Any] = {"options": vars(options)}
    state: dict[str, Any] = {}

    def section(name: str, function: Callable[[], dict[str, Any]]) -> None:
        began = time.perf_counter()
        try:
            found = function()
            state[name] = found
            results[name] = {key: value for key, value in found.items() if key != "codes"}
        except Exception as error:
            traceback.print_exc()
            results[name] = {"error": f"{type(error).__name__}: {error}"}
        results[name]["section_seconds"] = time.perf_counter() - began
        print(f"\n== {name} ({results[name]['section_seconds']:.1f} s)", flush=True)
        show(results[name])

    device = options.device
    with torch.inference_mode():
        section("machine", lambda: machine(device))
        rates = state.get("machine", {"copy_bytes_per_second": 4e12, "float32_flops_per_second": 5e13})
        few = min(options.rows, 20_000)
        section("warm_up", lambda: warm_up(few, options.features, min(options.bits, 4), device))
        X, labels = embeddings(options.rows, options.features, device)
        section(
            "inference",
            lambda: whole_inference(X, options.bits, options.sweeps, device, options.time_limit),
        )
        if options.every_sweep:  # the same solver as an object: every bit of every sweep with a proof
            section(
                "inference_every_sweep_proven",
                lambda: whole_inference(
                    X, options.bits, options.sweeps, device, options.time_limit, PRESETS["sampled_sdr"]
                ),
            )
            state.pop("inference_every_sweep_proven", None)
        if "inference" in state:
            codes = state["inference"]["codes"]
            section("search_and_metrics", lambda: searching(codes, labels, device))
        section("encode", lambda: encoding(X, options.bits, options.landmarks, device, rates))
        section(
            "agreement",
            lambda: agreement(options.check_rows, options.check_features, options.check_bits, 2, device),
        )
    print("\n" + json.dumps(results, default=float))


def show(found: dict[str, Any], indent: str = "  ") -> None:
    for name, value in found.items():
        if isinstance(value, dict):
            print(f"{indent}{name}")
            show(value, indent + "  ")
        elif isinstance(value, float):
            print(f"{indent}{name:45s} {value:.6g}")
        else:
            print(f"{indent}{name:45s} {value}")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=768)
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--sweeps", type=int, default=3)
    parser.add_argument("--landmarks", type=int, default=5000)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds for the large inference")
    parser.add_argument("--every-sweep", action="store_true", help="once more with proofs in every sweep")
    parser.add_argument("--check-rows", type=int, default=20_000)
    parser.add_argument("--check-features", type=int, default=128)
    parser.add_argument("--check-bits", type=int, default=16)
    return parser.parse_args()


def wait(device: str) -> None:
    """Until the device has done its work."""
    if device != "cpu":
        torch.cuda.synchronize(device)


def embeddings(n: int, n_features: int, device: str, seed: int = 0) -> tuple[Any, Any]:
    """Unit rows, float32: a hundred clusters in a latent space of decaying spectrum, plus noise; and the clusters."""
    generator = torch.Generator(device=device).manual_seed(seed)
    latent = min(64, n_features)
    spectrum = torch.linspace(1.0, 0.2, latent, device=device)
    mixing = torch.randn((latent, n_features), generator=generator, device=device) / latent**0.5
    centers = torch.randn((100, latent), generator=generator, device=device)
    labels = torch.randint(0, 100, (n,), generator=generator, device=device)
    X = torch.empty((n, n_features), device=device)
    for first in range(0, n, 100_000):
        rows = slice(first, min(first + 100_000, n))
        count = rows.stop - rows.start
        hidden = centers[labels[rows]] + torch.randn((count, latent), generator=generator, device=device)
        X[rows] = (hidden * spectrum) @ mixing
        X[rows] += 0.3 * torch.randn((count, n_features), generator=generator, device=device)
    X /= X.norm(dim=1, keepdim=True)
    return X, labels


def best_seconds(function: Callable[[], Any], device: str, repeats: int = 3) -> float:
    function()
    times = []
    for _ in range(repeats):
        wait(device)
        began = time.perf_counter()
        function()
        wait(device)
        times.append(time.perf_counter() - began)
    return min(times)


def machine(device: str) -> dict[str, Any]:
    """Copy bandwidth (read + written) and rates of square matrix products."""
    on_gpu = device != "cpu"
    numbers, side = (1 << 30, 8192) if on_gpu else (1 << 24, 1024)
    pair = [torch.ones(numbers, device=device), torch.empty(numbers, device=device)]
    seconds = best_seconds(lambda: pair[1].copy_(pair[0]), device)
    found: dict[str, Any] = {
        "device": torch.cuda.get_device_name(device) if on_gpu else "cpu",
        "torch": torch.__version__,
        "numpy": np.__version__,
        "copy_bytes_per_second": 2.0 * 4 * numbers / seconds,
    }
    pair.clear()
    kinds = {"float32": torch.float32, "float64": torch.float64}
    if on_gpu:
        kinds["bfloat16"] = torch.bfloat16
    for name, dtype in kinds.items():
        A = torch.randn((side, side), device=device).to(dtype)
        found[f"{name}_flops_per_second"] = 2.0 * side**3 / best_seconds(lambda A=A: A @ A, device)
    if on_gpu:
        A = torch.randn((side, side), device=device)
        torch.backends.cuda.matmul.allow_tf32 = True
        found["tf32_flops_per_second"] = 2.0 * side**3 / best_seconds(lambda: A @ A, device)
        torch.backends.cuda.matmul.allow_tf32 = False
    return found


def warm_up(n: int, n_features: int, n_bits: int, device: str) -> dict[str, Any]:
    """Libraries load and kernels are chosen on the first calls."""
    found = whole_inference(embeddings(n, n_features, device)[0], n_bits, 1, device, 60.0)
    return {name: found[name] for name in ("whole_seconds", "objectives", "certified_gap_max", "all_converged")}


def whole_inference(
    X: Any, n_bits: int, n_sweeps: int, device: str, limit: float, solver: Any = "auto"
) -> dict[str, Any]:
    """Target, start and sweeps."""
    rng = np.random.default_rng(0)
    began = time.perf_counter()
    target = Distance().build(X, None, rng)
    wait(device)
    built = time.perf_counter()
    start = inference.start_codes("auto", X, n_bits, rng, target)
    wait(device)
    started = time.perf_counter()
    codes, report = inference.infer_codes(target, start, solver=solver, n_sweeps=n_sweeps, rng=rng, time_limit=limit)
    wait(device)
    seconds = time.perf_counter() - started
    gaps = np.array([bit.gap for bit in report.bits])
    known = gaps[np.isfinite(gaps)]
    sweeps = [np.array([bit.sweep == s for bit in report.bits]) for s in range(1, len(report.objectives) + 1)]
    bit_seconds = np.array([bit.seconds for bit in report.bits])
    return {
        "target_seconds": built - began,
        "start_seconds": started - built,
        "inference_seconds": seconds,
        "whole_seconds": seconds + started - began,
        "bits_done": len(report.bits),
        "out_of_time": report.out_of_time,
        "seconds_a_bit": seconds / max(len(report.bits), 1),
        "seconds_a_bit_by_sweep": [float(bit_seconds[sweep].mean()) for sweep in sweeps],
        "certified_gap_mean_by_sweep": [float(gaps[sweep].mean()) for sweep in sweeps],
        "start_objective": report.start_objective,
        "objectives": report.objectives,
        "certified_bits": len(known),
        "certified_gap_max": float(known.max()),
        "all_converged": all(bit.status in ("converged", "optimal") for bit in report.bits),
        "peak_memory_gigabytes": torch.cuda.max_memory_allocated() / 1e9 if device != "cpu" else None,
        "codes": codes,
    }


def encoding(X: Any, n_bits: int, n_landmarks: int, device: str, rates: dict[str, Any]) -> dict[str, Any]:
    """A linear and a kernel function with made-up coefficients over all rows, margins and packed codes."""
    n, n_features = X.shape
    rng = np.random.default_rng(0)
    bits = distinct_bits(np.where(rng.random((64 + n_bits, n_bits)) < 0.5, -1, 1).astype(np.int8))
    linear = LinearMargins(rng.standard_normal((n_features, n_bits)), np.zeros(n_bits), bits, "made up")
    n_landmarks = min(n_landmarks, n)
    landmarks = X[:n_landmarks].cpu().numpy()
    kernel = KernelExpansion(
        landmarks, 1.0, rng.standard_normal((n_landmarks, n_bits)), np.zeros(n_bits), bits, "made up"
    )
    peak, copy = rates["float32_flops_per_second"], rates["copy_bytes_per_second"]
    found: dict[str, Any] = {}
    for name, functions, flops in (
        ("linear", linear, 2.0 * n * n_features * n_bits),
        ("rbf", kernel, 2.0 * n * n_landmarks * (n_features + n_bits)),
    ):
        margins = best_seconds(lambda f=functions: f.decision_function(X), device, 2)
        packed = best_seconds(lambda f=functions: pack_tensor((f.decision_function(X) >= 0).byte()), device, 1)
        found[name] = {
            "margin_seconds": margins,
            "encode_seconds": packed,
            "fraction_of_float32_matrix_peak": flops / margins / peak,
            "fraction_of_copy_bandwidth": 4.0 * n * (n_features + n_bits) / margins / copy,
        }
    return found


def searching(codes: Any, labels: Any, device: str) -> dict[str, Any]:
    """1,000 queries against all codes: the 100 nearest, mean average precision and precision within radius 2."""
    packed = pack_tensor((codes > 0).byte())
    queries, asked = packed[:1000], labels[:1000].cpu().numpy()
    known = labels.cpu().numpy()
    return {
        "queries": len(queries),
        "items": len(packed),
        "top_100_seconds": best_seconds(lambda: nearest_codes(queries, packed, min(100, len(packed))), device, 1),
        "map_seconds": best_seconds(lambda: metrics.mean_average_precision(queries, packed, asked, known), device, 1),
        "map": metrics.mean_average_precision(queries, packed, asked, known),
        "precision_radius_2": metrics.precision_within_radius(queries, packed, asked, known, radius=2),
    }


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


if __name__ == "__main__":
    main()
