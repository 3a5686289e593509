"""Other packages' methods by name, at the sizes that they allow: rows of the table "frontier".

Some methods store a fixed number of bits for each dimension. For these, rows are first projected to principal
components, as many as the bytes allow. Adding a peer is a line in `PEERS`, and a class in `coders` unless FAISS's index
factory knows it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec

from hashlearn.experiments.bench.coders import NORM_BYTES, Coder, FaissIndex, FaissITQ, TurboquantPro, Turbovec, faiss

FACTORS = 8  # bytes that RaBitQ stores beside one bit for each dimension
MORE_FACTORS = 20  # with more bits


@dataclass(frozen=True)
class Peer:
    """One row of the table.

    Parameters
    ----------
    name : in results
    package : the module that it needs
    install : what pip calls it
    least_bytes : smaller sizes are left out
    make : (bytes a row, number of features, metric) → a coder
    """

    name: str
    package: str
    install: str
    least_bytes: int
    make: Callable[[int, int, str], Coder]

    @property
    def installed(self) -> bool:
        """Whether the package can be imported."""
        return find_spec(self.package) is not None

    @property
    def version(self) -> dict[str, str]:
        """The package's version, by its name."""
        return {self.install: metadata.version(self.install)}

    def fits(self, n_bits: int) -> bool:
        """Whether the peer has codes of this size."""
        return n_bits % 8 == 0 and n_bits >= 8 * self.least_bytes

    def build(self, n_bits: int, n_features: int, metric: str) -> Coder:
        """The coder, not yet fitted."""
        if not self.installed:
            raise ImportError(f"{self.name} needs {self.install}, which is not installed: pip install {self.install}")
        return self.make(n_bits // 8, n_features, metric)


def _factory(name: str, description: str, parts: Callable[[int], int] = lambda n_bytes: 1) -> Peer:
    """A peer of FAISS's index factory: ``{n}`` is the number of bytes, ``{half}`` half of it.

    ``parts`` says how many parts the quantizer cuts the features into, given the number of bytes.
    """
    in_halves = "{half}" in description

    def make(n_bytes: int, n_features: int, metric: str) -> Coder:
        if in_halves and n_bytes % 2:
            raise ValueError(f"{name} needs an even number of bytes, got {n_bytes}")
        text = description.format(n=n_bytes, half=n_bytes // 2)
        return FaissIndex(text, n_features, parts(n_bytes), decoded="PQ" not in text)

    return Peer(name, "faiss", "faiss-cpu", 2 if in_halves else 1, make)


def _rabitq(bits: int) -> Peer:
    """RaBitQ with ``bits`` bits for each of as many rotated principal components as fit beside its factors."""

    def make(n_bytes: int, n_features: int, metric: str) -> Coder:
        sizes = {
            dim: faiss().index_factory(dim, f"RaBitQ{bits}").sa_code_size()
            for dim in range(1, 1 + min(n_features, 8 * n_bytes // bits))
        }
        most = max(dim for dim, size in sizes.items() if size <= n_bytes)
        return FaissIndex(f"PCAR{most},RaBitQ{bits}", n_features)

    name = f"RaBitQ {bits} bit{'s' if bits > 1 else ''}"
    return Peer(name, "faiss", "faiss-cpu", 1 + (FACTORS if bits == 1 else MORE_FACTORS), make)


def _turboquant(package: str, install: str, kind: Callable[[int, int, str, int], Coder], bits: int) -> Peer:
    def make(n_bytes: int, n_features: int, metric: str) -> Coder:
        return kind(n_bytes, n_features, metric, bits)

    return Peer(f"{install} {bits} bits", package, install, NORM_BYTES + bits, make)


PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer("FAISS ITQ", "faiss", "faiss-cpu", 1, lambda n_bytes, n_features, _: FaissITQ(8 * n_bytes, n_features)),
        # "np" leaves out polysemous training, which only a filter by Hamming distance needs.
        _factory("PQ", "PQ{n}x8np", parts=lambda n_bytes: n_bytes),
        _factory("OPQ", "OPQ{n},PQ{n}x8np", parts=lambda n_bytes: n_bytes),
        _factory("RQ", "RQ{n}x8"),
        _factory("LSQ", "LSQ{n}x8"),
        _factory("PRQ", "PRQ2x{half}x8", parts=lambda n_bytes: 2),
        _rabitq(1),
        _rabitq(2),
        _rabitq(4),
        _turboquant("turbovec", "turbovec", Turbovec, 2),
        _turboquant("turbovec", "turbovec", Turbovec, 4),
        _turboquant("turboquant_pro", "turboquant-pro", TurboquantPro, 2),
        _turboquant("turboquant_pro", "turboquant-pro", TurboquantPro, 4),
    )
}
