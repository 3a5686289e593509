"""Hashers: signs and bits, refusals, scaling, rotations, thresholds, arrangement of codewords."""

from __future__ import annotations

from benchmarks.mutants.mutant import Mutant

ARRANGEMENT = ("tests/hashers/test_arrangement.py",)
BAD_INPUT = ("tests/hashers/test_two_step.py::test_bad_input_is_told_what_is_wrong",)
ITQ = ("tests/hashers/test_itq.py",)
REFUSED = ("tests/hashers/test_refused_rows.py",)
SCALING = ("tests/hashers/test_scaling.py",)
SIGN_CODES = ("tests/hashers/test_sign_codes.py",)

MUTANTS = [
    Mutant(
        "a margin of 0 is bit 0 in encode",
        "hashers/base.py",
        "return np.packbits(margins >= 0.0, axis=1)",
        "return np.packbits(margins > 0.0, axis=1)",
        (*REFUSED, *SIGN_CODES),
    ),
    Mutant(
        "a margin of 0 is bit 0 in transform",
        "hashers/base.py",
        "return (margins >= 0.0).astype(np.uint8)",
        "return (margins > 0.0).astype(np.uint8)",
        (*REFUSED, *SIGN_CODES),
    ),
    Mutant(
        "entries whose squares overflow are taken",
        "hashers/base.py",
        "        if largest > LARGEST_FEATURE:",
        "        if False:",
        REFUSED,
    ),
    Mutant(
        "large negative entries are not noticed",
        "hash_functions/stored.py",
        "return float(np.maximum(part.max(), -part.min()))",
        "return float(part.max())",
        REFUSED,
    ),
    Mutant(
        "without labels a higher score means worse codes",
        "hashers/base.py",
        "return -objective(Distance()",
        "return objective(Distance()",
        ("tests/hashers/test_two_step.py::test_score_prefers_better_codes",),
    ),
    Mutant(
        "as many samples as bits are refused",
        "hashers/base.py",
        "        if n_samples < self.n_bits:",
        "        if n_samples <= self.n_bits:",
        ITQ,
    ),
    Mutant(
        "features are scaled for fit and not for margins",
        "hashers/two_step.py",
        "return self.hash_functions_.decision_function(scaled(X, self.scaling_))",
        "return self.hash_functions_.decision_function(X)",
        SCALING,
    ),
    Mutant(
        "features are scaled for fit and not for codes",
        "hashers/two_step.py",
        'return super()._row_functions() if self.scaling_ == "none" else None',
        "return super()._row_functions()",
        SCALING,
    ),
    Mutant(
        "labels of one class only are taken",
        "core/labels.py",
        "if n_classes < 2:",
        "if n_classes < 1:",
        BAD_INPUT,
    ),
    Mutant(
        "features with zeros get no roots",
        "hashers/two_step.py",
        "entries.min() >= 0.0",
        "entries.min() > 0.0",
        SCALING,
    ),
    Mutant(
        "roots of negative entries are positive",
        "hashers/two_step.py",
        "return np.copysign(np.sqrt(np.abs(X)), X)",
        "return np.sqrt(np.abs(X))",
        SCALING,
    ),
    Mutant(
        "ITQ subtracts a mean in other units than the features",
        "hashers/baselines/itq.py",
        "linear_functions(weights, axes.centre * axes.scale,",
        "linear_functions(weights, axes.centre,",
        ITQ,
    ),
    Mutant(
        "medians of principal components are in other units than the features",
        "hashers/baselines/lsh.py",
        "axes.scores(X) * axes.scale",
        "axes.scores(X)",
        SIGN_CODES,
    ),
    Mutant(
        "thresholds are added instead of subtracted",
        "hashers/baselines/lsh.py",
        "functions.intercepts -= thresholds",
        "functions.intercepts += thresholds",
        SIGN_CODES,
    ),
    Mutant(
        "hyperplanes are centered when they should not be, and the other way round",
        "hashers/baselines/lsh.py",
        "column_means(X) if center else",
        "column_means(X) if not center else",
        ("tests/hashers/test_lsh.py",),
    ),
    Mutant(
        "codewords are given to classes whatever that costs in objective",
        "hashers/arrangement.py",
        "if value < best_value and _total(sizes, wanted, order) <= allowed:",
        "if value < best_value:",
        ARRANGEMENT,
    ),
    Mutant(
        "confusions of two classes count in one direction only",
        "hashers/arrangement.py",
        "    mixed = mixed + mixed.T\n",
        "",
        ARRANGEMENT,
    ),
    Mutant(
        "SDH: a bit is solved against itself",
        "hashers/baselines/sdh.py",
        "wanted = Q[:, b] - B @ G[:, b] + B[:, b] * G[b, b]",
        "wanted = Q[:, b] - B @ G[:, b]",
        ("tests/hashers/test_sdh.py",),
    ),
    Mutant(
        "ITQ-CCA: training codes are those before the rotation",
        "hashers/baselines/itq.py",
        "self.codes_ = np.where(V @ R >= 0.0, 1, -1)",
        "self.codes_ = np.where(V >= 0.0, 1, -1)",
        ("tests/hashers/test_itq_cca.py",),
    ),
]
