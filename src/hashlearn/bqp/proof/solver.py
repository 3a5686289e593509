"""Branch and bound for min xᵀAx, eq. (5): the optimum of about 100 variables, with a proof that anyone can check.

A short tabu search gives the incumbent. Each node's bound is the semidefinite relaxation with cuts of three, five and
seven entries (`cuts`), in factored form (`lagrangian`, `bound`). A node that is not pruned branches on a pair,
x_i = x_j or x_i = −x_j, so its children have one variable less (`tree`, `bound`). Nodes are taken best first, two
at a time, on two threads. Pruning uses the lattice of values: for integer A they differ by a known step.

Every leaf's dual point is rounded to integers and its bound computed exactly (`tree`). The tree and these points
are the proof (`proof`), which `hashlearn.bqp.proof.check` checks without trusting anything here.

A node of 100 variables takes about one second. Five random problems of 100 variables, with ±1 for half of all pairs,
needed from 1 to 49 nodes. Beasley's bqp50-1 to 3 and bqp100-1 to 3 close at the root.
"""

from __future__ import annotations

import heapq
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np

from hashlearn.bqp.flips import Descent
from hashlearn.bqp.methods.exact import enumerate_signs
from hashlearn.bqp.methods.local_search import LocalSearch
from hashlearn.bqp.operators import Dense, Operator
from hashlearn.bqp.proof.bound import choose_pair, strengthen
from hashlearn.bqp.proof.check import MOST_ENUMERATED, Dual, Groups, enumerated_bound
from hashlearn.bqp.proof.cuts import Cuts
from hashlearn.bqp.proof.proof import dual_entry, proof_of
from hashlearn.bqp.proof.tree import ExactProblem, Leaf, Node
from hashlearn.bqp.sdr import SemidefiniteRelaxation
from hashlearn.bqp.solution import Status
from hashlearn.bqp.state import OutOfTime, Solver, SolveState
from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import whole_number
from hashlearn.core.threads import n_threads
from hashlearn.core.thresholds import ENUMERATED_NODE, LARGEST_ENUMERATED, LARGEST_TREE

MOVES_PER_VARIABLE = 300  # of the tabu search for the first incumbent
FIRST_RANK = 12
MOST_COARSE_NODES = 2000  # that are branched on since float64 is too coarse for their largest entries
COARSE_ROUNDS = 6  # of the relaxation of such a node
AT_ONCE = 2  # nodes; the tree does not depend on the number of threads


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
        if (
            state.exact is not None and A.n <= LARGEST_ENUMERATED and not A.is_exact()
        ):  # the tree still writes the proof
            x, least = enumerate_signs(A, partial(state.check_time, "enumeration"), exact=state.exact)
            state.propose(x)
            state.propose_bound(least)
        return _Tree(ExactProblem(A, state.exact), state, rng).close(self.max_iter)


@dataclass(eq=False)
class _Result:
    """What happened to a node: the entry of a leaf, or the pair to branch on."""

    x: FloatArray
    bound: Fraction
    leaf: dict[str, Any] | None = None
    pair: tuple[int, int] | None = None
    coarse: bool = False


class _Tree:
    """The open nodes, the entries of the proof and the incumbent."""

    def __init__(self, problem: ExactProblem, state: SolveState, rng: np.random.Generator) -> None:
        self.problem, self._state = problem, state
        self.entries: list[dict[str, Any]] = []
        self._heap: list[tuple[float, int, Node]] = []
        self._pushed = 0
        self._stopped = threading.Event()
        self._max_nodes: int | None = None
        assert state.x is not None
        self.x, self.value = state.x, problem.integer_value(state.x)
        self._base = self.value  # against which constants are compared
        self._lowest: Fraction | None = None  # bound of the leaves
        self._coarse = 0
        C = problem.array.copy()
        np.fill_diagonal(C, 0.0)
        n = len(C)
        V = rng.standard_normal((n, min(n, FIRST_RANK)))
        V /= np.linalg.norm(V, axis=1)[:, None]
        diagonal = problem.array.diagonal().copy()
        self._push(problem.settled(Node(Groups.all_apart(n), C, diagonal, V, Cuts.none(), None, -math.inf)))

    def close(self, max_nodes: int | None) -> Status:
        """Process nodes until none is open, or until there are ``max_nodes``."""
        self._max_nodes = max_nodes
        second = ThreadPoolExecutor(1) if n_threads() > 1 else nullcontext()
        try:
            with second as pool:
                while self._heap:
                    if max_nodes is not None and len(self.entries) >= max_nodes:
                        return Status.ITERATION_LIMIT
                    if self._coarse > MOST_COARSE_NODES:
                        return Status.CONVERGED
                    nodes = [heapq.heappop(self._heap)[2] for _ in range(min(AT_ONCE, len(self._heap)))]
                    above = self.problem.above(self.value)
                    for node, result in zip(nodes, self._processed(nodes, above, pool), strict=True):
                        self._record(node, result)
                    self._propose_open_bound()
        finally:
            self._stopped.set()
        self._finish()
        return Status.OPTIMAL

    def _processed(self, nodes: list[Node], above: int, pool: ThreadPoolExecutor | None) -> list[_Result]:
        """The results of one or two nodes. The second is computed on another thread, if there is one."""
        other: Future[_Result] | None = None
        try:
            if pool is not None and len(nodes) > 1:
                other = pool.submit(self._process, nodes[1], above, self._check_time)
            results = [self._process(nodes[0], above, self._tick)]
            if other is None:
                return results + [self._process(node, above, self._tick) for node in nodes[1:]]
            while True:
                try:
                    return [*results, other.result(timeout=0.1)]
                except NotYet:
                    self._tick()
        except BaseException:
            self._stopped.set()
            raise

    def _process(self, node: Node, above: int, between: Callable[[], Any]) -> _Result:
        problem = self.problem
        best_x, best_value = self.x, problem.real(self.value - node.constant)
        flips = Descent(Dense.unchecked(node.C))

        def round_signs(z: FloatArray) -> None:
            nonlocal best_x, best_value
            z = flips.descend(z)
            value = float(z @ node.C @ z)
            if value < best_value - 1e-12 * abs(best_value):
                best_x, best_value = node.expanded(z), value

        if node.m <= (ENUMERATED_NODE if problem.is_exact else MOST_ENUMERATED):
            value, z = enumerated_bound(problem.N, node.groups)
            if value < self.value:
                best_x = node.expanded(z.astype(np.float64))
            return _Result(best_x, Fraction(value), leaf={"enumerate": True})
        certified: tuple[Dual, Fraction] | None = None

        def prunes(leaf: Leaf) -> bool:
            nonlocal certified
            certified = problem.certified(node, leaf)
            return certified[1] > above

        report = _Reports(self, node) if node.parent is None else (lambda leaf: None)
        coarse = problem.is_too_coarse(node, self.value)
        rounds = COARSE_ROUNDS if coarse else None
        threshold = problem.real(above - node.constant)
        relaxation = strengthen(node, threshold, prunes, report, round_signs, between, rounds)
        if relaxation.pruned or prunes(relaxation.leaf):
            assert certified is not None
            return _Result(best_x, certified[1], leaf={"dual": dual_entry(certified[0])})
        assert certified is not None
        if coarse:
            i, j = np.unravel_index(int(np.abs(node.C).argmax()), node.C.shape)
            return _Result(best_x, certified[1], pair=(int(min(i, j)), int(max(i, j))), coarse=True)
        return _Result(best_x, certified[1], pair=choose_pair(node, relaxation.X, between))

    def _record(self, node: Node, result: _Result) -> None:
        value = self.problem.integer_value(result.x)
        if value < self.value:
            self.x, self.value = result.x, value
            self._state.propose(result.x)
        node.index = len(self.entries)
        self._state.details["nodes"] = node.index + 1
        entry: dict[str, Any] = {} if node.parent is None else {"parent": node.parent, "sign": node.sign}
        node.bound = result.bound if node.bound is None else max(node.bound, result.bound)
        self._coarse += result.coarse
        if result.leaf is not None:
            self._lowest = node.bound if self._lowest is None else min(self._lowest, node.bound)
            self.entries.append(entry | result.leaf)
            return
        assert result.pair is not None
        i, j = result.pair
        self.entries.append(entry | {"branch": [node.variable(i) + 1, node.variable(j) + 1]})
        for sign in (1, -1):
            self._push(self.problem.settled(node.child(i, j, sign)))

    def _push(self, node: Node) -> None:
        heapq.heappush(self._heap, (self.problem.real(node.constant - self._base) + node.estimate, self._pushed, node))
        self._pushed += 1

    def _propose_open_bound(self) -> None:
        bounds = [node.bound for _, _, node in self._heap if node.bound is not None]
        self.propose_bound(min([Fraction(self._claim()), *bounds]))

    def _claim(self) -> int:
        """What the leaves so far prove, at most the value."""
        return self.value if self._lowest is None else min(self.value, self.problem.lattice.ceiling(self._lowest))

    def propose_bound(self, bound: Fraction) -> None:
        """Propose a bound on the whole problem, in units of N."""
        self._state.propose_bound(self.problem.proven(bound))

    def _finish(self) -> None:
        problem, state = self.problem, self._state
        unit = math.frexp(state.unit)[1] - 1  # `solve` may have divided A by a power of two
        signs = [int(s) for s in self.x]
        claim = self._claim()
        state.details["proof"] = proof_of(problem.N, problem.exponent + unit, signs, self.value, claim, self.entries)

    def _tick(self) -> None:
        self._state.check_time("branch and bound", len(self.entries) / self._max_nodes if self._max_nodes else None)

    def _check_time(self) -> None:
        if self._stopped.is_set() or self._state.is_late:
            raise OutOfTime


class _Reports:
    """Offers bounds while the root is computed, without taking more than a twentieth of the time."""

    def __init__(self, tree: _Tree, node: Node) -> None:
        self._tree, self._node, self._next = tree, node, 0.0

    def __call__(self, leaf: Leaf) -> None:
        started = time.perf_counter()
        if started < self._next:
            return
        problem = self._tree.problem
        bound = problem.certified(self._node, leaf)[1]
        self._tree.propose_bound(min(bound, Fraction(self._tree.value)))
        now = time.perf_counter()
        self._next = now + 20.0 * (now - started)
