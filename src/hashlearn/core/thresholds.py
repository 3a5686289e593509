"""Sizes at which one algorithm takes over from another. Each comment names the measurement or limit behind it."""

from __future__ import annotations

# ---- inference ----

# In memory, solver="auto" relaxes codes of up to this many signs (n · n_bits), which takes seconds. With few signs a
# local search ends up to 4 % higher; beyond, it ends as low in a twentieth of the time (docs/quality.md).
RELAXED_SIGNS = 16_384

# On a device, solver="auto" relaxes samples of rows above this n. The objective is that of the tight solver, and gaps
# are about 1 % wider (docs/gpu.md).
DEVICE_SAMPLE_ROWS = 10_000

# In memory, solver="sampled_sdr" relaxes samples of this many rows, from twice as many rows on. At 10,000 × 384 the
# objective is that of "quick_sdr" to 5e-5, in a fifth of the time (docs/quality.md).
RELAXED_ROWS = 4_000

# With more rows in memory, init="auto" fits the n_bits × n_bits rotation on a random sample of this many. The limit was
# set by judgment; no measurement is recorded.
ROTATION_ROWS = 20_000

# ---- problems of one bit ----

# Eigenvectors: a dense problem goes to LAPACK, O(n³), up to this n: 0.08 s on one core.
LAPACK_UP_TO = 1000
# A sparse problem is written out for LAPACK up to this n; larger ones go to Lanczos, O(nnz) a step.
DENSIFY_UP_TO = 64

# Certificates: up to this n any A is written out and factored (n² numbers, n³/3 operations). At 8,000 rows that is
# 0.5 GB. Beyond, a bound comes from Chebyshev polynomials and holds with probability 1 − 1e-9.
DENSE_CERTIFICATE_LIMIT = 8000
# Relaxation of a sparse A: from this n on rows are swept by colors, on all cores, unless a greedy coloring needs more
# colors than this. At 20,000 rows a sweep takes 2 ms, too short for threads.
COLORED_ROWS, MOST_COLORS = 50_000, 64
# With more numbers in V they are float32 until the gap is 2e-5: half of the memory and of the time.
SINGLE_PRECISION_NUMBERS = 4_000_000
# From this rank on the Cholesky factorization of a low-rank certificate uses every core. It only decides yes or no, so
# its rounding does not matter.
THREADED_CHOLESKY_RANK = 400
# Up to this rank the preconditioner of Newton's method costs less than the Krylov steps that it saves, and a failed
# certificate costs less than more Newton steps before it.
CHEAP_RANK = 200
# Beyond this size the smallest eigenpair of a scaling comes from Lanczos steps.
LANCZOS_SCALING = 300

# Semidefinite relaxation: up to this n an interior point solves the dense A: 1 ms for 30 rows, 8 ms for 150.
# For 21 to 77 classes it takes a seventh of the time of other methods, or less; at 150 rows all are level.
INTERIOR_POINT_ROWS = 150
# Eq. (13) is a sum over pairs. It is reported without being asked for up to this many terms: 0.025 s.
EXPECTATION_PAIRS = 1_000_000

# Rows on a device: up to this n the problem is copied to the host, because launches take longer than the work.
HOST_ROWS = 1000
# Identical rows: P with ten times this many rows is hashed only if this many rows, evenly spaced, show a repeat.
LOOK_AT_FIRST = 10_000
# A wide P is hashed only if its last columns show repeats, because rows that differ there differ.
LOOK_AT_COLUMNS = 32

# Up to this n method="auto" goes on to branch and bound. Without a time limit it computes as many nodes as this work
# allows, at n variables a node: 40 nodes at n = 100, which take 0.2 to 0.35 s each. Of random problems with ±1 on half
# of the pairs, all of 60 and 80 variables were proven by 7 nodes at most, those of 100 by 1, 7 and 37 (seeds 0 to 2).
LARGEST_PROVEN, PROVING_WORK = 120, 4000

# Variables of few neighbors are eliminated before a search, unless that would take more than this share of the time
# limit. It takes up to this many seconds for each entry of a sparse A: 0.8 s for 300,000 on a busy core.
ELIMINATION_SECONDS, ELIMINATION_SHARE = 3e-6, 0.1

# Local search: up to this n a low-rank A is made dense (32 MiB at most) for tabu walks; beyond, it is swept.
LARGEST_DENSIFIED = 2048
# Up to this n all signs are enumerated: 0.007 s at 20 variables.
LARGEST_ENUMERATED = 20

# Max-cut, QUBO and Ising problems become a dense A if more than this share of its entries is not 0. At n = 1000 a dense
# product takes as long as a sparse one with a share of 0.22, and "sdr" takes 5 s as dense, 7.5 s as sparse at 0.4.
DENSE_SHARE = 0.25

# Branch and bound: beyond this n no tree is built, since one exact bound takes most of a second at 500 variables.
LARGEST_TREE = 500
# Up to this many entries, numbers that float64 would round are eliminated in fractions: about a tenth of a second.
EXACTLY_ELIMINATED_ENTRIES = 20_000

# From this many multiplications on, a product is spread over threads: below, it takes a millisecond or two.
THREADED_PRODUCT = 4_000_000

# ---- features ----

# Principal axes of more features come from a randomized SVD: a covariance of 2,048 features takes 32 MB.
# The limit was set by judgment; no measurement is recorded.
MAX_COVARIANCE = 2048
# Sparse rows are made dense, where a method needs that, if they take at most this many bytes in float64. Fits make two
# or three copies, so a machine with 8 GB holds them. The limit was set by judgment.
LARGEST_DENSE_FORM = 2 * 10**9
# With more rows the nearest neighbors are approximate, since exact search takes O(n²): 2.6 s of processor time at
# 10,000 × 384. The graph's eigenvectors come from subspace iteration: 16 s at 100,000 rows, Lanczos 290.
MOST_EXACT_NEIGHBORS = 20_000
# RankingHasher learns from at most this many rows, a random sample, and finds the neighbors of at most this many of
# them. Training then takes the same time for any n.
RANKED_ROWS, RANKED_ANCHORS = 100_000, 25_000
# A Gram matrix of this many rows takes 3.2 GB in float64. Beyond, Nyström landmarks are faster at nearly the same
# accuracy (docs/quality.md).
LARGEST_GRAM_ROWS = 20_000
# Without labels hash_function="auto" uses 1,000 landmarks past this n: a tenth of the time, nearly the same recall and
# mean average precision (docs/quality.md).
UNLABELED_GRAM_ROWS = 5_000
# With more rows hash_function="auto" is linear: landmarks would take minutes. The limit was set by judgment.
LARGEST_KERNEL_ROWS = 1_000_000
