"""Max-cut, QUBO and Ising problems in the words of their owners: senses, bounds, labels, files."""

from __future__ import annotations

from benchmarks.mutants.mutant import Mutant

PROBLEM = ("tests/bqp/modeling/test_problem.py",)
CUT = ("tests/bqp/modeling/test_max_cut.py",)
ENERGY = ("tests/bqp/modeling/test_qubo_and_ising.py",)
FORMATS = ("tests/bqp/test_problem_formats.py",)

MUTANTS = [
    Mutant(
        "linear coefficients count once in the constant of a QUBO",
        "bqp/modeling/problem.py",
        "(pair + 2 * alone) / 4",
        "(pair + alone) / 4",
        PROBLEM,
    ),
    Mutant(
        "a maximized energy is minimized",
        "bqp/modeling/problem.py",
        "sign = -1 if problem.maximize else 1",
        "sign = 1",
        PROBLEM,
    ),
    Mutant(
        "the rounding is added on the wrong side",
        "bqp/modeling/problem.py",
        "(1 if self.maximize else -1) * Fraction(form.rounding)",
        "(-1 if self.maximize else 1) * Fraction(form.rounding)",
        PROBLEM,
    ),
    Mutant(
        "the values of integer problems lie too far apart",
        "bqp/solution.py",
        "step = 4 * int(",
        "step = 8 * int(",
        ("tests/bqp/test_constraints.py",),
    ),
    Mutant(
        "a bound is lowered to a possible value instead of raised",
        "bqp/solution.py",
        "steps = math.ceil(",
        "steps = math.floor(",
        ("tests/bqp/test_problem_files.py",),
    ),
    Mutant(
        "signs do not count relative to the anchor",
        "bqp/modeling/problem.py",
        "own = own[: self.n] * own[self.anchor]",
        "own = own[: self.n]",
        PROBLEM,
    ),
    Mutant(
        "integers are divided by a rounded reciprocal",
        "bqp/modeling/problem.py",
        "half.data / divisor, h / divisor",
        "half.data * (1.0 / divisor), h * (1.0 / divisor)",
        PROBLEM,
    ),
    Mutant(
        "the anchor is not counted in a cardinality",
        "bqp/modeling/solutions.py",
        'passed["cardinality"] += 1  # the anchor',
        'passed["cardinality"] += 0  # the anchor',
        ENERGY,
    ),
    Mutant(
        "an integer problem is called optimal within a tolerance",
        "bqp/modeling/problem.py",
        "return objective == bound if self.is_lattice else is_optimal(",
        "return is_optimal(",
        CUT,
    ),
    Mutant(
        "integers beyond 2⁵³ are rounded in silence",
        "bqp/modeling/exact_numbers.py",
        "bad |= floats.astype(object) != array.astype(object)",
        "bad |= floats != array",
        ENERGY,
    ),
    Mutant(
        "a matrix that is not symmetric is taken as a graph",
        "bqp/modeling/matrices.py",
        "if difference.max() > SYMMETRY_TOLERANCE * abs(summed).max():",
        "if False:",
        CUT,
    ),
    Mutant(
        "directed graphs are taken as graphs",
        "bqp/modeling/graphs.py",
        "if graph.is_directed():",
        "if False:",
        CUT,
    ),
    Mutant(
        "parallel edges are not said",
        "bqp/modeling/labels.py",
        "if not len(repeats):",
        "if True:",
        CUT,
    ),
    Mutant(
        "BiqMac's weights count once",
        "bqp/problem_files/counted.py",
        "w = np.where(i == j, w, 2.0 * w)",
        "w = np.where(i == j, w, 1.0 * w)",
        ("tests/bqp/test_problem_files.py",),
    ),
    Mutant(
        "COO files have exponents, which dimod skips in silence",
        "bqp/problem_files/labeled.py",
        'lambda w: f"{Decimal(written(w)):f}"',
        "written",
        FORMATS,
    ),
    Mutant(
        "an offset is lost in a file",
        "bqp/problem_files/__init__.py",
        "if problem.offset:",
        "if False:",
        FORMATS,
    ),
    Mutant(
        "weights are written with fewer digits",
        "bqp/problem_files/lines.py",
        "else repr(float(w))",
        'else f"{w:.12g}"',
        FORMATS,
    ),
]
