"""Rounding of the relaxation, single flips, merging of rows, checks of the input, and what `solve` reports."""

from __future__ import annotations

from benchmarks.mutants.mutant import Mutant

MERGING = ("tests/bqp/test_merging.py",)
OPERATORS = ("tests/bqp/test_operators.py",)
ROUNDING = ("tests/bqp/test_sdr.py",)
SOLVE = ("tests/bqp/test_solve.py",)
SWEEPS = ("tests/bqp/test_sweeps.py",)
ELIMINATION = ("tests/bqp/test_elimination.py",)

MUTANTS = [
    Mutant(
        "only the first 32 draws of a relaxation are valued",
        "bqp/sdr/relaxation.py",
        "normals[:, first : first + count]",
        "normals[:, :count]",
        ROUNDING,
    ),
    Mutant(
        "draws of later blocks of rows are valued with the signs of the first",
        "bqp/sdr/relaxation.py",
        "P[a:b].T @ _signs(relaxation, normals, a, b)",
        "P[a:b].T @ _signs(relaxation, normals, 0, b - a)",
        ROUNDING,
    ),
    Mutant(
        "draws of later blocks of rows have the signs of the first",
        "bqp/sdr/relaxation.py",
        "map_row_blocks(lambda a, b: _signs(relaxation, normals, a, b), A.n, width)",
        "map_row_blocks(lambda a, b: _signs(relaxation, normals, 0, b - a), A.n, width)",
        ROUNDING,
    ),
    Mutant(
        "columns of signs are valued without weights",
        "bqp/sdr/relaxation.py",
        "        products = A.rows.transposed(X)\n        return A.weights @ (products * products)",
        "        products = A.rows.transposed(X)\n        return (products * products).sum(axis=0)",
        ROUNDING,
    ),
    Mutant(
        "flips of later rows use the diagonal of the first rows",
        "bqp/rows/numpy_flips.py",
        "if helps(x[i], gradients[i - start, c], diagonal[i]):",
        "if helps(x[i], gradients[i - start, c], diagonal[i - start]):",
        ROUNDING,
    ),
    Mutant(
        "rows after a flipped one are judged by how things were before",
        "bqp/rows/numpy_flips.py",
        "            of_factor[j] += repeats * step * weights[n_codes + j] * factor[i, j]\n",
        "            pass\n",
        ROUNDING,
    ),
    Mutant(
        "a dense sweep counts the diagonal as a coupling",
        "bqp/sweeps.py",
        "others = field[i] - diagonal[i] * old",
        "others = field[i]",
        SWEEPS,
    ),
    Mutant(
        "a sweep over low rank forgets the sign that was there",
        "bqp/sweeps.py",
        "t[j] += (new - old) * P[i, j]",
        "t[j] += new * P[i, j]",
        SWEEPS,
    ),
    Mutant(
        "rows that repel each other are merged",
        "bqp/rows/merging.py",
        "return differs | repels[groups[a:b]]",
        "return differs",
        MERGING,
    ),
    Mutant(
        "rows whose hashes collide are merged",
        "bqp/rows/merging.py",
        "return differs | repels[groups[a:b]]",
        "return repels[groups[a:b]]",
        MERGING,
    ),
    Mutant(
        "a merged row weighs as the root of its number of rows",
        "bqp/rows/merging.py",
        "return P[first] * counts, groups",
        "return P[first] * np.sqrt(counts), groups",
        MERGING,
    ),
    Mutant(
        "rows are given to the wrong groups",
        "bqp/rows/merging.py",
        "return first[order], place[groups]",
        "return first[order], order[groups]",
        MERGING,
    ),
    Mutant(
        "rows with -0 and 0 are not merged",
        "bqp/rows/merging.py",
        "scratch[0] = P[i, j] + 0.0",
        "scratch[0] = P[i, j]",
        MERGING,
    ),
    Mutant(
        "a wide P with repeated rows is taken for one without",
        "bqp/rows/merging.py",
        "_count_distinct(P[:, -LOOK_AT_COLUMNS:]) > (1.0 - worthwhile) * n:",
        "_count_distinct(P[:, -LOOK_AT_COLUMNS:]) > worthwhile * n:",
        MERGING,
    ),
    Mutant(
        "a matrix that is not symmetric by one percent is averaged without a word",
        "core/checks.py",
        "SYMMETRY_TOLERANCE = 1e-10",
        "SYMMETRY_TOLERANCE = 1e-2",
        (*OPERATORS, *SOLVE),
    ),
    Mutant(
        "the caller's start is overwritten",
        "core/checks.py",
        "    return array.copy()",
        "    return array",
        SOLVE,
    ),
    Mutant(
        "entries that overflow when squared are taken",
        "core/checks.py",
        "    if array.size and largest > LARGEST_ENTRY:",
        "    if False:",
        (*OPERATORS, *SOLVE),
    ),
    Mutant(
        "a value above a bound of 0 counts as optimal",
        "bqp/solution.py",
        "except (ZeroDivisionError, OverflowError):\n        return math.inf",
        "except (ZeroDivisionError, OverflowError):\n        return 0.0",
        SOLVE,
    ),
    Mutant(
        "progress is told at every tick",
        "bqp/solution.py",
        "self._next_report = now + SECONDS_BETWEEN_REPORTS",
        "self._next_report = now",
        SOLVE,
    ),
    Mutant(
        "a later, weaker bound replaces a better one",
        "bqp/solution.py",
        "        if not bound > self.bound:",
        "        if False:",
        SOLVE,
    ),
    Mutant(
        "the best point changes when the solver goes on with it",
        "bqp/solution.py",
        "self.x, self.value = self.A.tall.copy(x), float(value)",
        "self.x, self.value = x, float(value)",
        (*SOLVE, "tests/bqp/test_graph_cut.py"),
    ),
    Mutant(
        "the bound may exceed the value",
        "bqp/solve.py",
        "bound = min(proven if slack == 0.0 else below(proven - slack), value)",
        "bound = proven - slack",
        SOLVE,
    ),
    Mutant(
        "a gap of one in a thousand counts as optimal",
        "bqp/solution.py",
        "OPTIMAL_GAP = 1e-9",
        "OPTIMAL_GAP = 1e-3",
        SOLVE,
    ),
    Mutant(
        "a cut counts the pull from outside the block half",
        "bqp/methods/graph_cut.py",
        "minimum_cut_signs(inside, 2.0 * (field - inside @ old))",
        "minimum_cut_signs(inside, field - inside @ old)",
        ("tests/bqp/test_graph_cut.py",),
    ),
    Mutant(
        "an eliminated variable gets the worse sign",
        "bqp/elimination.py",
        "x[order[t]] = -1.0 if field > 0.0 else 1.0",
        "x[order[t]] = 1.0 if field > 0.0 else -1.0",
        ELIMINATION,
    ),
    Mutant(
        "eliminations of integers round",
        "bqp/elimination.py",
        "stays |= whole and new[k] != np.floor(new[k])",
        "stays |= False",
        ELIMINATION,
    ),
    Mutant(
        "the edge between two neighbors is replaced instead of added to",
        "bqp/elimination.py",
        "    weight[q] += w\n",
        "    weight[q] = w\n",
        ELIMINATION,
    ),
    Mutant(
        "bounds of a smaller problem lack its constant",
        "bqp/solve.py",
        "proven = smaller.unit * (proven + smaller.constant)",
        "proven = smaller.unit * proven",
        ELIMINATION,
    ),
    Mutant(
        "the possible values of a smaller problem are shifted",
        "bqp/solution.py",
        "Fraction(unit)) - int(constant)",
        "Fraction(unit)) - int(constant) + 1",
        ELIMINATION,
    ),
    Mutant(
        "a smaller problem hands on its own proof",
        "bqp/solve.py",
        'run.details.pop("proof", None)',
        "pass",
        ELIMINATION,
    ),
]
