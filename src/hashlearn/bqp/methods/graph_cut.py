"""Block graph cuts for min xᵀAx, eq. (5), after FastHash (Lin, Shen, Shi, van den Hengel and Suter, CVPR 2014).

The variables are divided into blocks whose members attract each other (a_ij ≤ 0). With all others fixed, the energy
of a block B is

    Σ_{i,j∈B} min(a_ij, 0) x_i x_j + Σ_{i∈B} u_i x_i,    u_i = 2 Σ_{j∉B} a_ij x_j,

which is submodular because a_ij is clipped at 0. So an s–t minimum cut minimizes it exactly.

A sweep over all blocks costs O(n · max_block) block entries (each O(rank) for low rank), as many edges in all cuts
together, and one product A @ x. No dense array is larger than a block, so low rank and sparse stay linear in n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from hashlearn.bqp.operators import Operator
from hashlearn.bqp.solution import Status
from hashlearn.bqp.state import Solver, SolveState
from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import whole_number

# Capacities are int32: no sum of them, and no residual, may pass 2³¹ − 1.
LARGEST_CAPACITY = 2**29
# Random candidates for each place in a block. A fixed number keeps the search linear in n.
WINDOW = 8

IndexArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class GraphCut(Solver):
    """Improves one block of variables at a time by a minimum cut, the inference step of FastHash. No bound.

    Starts from x0, else from all ones. A block's new signs are taken only if xᵀAx itself falls, so the value never
    rises. A sweep visits all blocks in random order.

    Parameters
    ----------
    blocks : a label for each variable; variables of equal label form a block (in FastHash: the class). None: found
        greedily, equal rows of a low-rank A being one variable: a random variable, then from a random sample of the
        others each that repels none of those taken before it
    max_block : larger blocks are cut at random into parts of at most this size, anew in every sweep. A cut of 500
        variables that all attract each other takes 10 to 60 ms, and the time grows with the square of the size
    max_iter : sweeps over all blocks; fewer if one changes nothing (status "converged")

    Deviations
    ----------
    SciPy's maximum flow takes 32-bit integers: capacities are rounded to 2⁻²⁹ of the largest one and the largest
    conceivable flow, after cutting every u_i down to 1.25 times the sum of its variable's in-block weights, beyond
    which it decides x_i whatever the others do. The rounding can cost optimality of a block by about one part in a
    thousand, never validity: whether xᵀAx falls is computed in float64.
    FastHash searches a block's members among all variables; a sample of 8 for each place makes that linear in n.
    Large blocks are split (``max_block``), for the same reason.

    Examples
    --------
    >>> import numpy as np
    >>> from hashlearn import bqp
    >>> classes = np.repeat([0, 1], 50)
    >>> same = classes[:, None] == classes
    >>> solution = bqp.solve(np.where(same, -1.0, 1.0), bqp.GraphCut(blocks=classes), random_state=0)
    >>> solution.value
    -10000.0
    """

    blocks: ArrayLike | None = None
    max_block: int = 500
    max_iter: int = 2

    name: ClassVar[str] = "graph_cut"

    @property
    def merges(self) -> bool:  # type: ignore[override]
        """Labels are for all variables, so these stay."""
        return self.blocks is None

    def __post_init__(self) -> None:
        whole_number(self.max_block, "max_block", least=1)
        whole_number(self.max_iter, "max_iter", least=1)
        if self.blocks is not None:
            labels = np.array(self.blocks)
            if labels.ndim != 1 or labels.dtype.kind not in "iub":
                raise ValueError(
                    "blocks must be None or a sequence of integer labels, one for each variable, "
                    f"got shape {labels.shape} and dtype {labels.dtype}"
                )
            labels.flags.writeable = False
            object.__setattr__(self, "blocks", labels)

    def solve(self, A: Operator, state: SolveState, rng: np.random.Generator, x0: np.ndarray | None) -> Status:
        """Propose the signs after every block that lowered the value."""
        couplings = Couplings(A, np.ones(A.n) if x0 is None else x0.copy())
        if self.blocks is None:
            blocks = self._greedy_blocks(couplings, state, rng)
        else:
            labels = np.asarray(self.blocks)
            if len(labels) != A.n:
                raise ValueError(
                    f"blocks must have {A.n} labels, one for each variable, got {len(labels)}; "
                    "leave blocks out to have them found"
                )
            order = np.argsort(labels, kind="stable")
            blocks = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
        state.details["n_blocks"] = len(blocks)
        for sweep in range(self.max_iter):
            parts = [part for block in blocks for part in self._parts(block, rng)]
            value, before = couplings.refresh(), couplings.x.copy()
            state.propose(couplings.x, value)
            for k, place in enumerate(rng.permutation(len(parts))):
                state.check_time("graph cut", (sweep + k / len(parts)) / self.max_iter)
                value += couplings.cut(parts[place])
                if value < state.value:
                    state.propose(couplings.x, value)
            if np.array_equal(before, couplings.x):
                return Status.CONVERGED
        return Status.ITERATION_LIMIT

    def _parts(self, block: IndexArray, rng: np.random.Generator) -> list[IndexArray]:
        """The block itself, or random equal parts of at most ``max_block`` variables."""
        if len(block) <= self.max_block:
            return [block]
        return np.array_split(rng.permutation(block), -(-len(block) // self.max_block))

    def _greedy_blocks(self, couplings: Couplings, state: SolveState, rng: np.random.Generator) -> list[IndexArray]:
        """A partition into blocks of at most ``max_block`` variables, in none of which two repel each other."""
        order = rng.permutation(len(couplings.x))
        waiting = order[:0]
        blocks: list[IndexArray] = []
        width = WINDOW * self.max_block
        while len(waiting) + len(order) > 0:
            state.check_time("blocks")
            count = max(0, width - len(waiting))
            window, order = np.concatenate([waiting, order[:count]]), order[count:]
            block = couplings.not_repelling(window, self.max_block)
            blocks.append(window[block])
            waiting = np.delete(window, block)
            # If blocks come out small, more candidates would be wasted.
            width = min(WINDOW * max(len(block), 8), WINDOW * self.max_block)
        return blocks


class Couplings:
    """Small parts of A as dense arrays, and signs x that change one block at a time. t = Pᵀx follows them."""

    def __init__(self, A: Operator, x: FloatArray) -> None:
        self._A, self.x = A, x
        self._t = A.P.T @ x

    def refresh(self) -> float:
        """Compute t anew; returns the value of x."""
        self._t = self._A.P.T @ self.x
        return self._A.value(self.x)

    def entries(self, rows: IndexArray, columns: IndexArray) -> FloatArray:
        """A[rows][:, columns], dense."""
        A = self._A
        if A.is_dense:
            return np.asarray(A.array[np.ix_(rows, columns)])
        low_rank = (A.P[rows] * A.weights) @ A.P[columns].T
        return low_rank if A.sparse is None else low_rank + A.sparse[rows][:, columns].toarray()

    def products(self, index: IndexArray) -> FloatArray:
        """(A x)[index]."""
        A = self._A
        if A.is_dense:
            return np.asarray(A.array[index] @ self.x)
        low_rank = A.P[index] @ (A.weights * self._t)
        return low_rank if A.sparse is None else low_rank + A.sparse[index] @ self.x

    def cut(self, index: IndexArray) -> float:
        """Improve x[index] if its minimum cut does; returns the change of xᵀAx, 0 if there is none."""
        inside, products = self.entries(index, index), self.products(index)
        old = self.x[index]
        difference = minimum_cut_signs(inside, 2.0 * (products - inside @ old)) - old
        gain = float(difference @ (2.0 * products + inside @ difference))
        if not gain < -1e-12 * float(np.abs(products) @ np.abs(difference)):
            return 0.0
        self.x[index] += difference
        self._t += self._A.P[index].T @ difference
        return gain

    def not_repelling(self, window: IndexArray, size: int) -> IndexArray:
        """Places in ``window``: its first variable and then each that repels none of those taken before it."""
        attracted = _not_positive(self.entries(window[:1], window)[0])
        attracted[0] = False
        candidates = np.concatenate([[0], np.flatnonzero(attracted)[: size - 1]])
        peaceful = _not_positive(self.entries(window[candidates], window[candidates]))
        allowed = np.ones(len(candidates), dtype=bool)
        for k in range(1, len(candidates)):
            if allowed[k]:
                allowed[k + 1 :] &= peaceful[k, k + 1 :]
        return candidates[allowed]


def minimum_cut_signs(inside: FloatArray, unary: FloatArray) -> FloatArray:
    """Signs that minimize Σ_{i,j} min(a_ij, 0) x_i x_j + Σ u_i x_i for a small dense block.

    On the source side of the cut is +1. A pair of different signs costs 4|a_ij| more than an equal one, the wrong sign
    of x_i costs 2|u_i| more than the right one; halves of both are the capacities.

    >>> minimum_cut_signs(np.array([[0.0, -1.0], [-1.0, 0.0]]), np.array([3.0, -1.0]))
    array([-1., -1.])
    """
    n = len(unary)
    pairs = 2.0 * np.maximum(-inside, 0.0)
    np.fill_diagonal(pairs, 0.0)
    reach = pairs.sum(axis=1)
    if not reach.any():
        return np.where(unary > 0.0, -1.0, 1.0)
    # A linear term a little above the sum of all in-block weights decides the sign already.
    linear = np.minimum(np.abs(unary), np.where(reach > 0.0, 1.25 * reach, pairs.max()))
    source, sink = n, n + 1
    capacities = np.zeros((n + 2, n + 2))
    capacities[:n, :n] = pairs
    capacities[source, :n] = np.where(unary < 0.0, linear, 0.0)
    capacities[:n, sink] = np.where(unary > 0.0, linear, 0.0)
    largest_flow = min(capacities[source].sum(), capacities[:, sink].sum())
    scale = LARGEST_CAPACITY / max(capacities.max(), largest_flow)
    network = sp.csr_array(np.rint(scale * capacities).astype(np.int32))
    flow = maximum_flow(network, source, sink).flow
    residual = network - flow
    residual.data = np.maximum(residual.data, 0)
    residual.eliminate_zeros()
    reached = breadth_first_order(residual, source, return_predecessors=False)
    signs = np.full(n + 2, -1.0)
    signs[reached] = 1.0
    return signs[:n]


def _not_positive(couplings: FloatArray) -> NDArray[np.bool_]:
    """Whether a_ij ≤ 0, up to rounding: a low-rank A rarely has exact zeros."""
    return couplings <= 1e-14 * np.abs(couplings).max()
