"""Small files in the formats of the data sets, and their definitions as canonical files."""

from __future__ import annotations

import gzip
import hashlib
import struct
from pathlib import Path

import numpy as np

from hashlearn.experiments.datasets.files import PublishedFile


def canonical(folder: Path, path: str, content: bytes, urls: tuple[str, ...] = ()) -> PublishedFile:
    """Write ``content``; what the file would be known by."""
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return PublishedFile(path, f"sha256:{hashlib.sha256(content).hexdigest()}", urls)


def idx(array: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return gzip.compress(header + array.astype(np.uint8).tobytes())


def mnist_files(folder: Path, n_train: int = 6, n_test: int = 4) -> dict[str, str]:
    """Name → SHA-256 of the files that are written."""
    rng = np.random.default_rng(0)
    files = [
        canonical(folder, f"mnist/{part}-{kind}.gz", idx(array))
        for part, n in (("train", n_train), ("t10k", n_test))
        for kind, array in (
            ("images-idx3-ubyte", rng.integers(0, 256, (n, 28, 28))),
            ("labels-idx1-ubyte", np.arange(n) % 10),
        )
    ]
    return checksums(files)


def checksums(files: list[PublishedFile]) -> dict[str, str]:
    return {file.path.rpartition("/")[2]: file.checksum.removeprefix("sha256:") for file in files}


def cifar_batches(n: int = 3) -> dict[str, bytes]:
    """Six files of ``n`` images each; the label of image i of file f is (f + i) % 10."""
    rng = np.random.default_rng(1)
    names = [f"cifar-10-batches-bin/data_batch_{k}.bin" for k in range(1, 6)] + ["cifar-10-batches-bin/test_batch.bin"]
    content = {}
    for f, name in enumerate(names):
        labels = (f + np.arange(n)).astype(np.uint8) % 10
        pixels = rng.integers(0, 256, (n, 3072), dtype=np.uint8)
        content[name] = np.column_stack([labels, pixels]).astype(np.uint8).tobytes()
    return content
