"""The measurements of `benchmarks.gpu_scale`, one function each; every one returns a plain dictionary."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks.gpu.recording import MEMORY_BOUND, recording, wait
from hashlearn import bqp, inference, metrics
from hashlearn.bits.tensors import pack_tensor
from hashlearn.hash_functions import KernelExpansion, LinearMargins, distinct_bits
from hashlearn.inference.presets import chosen
from hashlearn.inference.whole_bits import WholeBits
from hashlearn.search import nearest_codes
from hashlearn.targets import Distance


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
    found = whole_inference(embeddings(n, n_features, device)[0], n_bits, 1, device, 1.0, 60.0)
    return {name: found[name] for name in ("whole_seconds", "objectives", "certified_gap_max", "all_converged")}


def whole_inference(
    X: Any, n_bits: int, n_sweeps: int, device: str, copy: float, limit: float, solver: Any = "auto"
) -> dict[str, Any]:
    """Target, start, sweeps; with the passes counted, and the fraction of the copy bandwidth they come to."""
    rng = np.random.default_rng(0)
    began = time.perf_counter()
    target = Distance().build(X, None, rng)
    wait(device)
    built = time.perf_counter()
    start = inference.start_codes("auto", X, n_bits, rng, target)
    wait(device)
    started = time.perf_counter()
    with recording(device, timed=False, large=min(50_000, len(X) // 2)) as recorder:
        certificates = [0]
        codes, report = inference.infer_codes(
            target,
            start,
            solver=solver,
            n_sweeps=n_sweeps,
            rng=rng,
            time_limit=limit,
            progress=lambda _: certificates.append(recorder.ticks["certificate"]),
        )
        wait(device)
    seconds = time.perf_counter() - started
    gaps = np.array([bit.gap for bit in report.bits])
    known = gaps[np.isfinite(gaps)]
    a_bit = np.diff(certificates)
    moved, moved_once = sum(recorder.bytes.values()), sum(recorder.bytes_once.values())
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
        "certificates_a_bit": float(a_bit.mean()),
        "certificates_a_bit_by_sweep": [float(a_bit[sweep].mean()) for sweep in sweeps],
        "certified_gap_mean_by_sweep": [float(gaps[sweep].mean()) for sweep in sweeps],
        "start_objective": report.start_objective,
        "objectives": report.objectives,
        "certified_bits": len(known),
        "certified_gap_mean": float(known.mean()),
        "certified_gap_max": float(known.max()),
        "all_converged": all(bit.status in ("converged", "optimal") for bit in report.bits),
        "bytes_read": moved,
        "fraction_of_copy_bandwidth_as_read": moved / seconds / copy,
        "fraction_of_copy_bandwidth_one_read_a_pass": moved_once / seconds / copy,
        "peak_memory_gigabytes": torch.cuda.max_memory_allocated() / 1e9 if device != "cpu" else None,
        **recorder.summary(),
        "codes": codes,
        "target": target,
    }


def profile(target: Any, codes: Any, n_bits: int, device: str, copy: float) -> dict[str, Any]:
    """The first bits once more, waiting for the device around every pass: seconds of each, and their bandwidth."""
    solver: Any = chosen("auto", target, n_bits).solver
    problems = WholeBits(target, codes, solver, solver, monotone=True, rng=np.random.default_rng(0))
    count = min(n_bits, 8)
    with recording(device, timed=True, large=min(50_000, problems.n // 2)) as recorder:
        for bit in range(count):
            A = problems.problem(bit)
            bqp.solve(A, solver, random_state=bit, x0=problems.codes[:, bit])
            recorder.tick("between bits", device)
    found = recorder.summary()
    found["stage_milliseconds_a_bit"] = {k: 1e3 * v / count for k, v in recorder.stages.items()}
    found["pass_milliseconds"] = {k: 1e3 * v / max(recorder.calls[k], 1) for k, v in recorder.seconds.items()}
    found["fraction_of_copy_bandwidth"] = {
        name: recorder.bytes[name] / seconds / copy for name, seconds in recorder.seconds.items() if seconds > 0.0
    }
    seconds = sum(recorder.seconds[name] for name in MEMORY_BOUND)
    moved = sum(recorder.bytes[name] for name in MEMORY_BOUND)
    found["fraction_of_copy_bandwidth_row_passes"] = moved / max(seconds, 1e-12) / copy
    return found


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
