"""The objective of codes, the problem of one bit, descent over bits, codebooks, rotations and starts."""

from __future__ import annotations

from benchmarks.mutants.mutant import Mutant

INFERENCE = ("tests/inference/test_inference.py",)
CODEBOOK = ("tests/inference/test_codebook.py",)
PASSES = ("tests/inference/test_passes.py",)
PRESETS = "tests/inference/test_presets.py"
BLOCKS = "tests/distributed/test_blocks.py"
ITQ = ("tests/hashers/test_itq.py",)

MUTANTS = [
    Mutant(
        "the objective counts the cross term once",
        "inference/objective.py",
        "- 2.0 * cross / n_bits",
        "- 1.0 * cross / n_bits",
        INFERENCE,
    ),
    Mutant(
        "a mixed target's square counts the cross term once",
        "inference/objective.py",
        "+ 2.0 * cross + frobenius_square(Y.low_rank)",
        "+ cross + frobenius_square(Y.low_rank)",
        INFERENCE,
    ),
    Mutant(
        "the target is not multiplied by the number of bits",
        "inference/whole_bits.py",
        "np.r_[np.ones(self.n_bits - 1), -self.n_bits * weights]",
        "np.r_[np.ones(self.n_bits - 1), -weights]",
        INFERENCE,
    ),
    Mutant(
        "the problem of a bit holds old signs of the bit before",
        "inference/whole_bits.py",
        "            self._buffer[:, slot] = self.codes[:, self._held_out]\n",
        "",
        INFERENCE,
    ),
    Mutant(
        "old signs of a bit stay in a dense problem",
        "inference/whole_bits.py",
        "self._dense += np.multiply.outer(x, x) - np.multiply.outer(z, z)",
        "self._dense += np.multiply.outer(x, x)",
        INFERENCE,
    ),
    Mutant(
        "a bit that only changed its sign everywhere counts as changed",
        "inference/whole_bits.py",
        "            if A.tall.dot(x, old) < 0.0:",
        "            if False:",
        INFERENCE,
    ),
    Mutant(
        "a bit is replaced by one of equal value",
        "inference/whole_bits.py",
        "if not value < before - 1e-12 * abs(before):",
        "if not value <= before + 1e-12 * abs(before):",
        INFERENCE,
    ),
    Mutant(
        "inference ends when the last bit did not change, whatever the others did",
        "inference/descent.py",
        "report.bits[-bits.n_bits :]",
        "report.bits[-1:]",
        INFERENCE,
    ),
    Mutant(
        "the time limit does not reach the solver of a bit",
        "inference/whole_bits.py",
        "            time_limit=AtMost(seconds),\n",
        "",
        INFERENCE,
    ),
    Mutant(
        "passes in memory do not hear the time limit",
        "inference/array_rows.py",
        "            between()\n",
        "",
        PASSES,
    ),
    Mutant(
        "a name of a method is solved to the tolerance of a preset",
        "inference/presets.py",
        'return configured(solver, argument="solver")',
        'return PRESETS["quick_sdr"](0) if solver == "sdr" else configured(solver, argument="solver")',
        (f"{PRESETS}::test_a_name_of_a_method_is_its_default_object",),
    ),
    Mutant(
        "the report names the method that was asked for, not the one that ran",
        "inference/descent.py",
        "described(picked.solver, MAX_PASSES)",
        "str(solver)",
        (f"{PRESETS}::test_what_ran_for_auto",),
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
        "return min(found, key=lambda trial: trial[0])[1]",
        "return max(found, key=lambda trial: trial[0])[1]",
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
        "by passes, a bit is judged together with itself",
        "inference/passes.py",
        "        weights[bit] = 0.0\n",
        "",
        PASSES,
    ),
    Mutant(
        "by passes, the next bits see old products of a changed bit",
        "inference/passes.py",
        "        self._among[:, bit] = self._among[bit]\n",
        "",
        PASSES,
    ),
    Mutant(
        "by passes, changes of parts that raise the value together are all taken",
        "inference/passes.py",
        "if (trial := float(weights @ (together * together))) < value - enough:",
        "if (trial := float(weights @ (together * together))) < np.inf:",
        PASSES,
    ),
    Mutant(
        "a solution on a sample counts as one of all rows",
        "inference/passes.py",
        "return (P.T @ x) * (self.n / len(P))",
        "return P.T @ x",
        PASSES,
    ),
    Mutant(
        "a flip is judged without the diagonal",
        "bqp/rows/numpy_flips.py",
        "return x * gradient - diagonal > 1e-12 * (abs(gradient) + abs(diagonal))",
        "return x * gradient > 1e-12 * (abs(gradient) + abs(diagonal))",
        PASSES,
    ),
    Mutant(
        "flips use weights of the wrong columns",
        "bqp/rows/numpy_flips.py",
        "of_factor[j] += repeats * step * weights[n_codes + j] * factor[i, j]",
        "of_factor[j] += repeats * step * weights[j] * factor[i, j]",
        PASSES,
    ),
    Mutant(
        "a block takes up signs that were not chosen",
        "distributed/block_cache.py",
        "            if outcome is not Outcome.KEEP:\n",
        "            if True:\n",
        (f"{BLOCKS}::test_cached_codes_follow_the_outcome_once",),
    ),
    Mutant(
        "a block's change of the products leaves out the codes",
        "distributed/distance_codes.py",
        "        products[0],\n        products[1] if",
        "        0.0 * products[0],\n        products[1] if",
        (f"{BLOCKS}::test_one_block_descends_to_a_flip_optimum",),
    ),
    Mutant(
        "what blocks cached stays after Ctrl-C",
        "distributed/distance_codes.py",
        "    finally:\n        executor.close()\n",
        "    finally:\n        pass\n",
        (f"{BLOCKS}::test_ctrl_c_is_passed_on_and_nothing_stays_cached",),
    ),
]
