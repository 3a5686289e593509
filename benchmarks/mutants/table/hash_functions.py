"""Hash functions: which bits are fitted, kernels, ridge regression, the choice of parameters, evaluation in panels."""

from __future__ import annotations

from benchmarks.mutants.mutant import Mutant

CHOICES = ("tests/hash_functions/test_choices.py",)
EVERY = ("tests/hash_functions/test_every_method.py",)
LEFT_OUT = ("tests/hash_functions/test_leave_one_out.py",)
SHARPENED = ("tests/hash_functions/test_sharpened.py",)
SKLEARN = ("tests/hash_functions/test_against_sklearn.py",)

MUTANTS = [
    Mutant(
        "a complementary bit is predicted as its opposite",
        "hash_functions/distinct_bits.py",
        "signs[b] = codes[0, b] * first_sign",
        "signs[b] = 1",
        EVERY,
    ),
    Mutant(
        "a bit that is always 0 is predicted as 1",
        "hash_functions/distinct_bits.py",
        "full[:, constant] = self.signs[constant]",
        "full[:, constant] = 1",
        EVERY,
    ),
    Mutant(
        "codes of which all are distinct are fitted as codewords",
        "hash_functions/expansion.py",
        "most = min(MOST_WORDS, len(codes) // 2)",
        "most = min(MOST_WORDS, len(codes))",
        SHARPENED,
    ),
    Mutant(
        "rows of a batch that ends in a short panel have other margins",
        "hash_functions/fitted.py",
        "panel_rows if self._fill_up else last - first",
        "last - first",
        EVERY,
    ),
    Mutant(
        "rows of later panels overwrite those of the first",
        "hash_functions/fitted.py",
        "panel = X[first:last]",
        "panel = X[start : start + last - first]",
        (*EVERY, "tests/hashers/test_refused_rows.py"),
    ),
    Mutant(
        "the Gram matrix of over 512 rows uses the norms of the first rows",
        "hash_functions/kernels.py",
        "K -= self.half_norms[first_point:]",
        "K -= self.half_norms[: K.shape[1]]",
        CHOICES,
    ),
    Mutant(
        "the kernel of features far from zero loses its digits",
        "hash_functions/kernels.py",
        "mean = None if self.sparse else np.asarray(points.sum(axis=0, dtype=np.float64)) / max(len(points), 1)",
        "mean = None if self.sparse else np.zeros(points.shape[1])",
        CHOICES,
    ),
    Mutant(
        "strengths after the first are judged by a matrix that was overwritten",
        "hash_functions/kernel_ridge.py",
        "return K_held @ _solve(K.copy(), codes, strength)",
        "return K_held @ _solve(K, codes, strength)",
        CHOICES,
    ),
    Mutant(
        "kernel ridge regression is weighted by twice alpha",
        "hash_functions/kernel_ridge.py",
        "K[np.diag_indices_from(K)] += alpha",
        "K[np.diag_indices_from(K)] += 2.0 * alpha",
        SKLEARN,
    ),
    Mutant(
        "leave-one-out errors are divided by the leverage's complement twice removed",
        "hash_functions/kernel_ridge.py",
        "return (inverse @ y) / inverse.diagonal()[:, None]",
        "return (inverse @ y) / (1.0 - inverse.diagonal())[:, None]",
        LEFT_OUT,
    ),
    Mutant(
        "the alpha of the largest error is taken",
        "hash_functions/kernel_ridge.py",
        "return min(ALPHAS, key=",
        "return max(ALPHAS, key=",
        LEFT_OUT,
    ),
    Mutant(
        "rows past the first block are their own nearest neighbors",
        "hash_functions/kernels.py",
        "distances[np.flatnonzero(inside), sample[inside] - first] = np.inf",
        "distances[np.flatnonzero(inside), np.minimum(sample[inside], last - first - 1)] = np.inf",
        CHOICES,
    ),
    Mutant(
        "gamma is chosen by distances that are not squared",
        "hash_functions/kernels.py",
        "    distances[distances <= ROUNDING * norms] = 0.0\n    return distances",
        "    distances[distances <= ROUNDING * norms] = 0.0\n    return np.sqrt(distances)",
        CHOICES,
    ),
    Mutant(
        "among equal accuracies the parameters farthest from the defaults win",
        "hash_functions/kernel_method.py",
        "return max(tried, key",
        "return max(tried[::-1], key",
        CHOICES,
    ),
    Mutant(
        "parameters are judged by rows that they were fitted to",
        "hash_functions/kernel_method.py",
        "held, train = np.split(rows, [len(rows) // 3])",
        "held, train = rows[: len(rows) // 3], rows",
        CHOICES,
    ),
    Mutant(
        "linear ridge regression forgets the mean of the features",
        "hash_functions/linear.py",
        "intercepts = bit_means - mean @ weights",
        "intercepts = bit_means",
        EVERY,
    ),
    Mutant(
        "weights of linear methods stay in units of the scaled features",
        "hash_functions/linear.py",
        ".reshape(len(fits), X.shape[1]).T / scale",
        ".reshape(len(fits), X.shape[1]).T",
        SKLEARN,
    ),
    Mutant(
        "the landmark SVM punishes margins beyond 1",
        "hash_functions/kernel_method.py",
        "descent = y * np.maximum(1.0 - y * f, 0.0)",
        "descent = y * (1.0 - y * f)",
        CHOICES,
    ),
    Mutant(
        "codes of which some are no signs are fitted",
        "hash_functions/base.py",
        "    if not (np.abs(codes) == 1).all():",
        "    if not (np.abs(codes) == 1).any():",
        EVERY,
    ),
    Mutant(
        "what was prepared for dense rows is applied to sparse ones",
        "hash_functions/fitted.py",
        "key = (X.dtype.str, sp.issparse(X))",
        "key = (X.dtype.str, False)",
        EVERY,
    ),
]
