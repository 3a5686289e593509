"""Branch and bound for min xᵀAx, eq. (5): the optimum of about 100 variables, with a proof that anyone can check.

A short tabu search gives the incumbent. Each node's bound is the semidefinite relaxation with cuts of three, five and
seven entries, in factored form (`cuts`, `bound`). A node that is not pruned branches on a pair,
x_i = x_j or x_i = −x_j, so its children have one variable less (`tree`, `bound`). Nodes are taken best first, two
at a time, on two threads. Pruning uses the lattice of values: for integer A they differ by a known step.

Every leaf's dual point is rounded to integers and its bound computed exactly (`tree`). The tree and these points
are the proof, which `hashlearn.bqp.proof.check` checks without trusting anything here.

A node of 100 variables takes about one second. Five random problems of 100 variables, with ±1 for half of all pairs,
needed from 1 to 49 nodes. Beasley's bqp50-1 to 3 and bqp100-1 to 3 close at the root.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hashlearn.bqp.flips import Descent
from hashlearn.bqp.methods.exact import enumerate_signs
from hashlearn.bqp.methods.local_search import LocalSearch
from hashlearn.bqp.operators import Dense, Operator
from hashlearn.bqp.proof.bound import choose_pair, rounds
from hashlearn.bqp.proof.check import MOST_ENUMERATED, enumerated_bound
from hashlearn.bqp.proof.tree import DualPoint, ExactProblem, Node, leaf_entry
from hashlearn.bqp.sdr import SemidefiniteRelaxation
from hashlearn.bqp.solution import Status
from hashlearn.bqp.state import OutOfTime, Solver, SolveState
from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import whole_number
from hashlearn.core.threads import map_threads
from hashlearn.core.thresholds import LARGEST_ENUMERATED, LARGEST_TREE

MOVES_PER_VARIABLE = 300  # of the tabu search for the first incumbent
FIRST_RANK = 12
MOST_COARSE_NODES = 2000  # that are branched on since float64 is too coarse for their largest entries
COARSE_ROUNDS = 6  # of the relaxation of such a node
AT_ONCE = 2  # nodes; the tree does not depend on the number of threads
REPORTING_SHARE = 0.05  # of the time at the root, for exact bounds that only tell how far it is


@dataclass(frozen=True)
class BranchAndBound(Solver):
    """Proves optimality by semidefinite bounds with cuts and branching on pairs, for about 100 variables.

    Random dense problems of 100 variables take seconds to a minute. With 150 variables they are left to the time limit,
    unless the relaxation is nearly tight.

    ``details["proof"]`` of an optimal solution is a `Proof`. Its ``save(path)`` writes a file that
    ``hashlearn bqp-verify`` checks in exact arithmetic. For integer A the bound is the value. Otherwise it lies below
    by at most 5e-10, relative to the caller's objective. Entries so large that float64 would hide that are branched on
    first; if 2,000 nodes do not resolve them, the best bound comes back with status "converged". Under a time limit
    the bound is the lowest of the open nodes, and there is no proof. Beyond 500 variables no tree is built, and the
    method is "sdr".

    Parameters
    ----------
    max_iter : nodes; None: until the tree is closed

    Examples
    --------
    >>> import numpy as np
    >>> from hashlearn import bqp
    >>> ring = np.roll(np.eye(9), 1, axis=1)
    >>> solution = bqp.solve(ring + ring.T, "branch_and_bound", random_state=0)
    >>> solution.value, solution.status.value, solution.details["proof"]
    (-14.0, 'optimal', Proof(n=9, nodes=1))
    """

    max_iter: int | None = None

    name: ClassVar[str] = "branch_and_bound"

    def __post_init__(self) -> None:
        if self.max_iter is not None:
            whole_number(self.max_iter, "max_iter", least=1)

    def solve(self, A: Operator, state: SolveState, rng: np.random.Generator, x0: FloatArray | None) -> Status:
        """Propose the incumbent, then bounds until they meet it."""
        if A.n > LARGEST_TREE:
            return SemidefiniteRelaxation().solve(A, state, rng, x0)
        LocalSearch(max_iter=MOVES_PER_VARIABLE * A.n).solve(Dense.unchecked(A.toarray()), state, rng, x0)
        if state.exact is not None and A.n <= LARGEST_ENUMERATED and not A.is_exact():
            x, least = enumerate_signs(A, partial(state.check_time, "enumeration"), exact=state.exact)
            state.propose(x)
            state.propose_bound(least)  # the tree still writes the proof
        return _Tree(ExactProblem(A, state.exact), state, rng, self.max_iter).close()


class _Result(NamedTuple):
    """What happened to a node: better signs if any, its bound, and the entry of a leaf or the pair to branch on."""

    x: FloatArray
    bound: Fraction
    leaf: dict[str, Any] | None = None
    pair: tuple[int, int] = (0, 0)
    is_coarse: bool = False


class _Tree:
    """The open nodes, the entries of the proof and the incumbent."""

    def __init__(
        self, problem: ExactProblem, state: SolveState, rng: np.random.Generator, max_nodes: int | None
    ) -> None:
        assert state.x is not None
        self._problem, self._state, self._max_nodes = problem, state, max_nodes
        self._n_nodes = 0
        self._heap: list[tuple[float, int, Node]] = []
        self._x, self._value = state.x, problem.integer_value(state.x)
        self._base = self._value  # against which constants are compared
        self._pushed = itertools.count()
        self._claim = self._value  # what the leaves so far prove, at most the value
        self._n_coarse = 0
        self._next_report = 0.0
        self._is_stopped = False
        V = rng.standard_normal((len(problem.N), min(len(problem.N), FIRST_RANK)))
        root = problem.root(V / np.linalg.norm(V, axis=1)[:, None])
        self._tree = root.subtree
        self._push(root)

    def close(self) -> Status:
        """Process nodes until none is open, or until there are ``max_nodes``."""
        try:
            while self._heap:
                if self._max_nodes is not None and self._n_nodes >= self._max_nodes:
                    return Status.ITERATION_LIMIT
                if self._n_coarse > MOST_COARSE_NODES:
                    return Status.CONVERGED
                self._check_time()
                nodes = [heapq.heappop(self._heap)[2] for _ in range(min(AT_ONCE, len(self._heap)))]
                process = partial(self._process, above=self._problem.above(self._value))
                results = list(map_threads(process, nodes) if len(nodes) > 1 else map(process, nodes))
                for node, result in zip(nodes, results, strict=True):
                    self._record(node, result)
                open_bounds = [node.bound for *_, node in self._heap if node.bound is not None]
                self._propose_bound(min([Fraction(self._claim), *open_bounds]))
        finally:
            self._is_stopped = True  # the other thread too
        unit = math.frexp(self._state.unit)[1] - 1  # `solve` may have divided A by a power of two
        proof = self._problem.proof(unit, self._x, self._value, self._claim, self._tree)
        self._state.details["proof"] = proof
        return Status.OPTIMAL

    def _process(self, node: Node, above: int) -> _Result:
        """Prune a node, or choose the pair to branch on; nothing of the tree changes."""
        problem, best_x = self._problem, self._x
        if node.m <= MOST_ENUMERATED:
            least, z = enumerated_bound(problem.N, node.groups)
            if least < self._value:
                best_x = node.expanded(z.astype(np.float64))
            return _Result(best_x, Fraction(least), leaf={"enumerate": True})
        best_value = problem.real(self._value - node.constant)
        flips = Descent(Dense.unchecked(node.C))
        is_coarse = problem.is_too_coarse(node, self._value)
        threshold, max_rounds = problem.real(above - node.constant), COARSE_ROUNDS if is_coarse else None
        for last in rounds(node, threshold, self._check_time, max_rounds):
            z = flips.descend(last.z)
            value = float(z @ node.C @ z)
            if value < best_value - 1e-12 * abs(best_value):
                best_x, best_value = node.expanded(z), value
            if node.is_root:
                self._report(node, last.point)
            if last.may_prune and (certificate := problem.certify(node, last.point))[1] > above:
                break
        else:
            certificate = problem.certify(node, last.point)
        dual, bound = certificate
        if bound > above:
            return _Result(best_x, bound, leaf=leaf_entry(dual))
        if is_coarse:
            i, j = sorted(int(k) for k in np.unravel_index(np.abs(node.C).argmax(), node.C.shape))
            return _Result(best_x, bound, pair=(i, j), is_coarse=True)
        return _Result(best_x, bound, pair=choose_pair(node, last.X, self._check_time))

    def _report(self, root: Node, point: DualPoint) -> None:
        """Propose the bound of a dual point, unless that would take too much of the time."""
        started = time.perf_counter()
        if started >= self._next_report:
            self._propose_bound(min(self._problem.certify(root, point)[1], Fraction(self._value)))
            now = time.perf_counter()
            self._next_report = now + (now - started) / REPORTING_SHARE

    def _record(self, node: Node, result: _Result) -> None:
        value = self._problem.integer_value(result.x)
        if value < self._value:
            self._x, self._value, self._claim = result.x, value, min(self._claim, value)
            self._state.propose(result.x)
        self._n_nodes += 1
        self._state.details["nodes"] = self._n_nodes
        node.bound = result.bound if node.bound is None else max(node.bound, result.bound)
        self._n_coarse += result.is_coarse
        if result.leaf is not None:
            self._claim = min(self._claim, self._problem.lattice.ceiling(node.bound))
            node.subtree.append(result.leaf)
            return
        node.subtree.append({"branch": [int(node.variables[k]) + 1 for k in result.pair]})
        for sign in (1, -1):
            child = self._problem.with_exact_entries(node.child(*result.pair, sign))
            node.subtree.append(child.subtree)
            self._push(child)

    def _push(self, node: Node) -> None:
        """Open a node; the best comes first, and of equal ones the older."""
        level = self._problem.real(node.constant - self._base) + node.estimate
        heapq.heappush(self._heap, (level, next(self._pushed), node))

    def _propose_bound(self, bound: Fraction) -> None:
        """Propose a bound on the whole problem, in units of N."""
        self._state.propose_bound(self._problem.in_units_of_A(bound))

    def _check_time(self) -> None:
        if self._is_stopped:
            raise OutOfTime
        self._state.check_time("branch and bound", self._n_nodes / self._max_nodes if self._max_nodes else None)
