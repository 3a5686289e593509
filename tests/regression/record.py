"""What a fit gave, the file that holds it, and when two such results count as the same.

The file ``recorded.npz`` holds a digest of all codes, the numbers, and the codes of at most 128 rows of each fit. It
also holds a fingerprint of the machine. BLAS and compiled kernels round differently on other processors, so codes are
compared only on the machine that recorded them. Elsewhere the objective decides.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_info

FILE = Path(__file__).with_name("recorded.npz")
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "torch", "dask")
RECORDED_ROWS = 128
SAME_NUMBER = 1e-9  # relative, on the same machine
HIGHER = 0.02  # what an objective may be higher on another machine, relative
SIMILAR_BITS = 0.97  # on another machine, of a method without an objective
TINY = 1e-12  # absolute; recorded zeros


@dataclass(frozen=True)
class Result:
    """Packed codes by the kind of row, and the numbers of the report; NaN where there is none."""

    n_bits: int
    codes: dict[str, NDArray[np.uint8]]
    objective: float = float("nan")
    bound: float = float("nan")
    status: str = ""

    def digest(self) -> str:
        """SHA-256 of all codes and the status; numbers are compared apart."""
        sums = hashlib.sha256(f"{self.n_bits} {self.status}".encode())
        for kind, codes in self.codes.items():
            sums.update(f"{kind} {codes.shape}".encode())
            sums.update(np.ascontiguousarray(codes, dtype=np.uint8).tobytes())
        return sums.hexdigest()

    def some_bits(self) -> NDArray[np.uint8]:
        """The bits of at most `RECORDED_ROWS` rows of each kind, evenly spaced; flat."""
        parts = []
        for codes in self.codes.values():
            index = np.unique(np.linspace(0, len(codes) - 1, RECORDED_ROWS).astype(int))
            parts.append(np.unpackbits(codes[index], axis=1, count=self.n_bits).ravel())
        return np.concatenate(parts)

    def recorded(self) -> Recorded:
        """The part that the file holds."""
        return Recorded(self.digest(), self.some_bits(), self.objective, self.bound, self.status)


@dataclass(frozen=True)
class Recorded:
    """The recorded part of a `Result`."""

    digest: str
    bits: NDArray[np.uint8]
    objective: float
    bound: float
    status: str


@cache
def facts() -> dict[str, Any]:
    """What rounding depends on: Python, packages, the processor, and the kernels that BLAS, NumPy and Numba use on it.

    Environment variables such as ``OPENBLAS_CORETYPE`` and ``NUMBA_CPU_NAME`` choose kernels on the same processor.
    """
    import numpy.linalg  # noqa: F401  (loads BLAS)
    import scipy.linalg  # noqa: F401

    blas = {
        (pool["internal_api"], pool.get("version"), pool.get("architecture"))
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    }
    return {
        "Python": ".".join(platform.python_version_tuple()[:2]),
        **{package: _version(package) for package in PACKAGES},
        "BLAS": sorted([str(part) for part in one] for one in blas),
        "machine": [platform.system(), platform.machine(), llvmlite.binding.get_host_cpu_name()],
        "kernels of Numba": [numba.config.CPU_NAME, numba.config.CPU_FEATURES],
        "kernels of NumPy": np.show_config(mode="dicts")["SIMD Extensions"].get("found"),
        "kernels of PyTorch": os.environ.get("ATEN_CPU_CAPABILITY"),
    }


def fingerprint() -> str:
    """The `facts` as text: equal fingerprints mean that equal codes can be expected."""
    return json.dumps(facts(), sort_keys=True)


def other_facts(made_by: str) -> str:
    """How the machine with fingerprint ``made_by`` differs from this one, in words; empty where it does not."""
    there, here = json.loads(made_by), json.loads(fingerprint())
    return "; ".join(
        f"{name} {there.get(name)} there, {here.get(name)} here"
        for name in sorted(there.keys() | here.keys())
        if there.get(name) != here.get(name)
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def write(entries: dict[str, Recorded]) -> None:
    """Replace the file."""
    bits = [entry.bits for entry in entries.values()]
    np.savez_compressed(
        FILE,
        fingerprint=fingerprint(),
        names=np.array(list(entries)),
        digests=np.array([bytes.fromhex(entry.digest) for entry in entries.values()], dtype="V32"),
        numbers=np.array([(entry.objective, entry.bound) for entry in entries.values()]),
        statuses=np.array([entry.status for entry in entries.values()]),
        lengths=np.array([len(part) for part in bits]),
        bits=np.packbits(np.concatenate(bits)),
    )


@cache
def read() -> tuple[str, dict[str, Recorded]]:
    """The fingerprint of the machine that wrote the file, and what it recorded, by name."""
    with np.load(FILE) as file:
        lengths = file["lengths"]
        bits = np.split(np.unpackbits(file["bits"], count=int(lengths.sum())), np.cumsum(lengths)[:-1])
        recorded = {
            str(name): Recorded(bytes(digest).hex(), part, float(objective), float(bound), str(status))
            for name, digest, part, (objective, bound), status in zip(
                file["names"], file["digests"], bits, file["numbers"], file["statuses"], strict=True
            )
        }
        return str(file["fingerprint"]), recorded


def difference(result: Result, before: Recorded, same_machine: bool) -> str:
    """What differs, in words; empty where nothing does.

    On the same machine codes and status are identical, and the objective and the bound agree to 1e-9.

    On another machine rounding differs. One sign that flips early can lead a descent to other codes of equal quality,
    so no bit is compared there. The objective may be lower, or at most 2 % higher: that is the quality of the codes. A
    method without an objective has no such number, so 97 % of its recorded bits must agree. A bound depends on the
    codes, so it is not compared either.
    """
    bits = result.some_bits()
    if bits.shape != before.bits.shape:
        return f"{len(bits)} bits instead of {len(before.bits)}"
    share = float(np.mean(bits == before.bits))
    told = f"{share:.2%} of recorded bits agree, objective {result.objective!r} instead of {before.objective!r}"
    if same_machine:
        if result.status != before.status:
            return f"ended with {result.status!r} instead of {before.status!r}; {told}"
        if result.digest() != before.digest:
            return f"other codes: {told}"
        if not _near(result.objective, before.objective):
            return told
        if not _near(result.bound, before.bound):
            return f"bound {result.bound!r} instead of {before.bound!r}"
        return ""
    if np.isnan(before.objective):
        return "" if np.isnan(result.objective) and share >= SIMILAR_BITS else told
    highest = before.objective + HIGHER * abs(before.objective) + TINY
    return "" if result.objective <= highest else told


def _near(a: float, b: float) -> bool:
    return bool(np.isclose(a, b, rtol=SAME_NUMBER, atol=TINY, equal_nan=True))
