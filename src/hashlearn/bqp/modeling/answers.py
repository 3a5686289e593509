"""`max_cut`, `qubo`, `ising` and `solve_problem`: solve a problem, and answer in its owner's words, or in dimod's.

The objective is computed from the terms of the problem, not from xᵀAx. The status is "optimal" if the bound meets it:
exactly where A is exact, as for integer weights, and by a gap of 1e-9 for other weights. Both are compared as
fractions.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hashlearn.bqp.methods.auto import Auto
from hashlearn.bqp.modeling.problem import Problem, Sense
from hashlearn.bqp.modeling.problem_readers import ising_problem, max_cut_problem, model_problem, qubo_problem
from hashlearn.bqp.solution import Solution, SolverProgress, Status, relative_gap
from hashlearn.bqp.solve import solve
from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import whole_number
from hashlearn.core.names import did_you_mean
from hashlearn.core.packages import require

PARAMETERS = ("num_reads", "time_limit", "seed", "method", "max_iter", "fixed")  # of `DimodSampler.sample`

Values: TypeAlias = "dict[Any, int] | NDArray[np.int8]"

# What the owner of a problem calls the objective and the values of the variables.
WORDS: dict[Sense, tuple[str, tuple[str, ...]]] = {
    "max-cut": ("cut", ("sides",)),
    "qubo": ("energy", ("assignment",)),
    "ising": ("energy", ("assignment", "spins")),
}


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """The best answer to a `Problem` in its owner's words, and a bound on its optimum.

    Objective and values have a second name, which only answers of that kind have: a largest cut has ``cut`` and
    ``sides``, a QUBO ``energy`` and ``assignment``, an Ising model ``energy`` and ``spins`` (or ``assignment``).

    Attributes
    ----------
    problem, solution : the `Problem`, and the `Solution` of its operator
    objective : the cut or the energy, in the owner's own sense
    bound : no objective is better; infinite if the method proves nothing
    gap : |objective − bound| / |bound|, compared without rounding; 0 if the objective is proven to be optimal
    values : dict from label to value (−1 or +1, in a QUBO 0 or 1); for a matrix an int8 array
    status : how the solve ended; "optimal" only if the gap is at most 1e-9, and 0 for integer weights
    """

    problem: Problem
    solution: Solution
    objective: float
    bound: float
    gap: float
    values: Values
    status: Status
    cut: float = field(init=False)
    sides: Values = field(init=False)
    energy: float = field(init=False)
    assignment: Values = field(init=False)
    spins: Values = field(init=False)

    def __post_init__(self) -> None:
        word, names = WORDS[self.problem.sense]
        self.__dict__.update({word: self.objective, **dict.fromkeys(names, self.values)})

    @property
    def lower_bound(self) -> float:
        """The optimum is at least this: the bound, or the objective if the largest is sought."""
        return self.objective if self.problem.maximize else self.bound

    @property
    def upper_bound(self) -> float:
        """The optimum is at most this: the objective, or the bound if the largest is sought."""
        return self.bound if self.problem.maximize else self.objective

    @property
    def partition(self) -> tuple[list[Any], list[Any]]:
        """The nodes of a cut on side +1, and those on side −1."""
        pairs = list(self.values.items() if isinstance(self.values, dict) else enumerate(self.values.tolist()))
        return [node for node, side in pairs if side > 0], [node for node, side in pairs if side < 0]

    def __repr__(self) -> str:
        side = "upper_bound" if self.problem.maximize else "lower_bound"
        return (
            f"Answer({WORDS[self.problem.sense][0]}={self.objective:.10g}, {side}={self.bound:.10g}, "
            f"gap={self.gap:.3g}, status={self.status.value!r}, n={self.problem.n}, "
            f"method={self.solution.method!r}, seconds={self.solution.seconds:.3g})"
        )


def max_cut(graph: Any, *, weight: str = "weight", **options: Any) -> Answer:
    """Find a large cut of a graph, and prove that no cut is larger than a bound.

    Parameters
    ----------
    graph : one of

        - a networkx ``Graph`` or ``MultiGraph``; an edge without a weight has weight 1
        - a symmetric array or scipy.sparse matrix of weights; entry (i, j) is the edge between nodes i and j
        - an iterable of tuples ``(u, v)`` or ``(u, v, w)``; labels may be any hashable objects, of mixed types. A
          node without edges may be listed as ``(u, u, 0)``

        Parallel edges are summed, and a warning says so. Self-loops are in no cut. A graph without nodes has the cut 0.
    weight : the edge attribute of networkx that holds the weights
    **options : passed to `solve`: ``method``, ``time_limit``, ``random_state``, ``max_iter``, ``verbose``; and in the
        words of the graph ``fixed`` (sides that are given, as ``{node: 1 or -1}``), ``x0`` (sides) and ``progress``

    Returns
    -------
    Answer
        With ``cut``, ``upper_bound``, ``sides`` (from node to −1 or +1) and ``partition``.

    Examples
    --------
    >>> from hashlearn import bqp
    >>> answer = bqp.max_cut([("a", "b", 3), ("b", "c", 2), ("a", "c", 1)], method="exact")
    >>> answer.cut, answer.upper_bound, answer.status.value
    (5.0, 5.0, 'optimal')
    >>> answer.sides["a"] != answer.sides["b"] != answer.sides["c"]
    True
    """
    return solve_problem(max_cut_problem(graph, weight=weight), **options)


def qubo(
    Q: Any,
    *,
    linear: Any = None,
    offset: float = 0.0,
    sense: Literal["min", "max"] = "min",
    **options: Any,
) -> Answer:
    """Minimize (or maximize) zᵀQz + linearᵀz + offset over z of 0 and 1, with a proven bound.

    Parameters
    ----------
    Q : one of

        - a square array or scipy.sparse matrix. Any one will do, upper triangular or symmetric: the energy is zᵀQz, so
          only Q + Q.T matters, and a diagonal entry is linear.
        - a dict ``{(u, v): coefficient}`` with any labels, as in dimod: (u, v) and (v, u) add up, (u, u) is linear
        - a dimod ``BinaryQuadraticModel``. It keeps its labels; one of spins is solved over −1 and +1.
    linear : linear coefficients, as an array for a matrix or as a dict for a dict; None for 0
    offset : a constant
    sense : "min" or "max"
    **options : passed to `solve`: ``method``, ``time_limit``, ``random_state``, ``max_iter``, ``verbose``; and in the
        words of the QUBO ``fixed`` (values that are given, as ``{label: 0 or 1}``; for a matrix the label is the
        index), ``x0`` (values 0 and 1) and ``progress``

    Returns
    -------
    Answer
        With ``energy``, ``lower_bound``, ``upper_bound`` and ``assignment``.

    Examples
    --------
    >>> from hashlearn import bqp
    >>> answer = bqp.qubo({("a", "a"): -3, ("b", "b"): -2, ("a", "b"): 4}, method="exact")
    >>> answer.energy, answer.lower_bound, answer.assignment
    (-3.0, -3.0, {'a': 1, 'b': 0})
    >>> bqp.qubo([[2, -3], [0, 1]], sense="max", method="exact").assignment.tolist()
    [1, 0]
    """
    return solve_problem(qubo_problem(Q, linear=linear, offset=offset, sense=sense), **options)


def ising(
    h: Any = None,
    J: Any = None,
    offset: float = 0.0,
    **options: Any,
) -> Answer:
    """Minimize Σ h_i s_i + Σ J_ij s_i s_j + offset over spins s of −1 and +1, with a proven bound.

    Parameters
    ----------
    h : fields, as a dict from label or as an array; None for 0
    J : couplings, as a dict ``{(u, v): coefficient}``, a square array or a scipy.sparse matrix with zero diagonal.
        Every entry counts, as in dimod: a pair has the coefficient of (u, v) plus that of (v, u). A symmetric array
        counts every pair twice; pass ``np.triu(J)`` if that is not meant.
    offset : a constant
    **options : as for `qubo`, with spins −1 and 1

    Returns
    -------
    Answer
        With ``energy``, ``lower_bound`` and ``spins``.

    Examples
    --------
    >>> from hashlearn import bqp
    >>> answer = bqp.ising({"a": 0.5}, {("a", "b"): 1.0, ("b", "c"): -2.0}, method="exact")
    >>> answer.energy, answer.status.value, answer.spins
    (-3.5, 'optimal', {'a': -1, 'b': 1, 'c': 1})
    """
    return solve_problem(ising_problem(h, J, offset), **options)


def solve_problem(problem: Problem, **options: Any) -> Answer:
    """Solve a `Problem`, for example from a file, and answer in its own words.

    Parameters
    ----------
    problem : from `read_problem`, `max_cut_problem`, `qubo_problem` or `ising_problem`
    **options : passed to `solve`; ``fixed`` (as ``{label: value}``), ``x0`` (values of the variables) and ``progress``
        are in the problem's words

    Examples
    --------
    >>> from hashlearn import bqp
    >>> bqp.solve_problem(bqp.qubo_problem({("a", "b"): 2, ("a", "a"): -1}), method="exact").assignment
    {'a': 1, 'b': 0}
    """
    known = list(inspect.signature(solve).parameters)[1:]
    for name in options:
        if name not in known:
            hint = "; use sense='max'" if (name, problem.sense) == ("maximize", "qubo") else did_you_mean(name, known)
            raise TypeError(f"unexpected keyword argument {name!r}{hint}")
    for name, translated in (("fixed", _fixed_signs), ("x0", _start), ("progress", _in_words)):
        if options.get(name) is not None:
            options[name] = translated(problem, options[name])
    solution = solve(problem.operator, **options)
    values, status = problem.assignment(solution.x), solution.status
    objective, bound, gap, optimal = problem.evaluate(values), problem.objective_bound(-math.inf), math.inf, False
    if math.isfinite(solution.bound):
        sign, proven = -1 if problem.maximize else 1, problem.exact_bound(solution.bound, solution.exact_bound)
        bound, gap = problem.rounded_bound(proven), relative_gap(sign * objective, sign * proven)
        optimal = problem.is_optimal(objective, proven)
    if optimal or status == Status.OPTIMAL:
        status = Status.OPTIMAL if optimal else Status.CONVERGED
    own = values if problem.labels is None else dict(zip(problem.labels, values.tolist(), strict=True))
    return Answer(problem, solution, float(objective), bound, gap, own, status)


def _in_words(problem: Problem, progress: Callable[[SolverProgress], Any]) -> Callable[[SolverProgress], Any]:
    """A progress callback that is called with value and bound in the problem's units."""

    def report(state: SolverProgress) -> None:
        value, bound = problem.objective(state.value), problem.objective_bound(state.bound)
        progress(dataclasses.replace(state, value=value, bound=bound))

    return report


def _fixed_signs(problem: Problem, fixed: Any) -> dict[int, int]:
    if not isinstance(fixed, Mapping):
        raise TypeError(f"fixed must be a dict from label to value, got {type(fixed).__name__}")
    return _signs(problem, fixed, "fixed") if fixed else {}


def _start(problem: Problem, x0: Any) -> FloatArray:
    """The signs of a start: a dict from label to value, or an array in the order of the variables."""
    if not isinstance(x0, Mapping):
        x0 = np.asarray(x0)
        if x0.shape != (problem.n,):
            raise ValueError(f"x0 must have {problem.n} values, one for each variable, got shape {x0.shape}")
        x0 = dict(zip(problem.index, x0.tolist(), strict=True))
    signs = _signs(problem, {label: x0[label] for label in problem.index if label in x0}, "x0")
    for label, k in problem.index.items():
        if k not in signs:
            raise ValueError(f"x0 must have a value for every variable, and has none for {label!r}")
    return np.array([signs[k] for k in range(problem.operator.n)], np.float64)


def _signs(problem: Problem, values: Mapping[Any, int], name: str) -> dict[int, int]:
    """The signs of eq. (5) of variables by their numbers, and that of the anchor, relative to which they count."""
    low = 0 if problem.sense == "qubo" else -1
    signs = {} if problem.anchor is None else {problem.anchor: 1}
    for label, value in values.items():
        if label not in problem.index:
            names = [known for known in problem.index if isinstance(known, str)]
            raise ValueError(f"{name}: there is no variable {label!r}{did_you_mean(label, names)}")
        if isinstance(value, str) or value not in (low, 1):
            raise ValueError(f"{name}[{label!r}] must be {low} or {'' if low == 0 else '+'}1, got {value!r}")
        signs[problem.index[label]] = 1 if value == 1 else -1
    return signs


class DimodSampler:
    """A ``dimod.Sampler`` whose sample sets say how good they are: ``info`` holds a proven bound and the gap.

    Examples
    --------
    >>> import pytest; _ = pytest.importorskip("dimod")
    >>> from hashlearn import bqp
    >>> sampler = bqp.DimodSampler()
    >>> samples = sampler.sample_ising({"a": 0.5}, {("a", "b"): 1.0}, method="exact")
    >>> float(samples.first.energy), samples.info["bound"], samples.info["status"]
    (-1.5, -1.5, 'optimal')
    """

    _dimod: Any  # the package

    def __new__(cls) -> Any:
        """An instance of this class and of ``dimod.Sampler``."""
        dimod = require("dimod", "optimization", "DimodSampler")
        return object.__new__(type(dimod.Sampler)(cls.__name__, (cls, dimod.Sampler), {"_dimod": dimod}))

    @property
    def parameters(self) -> dict[str, list[str]]:
        """The keyword arguments of `sample`, as dimod lists them."""
        return {name: [] for name in PARAMETERS}

    @property
    def properties(self) -> dict[str, Any]:
        """What the sampler is."""
        return {"description": "hashlearn.bqp: binary quadratic models with proven bounds"}

    def sample(
        self,
        bqm: Any,
        *,
        num_reads: int = 1,
        time_limit: float | None = None,
        seed: int | None = None,
        **parameters: Any,
    ) -> Any:
        """Minimize the energy of a ``dimod.BinaryQuadraticModel``.

        Parameters
        ----------
        bqm : the model, of binary variables or of spins
        num_reads : how many solves, from different seeds; each gives one sample. Without a time limit, "auto" uses
            branch and bound in the first one only
        time_limit : seconds for all of them together
        seed : makes the samples reproducible
        **parameters : ``method``, ``max_iter`` and ``fixed``, as for `qubo`; others are ignored with dimod's warning

        Returns
        -------
        dimod.SampleSet
            Energies are those of the model. ``info`` holds ``bound`` (no energy is smaller; None if nothing was
            proven), ``gap`` and ``status`` of the best sample, ``seconds`` of all solves and ``method``.
        """
        options = self.remove_unknown_kwargs(**parameters)  # type: ignore[attr-defined]
        model = self._dimod.as_bqm(bqm)
        problem = model_problem(model)
        reads = whole_number(num_reads, "num_reads", least=1)
        if time_limit is not None:
            options["time_limit"] = time_limit / reads
        answers: list[Answer] = []
        for child in np.random.SeedSequence(seed).spawn(reads):
            passed = options | {"random_state": child}
            if answers and options.get("method", Auto.name) == Auto.name:
                passed["method"] = Auto(max_nodes=0)  # one proof is enough
            answers.append(solve_problem(problem, **passed))
        best = min(answers, key=lambda answer: (answer.energy, answer.gap))  # with the best bound for this energy
        info = {
            "bound": best.bound if math.isfinite(best.bound) else None,
            "gap": best.gap if math.isfinite(best.gap) else None,
            "status": best.status.value,
            "seconds": sum(answer.solution.seconds for answer in answers),
            "method": best.solution.method,
        }
        samples, energies = [answer.values for answer in answers], [answer.energy for answer in answers]
        return self._dimod.SampleSet.from_samples(samples, vartype=model.vartype, energy=energies, info=info)
