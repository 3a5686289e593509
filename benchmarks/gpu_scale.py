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

import torch

from benchmarks.gpu import comparison, sections
from hashlearn.inference import PRESETS


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
            results[name] = {key: value for key, value in found.items() if key not in ("codes", "target")}
        except Exception as error:
            traceback.print_exc()
            results[name] = {"error": f"{type(error).__name__}: {error}"}
        results[name]["section_seconds"] = time.perf_counter() - began
        print(f"\n== {name} ({results[name]['section_seconds']:.1f} s)", flush=True)
        show(results[name])

    device = options.device
    with torch.inference_mode():
        section("machine", lambda: sections.machine(device))
        rates = state.get("machine", {"copy_bytes_per_second": 4e12, "float32_flops_per_second": 5e13})
        copy = rates["copy_bytes_per_second"]
        few = min(options.rows, 20_000)
        section("warm_up", lambda: sections.warm_up(few, options.features, min(options.bits, 4), device))
        X, labels = sections.embeddings(options.rows, options.features, device)
        section(
            "inference",
            lambda: sections.whole_inference(X, options.bits, options.sweeps, device, copy, options.time_limit),
        )
        if options.every_sweep:  # the same solver as an object: every bit of every sweep with a proof
            section(
                "inference_every_sweep_proven",
                lambda: sections.whole_inference(
                    X, options.bits, options.sweeps, device, copy, options.time_limit, PRESETS["sampled_sdr"](len(X))
                ),
            )
            state.pop("inference_every_sweep_proven", None)
        if "inference" in state:
            codes, target = state["inference"]["codes"], state["inference"]["target"]
            section("profile", lambda: sections.profile(target, codes, options.bits, device, copy))
            section("search_and_metrics", lambda: sections.searching(codes, labels, device))
        section("encode", lambda: sections.encoding(X, options.bits, options.landmarks, device, rates))
        section(
            "agreement",
            lambda: comparison.agreement(options.check_rows, options.check_features, options.check_bits, 2, device),
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


if __name__ == "__main__":
    main()
