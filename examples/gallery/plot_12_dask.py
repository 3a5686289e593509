"""
The same codes on any number of workers
=======================================

`distributed.fit` learns over blocks of rows, for data that does not fit into memory. The codes depend on the seed and
on where the blocks are cut. They do not depend on how many workers share them. Needs ``pip install '.[dask]'``.
"""

import matplotlib.pyplot as plt
import numpy as np
from dask.distributed import Client

from hashlearn import distributed
from hashlearn.bits import unpack_bits

# %%
# 4,800 rows of a random walk (seed 0), in six blocks of 800. The workers are threads of this process, so the script
# needs no cluster. ``address=`` takes the address of a real one.

X = np.cumsum(np.random.default_rng(0).standard_normal((4800, 32), np.float32), axis=0)
settings = {"n_bits": 16, "chunk_rows": 800, "solver": "passes", "hash_function": "linear_ridge", "random_state": 0}

codes = {"no Dask": distributed.fit(X, n_workers=0, **settings).training_codes}
for n_workers in (1, 3):
    workers = {"n_workers": n_workers, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with Client(**workers) as client:
        name = f"{n_workers} worker{'s' * (n_workers > 1)}"
        codes[name] = distributed.fit(X, client=client, **settings).training_codes

# %%
# Rows that follow each other are near, and so are their codes. White lines show where blocks begin.

bits = {name: unpack_bits(packed, 16) for name, packed in codes.items()}
differing = sum(int((b != bits["no Dask"]).sum()) for b in bits.values())
figure, grid = plt.subplots(3, 1, figsize=(8, 6), sharex=True, layout="constrained")
for axes, (name, b) in zip(grid, bits.items(), strict=True):
    axes.imshow(b.T, cmap="Blues", vmin=-0.15, vmax=1.25, aspect="auto", interpolation="nearest")
    axes.vlines(np.arange(800, 4800, 800), -0.5, 15.5, color="white", linewidth=3)
    axes.set_title(name, loc="left", fontsize=10)
    axes.set(ylabel="bit", yticks=[0, 15], yticklabels=[1, 16])
    axes.spines[:].set_visible(False)
grid[-1].set_xlabel("row")
figure.suptitle(f"{differing} of {2 * b.size:,} bits change with the number of workers")
plt.show()
