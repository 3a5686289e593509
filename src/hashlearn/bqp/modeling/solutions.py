"""Answers in the words of the caller: `CutSolution`, `QuboSolution` and `IsingSolution`, made by `solve_problem`.

The objective is computed from the terms of the problem, not from xᵀAx. Where all weights are multiples of one power of
two, such as integers, the bound is rounded to a value that the objective can have, and the status is "optimal" if the
two meet. For other weights it is "optimal" if the gap of the objective is at most 1e-9. Both are compared as fractions.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from hashlearn.bqp.modeling.problem import Problem
from hashlearn.bqp.solution import Solution, SolverProgress, Status
from hashlearn.bqp.solve import solve
from hashlearn.core.arrays import FloatArray
from hashlearn.core.names import did_you_mean

Values: TypeAlias = "dict[Any, int] | NDArray[np.int8]"


@dataclass(frozen=True, eq=False)
class ProblemSolution:
    """The best answer to a `Problem` in its owner's words, and a bound on its optimum.

    Attributes
    ----------
    objective : the cut or the energy, in the owner's own sense
    bound : no objective is better; infinite if the method proves nothing
    gap : |objective − bound| / |bound|, compared without rounding; 0 if the objective is proven to be optimal
    values : dict from label to value; for a matrix an int8 array
    status : how the solve ended; "optimal" only if the gap is at most 1e-9, and 0 for integer weights
    seconds : wall-clock time of the solve
    problem, solution : the `Problem`, and the `Solution` of its operator
    """

    objective: float
    bound: float
    gap: float
    values: Values
    status: Status
    seconds: float
    problem: Problem
    solution: Solution

    word: ClassVar[str] = "energy"  # for the objective

    @property
    def lower_bound(self) -> float:
        """The optimum is at least this: the bound, or the objective if the largest is sought."""
        return self.objective if self.problem.maximize else self.bound

    @property
    def upper_bound(self) -> float:
        """The optimum is at most this: the objective, or the bound if the largest is sought."""
        return self.bound if self.problem.maximize else self.objective

    def __repr__(self) -> str:
        side = "upper_bound" if self.problem.maximize else "lower_bound"
        return (
            f"{type(self).__name__}({self.word}={self.objective:.10g}, {side}={self.bound:.10g}, gap={self.gap:.3g}, "
            f"status={self.status.value!r}, n={self.problem.n}, method={self.solution.method!r}, "
            f"seconds={self.seconds:.3g})"
        )


class CutSolution(ProblemSolution):
    """The largest cut and a bound that no cut exceeds. ``sides`` maps each node to −1 or +1."""

    word = "cut"
    cut = property(attrgetter("objective"))
    sides = property(attrgetter("values"))

    @property
    def partition(self) -> tuple[list[Any], list[Any]]:
        """The nodes on side +1, and those on side −1."""
        sides = self.values.items() if isinstance(self.values, dict) else enumerate(self.values.tolist())
        parts: tuple[list[Any], list[Any]] = ([], [])
        for node, side in sides:
            parts[side < 0].append(node)
        return parts

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the graph: parallel edges summed, self-loops left out."""
        return self.problem.notes


class QuboSolution(ProblemSolution):
    """The best energy of a QUBO or of a binary quadratic model. ``assignment`` maps labels to 0 or 1, spins to ±1."""

    energy = property(attrgetter("objective"))
    assignment = property(attrgetter("values"))


class IsingSolution(ProblemSolution):
    """The lowest energy of an Ising model. ``spins`` maps labels to −1 or +1."""

    energy = property(attrgetter("objective"))
    spins = property(attrgetter("values"))


Kind = TypeVar("Kind", bound=ProblemSolution)


def solve_problem(problem: Problem, *, fixed: Mapping[Any, int] | None = None, **options: Any) -> ProblemSolution:
    """Solve a `Problem`, for example from a file, and answer in its own words.

    Parameters
    ----------
    problem : from `read_problem`, `max_cut_problem`, `qubo_problem` or `ising_problem`
    fixed : variables that are given, as ``{label: value}``
    **options : passed to `solve`; ``x0`` (values of the variables) and ``progress`` are in the problem's words

    Returns
    -------
    CutSolution, QuboSolution or IsingSolution

    Examples
    --------
    >>> from hashlearn import bqp
    >>> bqp.solve_problem(bqp.qubo_problem({("a", "b"): 2, ("a", "a"): -1}), method="exact").assignment
    {'a': 1, 'b': 0}
    """
    _require_known(options, "solve_problem")
    kinds = {"max-cut": CutSolution, "ising": QuboSolution if problem.maximize else IsingSolution, "qubo": QuboSolution}
    return solved(kinds[problem.sense], problem, fixed, options)


def solved(kind: type[Kind], problem: Problem, fixed: Mapping[Any, int] | None, options: Mapping[str, Any]) -> Kind:
    """`solve_problem` with an answer of this kind."""
    _require_known(options, {CutSolution: "max_cut", QuboSolution: "qubo", IsingSolution: "ising"}[kind])
    passed = dict(options)
    if fixed is not None:
        passed["fixed"] = _fixed_signs(problem, fixed)
        if fixed and problem.anchor is not None:
            passed["fixed"] |= {problem.anchor: 1}
    if passed.get("x0") is not None:
        passed["x0"] = _start(problem, passed["x0"])
    if passed.get("progress") is not None:
        passed["progress"] = in_words(problem, passed["progress"])
    return _answer(kind, problem, solve(problem.operator, **passed))


def _require_known(options: Mapping[str, Any], function: str) -> None:
    """Refuse what `solve` does not take, in the name of the function that was called."""
    known = list(inspect.signature(solve).parameters)[1:]
    for name in options:
        if name not in known:
            hint = "; use sense='max'" if name == "maximize" and function == "qubo" else did_you_mean(name, known)
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")


def _answer(kind: type[Kind], problem: Problem, solution: Solution) -> Kind:
    """The solution of a problem's operator in the problem's own words."""
    values = problem.assignment(solution.x)
    objective, status = problem.evaluate(values), solution.status
    bound, gap, optimal = problem.objective_bound(-math.inf), math.inf, False
    if math.isfinite(solution.bound):
        proven = problem.proven_bound(solution.bound, solution.exact_bound)
        bound, gap = problem.rounded_bound(proven), problem.gap(objective, proven)
        optimal = problem.is_optimal(objective, proven)
    if optimal or status == Status.OPTIMAL:
        status = Status.OPTIMAL if optimal else Status.CONVERGED
    return kind(float(objective), bound, gap, problem.labeled(values), status, solution.seconds, problem, solution)


def in_words(problem: Problem, progress: Callable[[SolverProgress], Any]) -> Callable[[SolverProgress], Any]:
    """A progress callback that is called with value and bound in the problem's units."""

    def report(state: SolverProgress) -> None:
        value, bound = problem.objective(state.value), problem.objective_bound(state.bound)
        progress(dataclasses.replace(state, value=value, bound=bound))

    return report


def _fixed_signs(problem: Problem, fixed: Mapping[Any, int]) -> dict[int, int]:
    """The signs of eq. (5) that fixed variables have."""
    if not isinstance(fixed, Mapping):
        raise TypeError(f"fixed must be a dict from label to value, got {type(fixed).__name__}")
    return {_numbered(problem, label): _sign(problem, value, f"fixed[{label!r}]") for label, value in fixed.items()}


def _numbered(problem: Problem, label: Hashable) -> int:
    if label not in problem.index:
        names = [known for known in problem.index if isinstance(known, str)]
        hint = did_you_mean(label, names) if isinstance(label, str) and names else ""
        raise ValueError(f"there is no variable {label!r}{hint}")
    return problem.index[label]


def _sign(problem: Problem, value: Any, name: str) -> int:
    low = 0 if problem.sense == "qubo" else -1
    if isinstance(value, str) or value not in (low, 1):
        raise ValueError(f"{name} must be {low} or {'' if low == 0 else '+'}1, got {value!r}")
    return 1 if value == 1 else -1


def _start(problem: Problem, x0: Any) -> FloatArray:
    """The signs of a start given as a dict from label to value, or as an array in the order of the variables."""
    if isinstance(x0, Mapping):
        missing = [label for label in problem.index if label not in x0]
        if missing:
            raise ValueError(f"x0 must have a value for every variable, and has none for {missing[0]!r}")
        x0 = [x0[label] for label in problem.index]
    x0 = np.asarray(x0)
    if x0.shape != (problem.n,):
        raise ValueError(f"x0 must have {problem.n} values, one for each variable, got shape {x0.shape}")
    x = np.array([_sign(problem, value, f"x0[{k}]") for k, value in enumerate(x0.tolist())], dtype=np.float64)
    return x if problem.anchor is None else np.append(x, 1.0)
