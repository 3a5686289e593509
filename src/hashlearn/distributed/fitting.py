"""`fit`: a `TwoStepHasher` from rows that need not fit into memory, on Dask or block by block in this process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import numpy as np

from hashlearn import bqp
from hashlearn.core.checks import generator, whole_number
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.core.threads import one_blas_thread
from hashlearn.distributed.class_codes import class_codes, class_numbers, feature_columns
from hashlearn.distributed.distance_codes import distance_codes
from hashlearn.distributed.executors import Executor, OnDask, connected
from hashlearn.distributed.hash_functions import block_hash_function, fit_over_blocks
from hashlearn.distributed.moments import merged_moments, moments
from hashlearn.distributed.row_blocks import as_table
from hashlearn.hashers import TwoStepHasher
from hashlearn.hashers.base import MAX_BITS
from hashlearn.inference import Passes
from hashlearn.inference.descent import require_seconds
from hashlearn.targets import Distance, Labels


def fit(
    X: Any,
    y: Any = None,
    *,
    n_bits: int = 32,
    target: str = "auto",
    solver: str | bqp.Solver | Passes = "auto",
    hash_function: Any = "auto",
    init: str = "auto",
    n_sweeps: int = 3,
    random_state: Any = None,
    time_limit: float | None = None,
    progress: ProgressCallback | None = None,
    n_components: int | None = None,
    certify: bool = False,
    chunk_rows: int | Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
    client: Any = None,
    address: str | None = None,
    n_workers: int | None = None,
    memory_limit: Any = "auto",
) -> TwoStepHasher:
    """Learn codes and hash functions over blocks of rows. Parameters of `TwoStepHasher` mean here what they mean there.

    Parameters
    ----------
    X : an array; a Dask array or dataframe; Parquet or npy files: a path, folder, pattern or list of paths
    y : classes (n,), an array, Dask array or series; for Parquet data also the name of its label column
    n_bits : code length
    target : "labels", "distance", or "auto": labels if y is given, else distance
    solver : "passes" flips single signs in passes over all rows; any other name or solver object solves each bit on a
        sample of 10,000 rows, extends the solution to all rows and flips there. "auto" is "sdr" to 1e-3 with 20 draws.
        With labels the classes' codewords are found in memory, as `TwoStepHasher` does
    hash_function : "auto" (as in `TwoStepHasher`, always on landmarks), "linear_ridge", "kernel_ridge" (on landmarks),
        a `LinearRidge` or a `KernelRidge`
    init : "auto" and "itq" (the best rotation on a sample), or "pca"
    n_sweeps : passes over all bits, max_iter of Algorithm 1
    random_state : seed or Generator
    time_limit : seconds for inference; bits that are not reached by then stay as they began
    progress : called with a `hashlearn.core.progress.Progress`
    n_components : columns that the distance target is reduced to; None: twice n_bits, or all features if fewer
    certify : for a distance target, one more pass a bit that proves how far each can be from the best: bounds and gaps
        in the report's last sweep
    chunk_rows : rows of a block (None: 64 MB of float32), or the length of each; Dask collections keep their chunks
    columns : the features, by name, of Parquet files or a dataframe
    client, address : Dask client, or address of a scheduler, to work on
    n_workers, memory_limit : of a cluster started here, when neither is given. ``n_workers=0`` is no cluster: this
        process works through the blocks on its own threads

    Returns
    -------
    TwoStepHasher
        fitted; `save`, `encode` and the rest work as usual. It has no ``codes_``: the codes of the training rows are
        packed in the attribute ``training_codes``, which a model file leaves out.

    The same seed and blocks give the same codes in this process, on any number of workers, and when workers are lost.

    Examples
    --------
    >>> import numpy as np
    >>> from hashlearn import distributed
    >>> X = np.random.default_rng(0).standard_normal((600, 8)).astype(np.float32)
    >>> hasher = distributed.fit(X, n_bits=8, solver="passes", chunk_rows=200, n_workers=0, random_state=0)
    >>> hasher.encode(X).shape, hasher.training_codes.shape
    ((600, 1), (600, 1))
    """
    whole_number(n_bits, "n_bits", least=1, most=MAX_BITS)
    whole_number(n_sweeps, "n_sweeps", least=1)
    require_seconds(time_limit)
    target_name = ("distance" if y is None else "labels") if target == "auto" else target
    if target_name not in ("distance", "labels"):
        raise ValueError(f"target must be 'auto', 'distance' or 'labels', got {target!r}")
    if target_name == "labels" and y is None:
        raise ValueError("target 'labels' needs y, the labels")
    if isinstance(y, str) and columns is None:
        columns = feature_columns(X, y)
    table = as_table(X, chunk_rows, columns)
    spec = block_hash_function(hash_function, table.n, target_name == "labels")
    if table.n < n_bits:
        raise ValueError(f"n_bits={n_bits} needs at least as many rows to learn from, got {table.n}")
    components = 2 * n_bits if n_components is None else whole_number(n_components, "n_components", least=1)
    rng = generator(random_state)

    hasher = TwoStepHasher(
        n_bits,
        target=target_name,
        solver=solver,
        hash_function=spec,
        init=init,
        n_sweeps=n_sweeps,
        arrange=False,
        random_state=random_state,
        time_limit=time_limit,
    )
    with (
        connected(client, address, n_workers, memory_limit) as opened,
        closing(Executor(table) if opened is None else OnDask(table, opened)) as executor,
        one_blas_thread(),
    ):
        tell(progress, "moments", 0, 1)
        known = executor.reduce(moments, merged_moments, executor.rows)
        tell(progress, "moments", 1, 1)
        common: Any = {"solver": solver, "n_sweeps": n_sweeps, "rng": rng}
        common |= {"time_limit": time_limit, "progress": progress}
        if target_name == "labels":
            classes = class_numbers(X, y, table.n)
            codes, report = class_codes(executor, classes, n_bits, **common)
        else:
            common |= {"n_components": min(components, table.n_features), "init": init, "certify": certify}
            codes, report = distance_codes(executor, known, n_bits, **common)
        hasher.hash_functions_ = fit_over_blocks(spec, executor, known, codes, n_bits, rng)
        tell(progress, "hash functions", 1, 1)
    hasher.inference_report_ = report
    hasher.hash_function_ = spec
    hasher.target_ = Labels() if target_name == "labels" else Distance()
    hasher.n_features_in_, hasher.n_samples_fit_ = table.n_features, table.n
    if table.names is not None:
        hasher.feature_names_in_ = np.array(table.names, dtype=object)
    hasher.training_codes = np.concatenate(codes)
    return hasher
