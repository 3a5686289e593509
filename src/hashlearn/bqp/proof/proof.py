"""A proof as data: the tree with its dual points, in the format that `hashlearn.bqp.proof.check` reads."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hashlearn.bqp.proof.check import FORMAT, VERSION, Dual, IntArray, digest
from hashlearn.core.atomic_files import write_atomically


@dataclass(frozen=True, eq=False)
class Proof:
    """A proof that no signs are better than ``bound``. `save` writes it; ``hashlearn bqp-verify`` checks the file."""

    content: dict[str, Any]

    @property
    def n_nodes(self) -> int:
        """Inner nodes and leaves."""
        return len(self.content["nodes"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write JSON, gzipped if the name ends in ``.gz``, all or nothing."""
        data = json.dumps(self.content, separators=(",", ":")).encode()
        if os.fspath(path).endswith(".gz"):
            data = gzip.compress(data, mtime=0)
        write_atomically(Path(path), [data])

    def __repr__(self) -> str:
        return f"Proof(n={self.content['n']}, nodes={self.n_nodes})"


def proof_of(N: IntArray, exponent: int, x: list[int], value: int, bound: int, nodes: list[dict[str, Any]]) -> Proof:
    """The whole content. Values are in units of 2^exponent."""
    head = {"format": FORMAT, "version": VERSION, "problem": digest(N, exponent), "n": len(N), "exponent": exponent}
    return Proof(head | {"value": value, "bound": bound, "x": x, "nodes": nodes})


def dual_entry(dual: Dual) -> dict[str, Any]:
    """A leaf's dual point; a cut is its multiplier and its signed variables, counted from 1."""
    cuts = [[gamma, *cut] for gamma, cut in zip(dual.gamma, dual.cuts, strict=True)]
    return {"shift": dual.shift, "y": dual.y, "cuts": cuts}
