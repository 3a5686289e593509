"""Everyone else's solvers of the relaxation (10). Adding one is its file and one line here."""

from __future__ import annotations

from benchmarks.bqp.peers.base import Answer, GaveUp, NotInstalled, Peer
from benchmarks.bqp.peers.conic import SCS, Clarabel
from benchmarks.bqp.peers.csdp import CSDP
from benchmarks.bqp.peers.cvxopt import CVXOPT
from benchmarks.bqp.peers.dsdp import DSDP, DSDPInCVXOPT
from benchmarks.bqp.peers.pymanopt import ConjugateGradient, TrustRegions, TrustRegionsDense
from benchmarks.bqp.peers.sdpa import SDPA, SDPAPython

__all__ = ["PEERS", "Answer", "GaveUp", "NotInstalled", "Peer"]

PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        CSDP(),
        SDPA(),
        SDPAPython(),
        DSDP(),
        DSDPInCVXOPT(),
        CVXOPT(),
        Clarabel(),
        SCS(),
        TrustRegions(),
        ConjugateGradient(),
        TrustRegionsDense(),
    )
}
