"""The objective of codes, the problem of one bit, descent over bits, codebooks, rotations and starts."""

from __future__ import annotations

from benchmarks.mutants.mutant import Mutant

INFERENCE = ("tests/inference/test_inference.py",)
CODEBOOK = ("tests/inference/test_codebook.py",)
MANY_ROWS = ("tests/inference/test_many_rows.py",)
ITQ = ("tests/hashers/test_itq.py",)

MUTANTS = [
    Mutant(
        "the objective counts the cross term once",
        "inference.objective.py",
        "- 2.0 * cross / n_bits",
        "- 1.0 * cross / n_bits",
        INFERENCE,
    ),
    Mutant(
        "a mixed target's square counts the cross term once",
        "inference.objective.py",
        "+ 2.0 * cross + frobenius_square(Y.low_rank)",
        "+ cross + frobenius_square(Y.low_rank)",
        INFERENCE,
    ),
    Mutant(
        "the target is not multiplied by the number of bits",
        "inference.objective.py",
        "np.r_[np.ones(self.n_bits - 1), -self.n_bits * weights]",
        "np.r_[np.ones(self.n_bits - 1), -weights]",
        INFERENCE,
    ),
    Mutant(
        "the problem of a bit holds old signs of the bit before",
        "inference.objective.py",
        "            self._factor.set_column(slot, self._codes.column(self._held_out))\n",
        "",
        INFERENCE,
    ),
    Mutant(
        "old signs of a bit stay in a dense problem",
        "inference.objective.py",
        "self._dense += np.multiply.outer(x, x) - np.multiply.outer(z, z)",
        "self._dense += np.multiply.outer(x, x)",
        INFERENCE,
    ),
    Mutant(
        "a bit that only changed its sign everywhere counts as changed",
        "inference/descent.py",
        "            if tall.dot(x, old) < 0.0:",
        "            if False:",
        INFERENCE,
    ),
    Mutant(
        "a bit is replaced by one of equal value",
        "inference/descent.py",
        "if not value < before - 1e-12 * abs(before):",
        "if not value <= before + 1e-12 * abs(before):",
        INFERENCE,
    ),
    Mutant(
        "inference ends when the last bit did not change, whatever the others did",
        "inference/descent.py",
        "report.bits[-problems.n_bits :]",
        "report.bits[-1:]",
        INFERENCE,
    ),
    Mutant(
        "the time limit does not reach the solver of a bit",
        "inference/descent.py",
        "x0=x0, time_limit=limit)",
        "x0=x0)",
        INFERENCE,
    ),
    Mutant(
        "codewords are spread whatever that costs in objective",
        "inference/codebook.py",
        "limit = (1.0 + NEAR_EQUAL * _differ(shares)) * objective(target, codes)",
        'limit = float("inf")',
        CODEBOOK,
    ),
    Mutant(
        "among codebooks of equal objective the nearer codewords win",
        "inference/codebook.py",
        "value <= best_objective + slack and closeness < best_nearness",
        "value <= best_objective + slack and closeness > best_nearness",
        CODEBOOK,
    ),
    Mutant(
        "annealing uses old products of codewords",
        "inference/codebook.py",
        "                    products[b, a] = products[a, b]\n",
        "",
        CODEBOOK,
    ),
    Mutant(
        "codes of unequal classes lose more of the objective than is allowed",
        "inference/codebook.py",
        "limit, alike = (1.0 + NEAR_EQUAL) * best_objective, np.full(K, 1.0 / K)",
        "limit, alike = np.inf, np.full(K, 1.0 / K)",
        CODEBOOK,
    ),
    Mutant(
        "the rotation is transposed",
        "linalg/rotation.py",
        "        R = U @ Wt\n",
        "        R = (U @ Wt).T\n",
        (*INFERENCE, *ITQ),
    ),
    Mutant(
        "the quantization error counts the fit once",
        "linalg/rotation.py",
        "        errors.append(constant - 2.0 * size)",
        "        errors.append(constant - size)",
        ITQ,
    ),
    Mutant(
        "given bits become the opposite signs",
        "inference/starts.py",
        "return 2.0 * codes.astype(np.float64) - 1.0",
        "return 1.0 - 2.0 * codes.astype(np.float64)",
        INFERENCE,
    ),
    Mutant(
        "the start takes weights of the target for their roots",
        "inference/starts.py",
        "rows.with_scaled_columns(np.sqrt(weights)).P",
        "rows.with_scaled_columns(weights).P",
        INFERENCE,
    ),
    Mutant(
        "the worst of the tried rotations is taken",
        "inference/starts.py",
        "return min(trials, key=lambda codes: objective(target, codes))",
        "return max(trials, key=lambda codes: objective(target, codes))",
        INFERENCE,
    ),
    Mutant(
        "principal axes are those of least variance",
        "linalg/principal_axes.py",
        "squares[::-1][:count], vectors[:, ::-1][:, :count]",
        "squares[::-1][:count], vectors[:, :count]",
        INFERENCE,
    ),
    Mutant(
        "of many rows, a bit is judged together with itself",
        "inference/many_rows.py",
        "        weights[bit] = 0.0\n",
        "",
        MANY_ROWS,
    ),
    Mutant(
        "of many rows, the next bits see old products of a changed bit",
        "inference/many_rows.py",
        "        self._among[:, bit] = self._among[bit]\n",
        "",
        MANY_ROWS,
    ),
    Mutant(
        "of many rows, a flip is judged without the diagonal",
        "inference/row_flips.py",
        "return x * pull - diagonal > 1e-12 * (abs(pull) + abs(diagonal))",
        "return x * pull > 1e-12 * (abs(pull) + abs(diagonal))",
        MANY_ROWS,
    ),
    Mutant(
        "of many rows, flips use weights of the wrong columns",
        "inference/row_flips.py",
        "from_f[j] += weights[n_bits + j] * change",
        "from_f[j] += weights[j] * change",
        MANY_ROWS,
    ),
]
