"""
Near-duplicates
===============

`near_duplicates` finds pairs of rows with a high cosine. Codes find candidates, floats verify each of them, and random
rows test how many pairs are missed at most.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from hashlearn import near_duplicates

X, y = load_digits(return_X_y=True)
found = near_duplicates(X, similarity=0.97, missed=0.1, confidence=0.95, n_checked=400, random_state=0)
print(found)

# %%
# With 1,797 rows all pairs can be compared. So we can count what was missed, as the promise counts it: the share of a
# row's near-duplicates, averaged over rows that have one.

unit = X / np.linalg.norm(X, axis=1, keepdims=True)
near = unit @ unit.T >= 0.97
there = near.sum(axis=1) - 1
got = np.bincount(found.pairs.ravel(), minlength=len(X))
missed = 1 - (got[there > 0] / there[there > 0]).mean()

# %%
# Random pairs (seed 0), side by side, with their cosines.

shown = np.random.default_rng(0).choice(len(found.pairs), 24, replace=False)
shown = shown[np.argsort(-found.similarities[shown])]
figure, grid = plt.subplots(4, 6, figsize=(9, 5.4), layout="constrained")
for axes, pair in zip(grid.flat, shown, strict=True):
    left, right = X[found.pairs[pair]].reshape(2, 8, 8)
    axes.imshow(np.hstack([left, np.full((8, 1), np.nan), right]), cmap="gray_r")
    axes.set_title(f"{found.similarities[pair]:.3f}", fontsize=9)
    axes.set_axis_off()
differ = (y[found.pairs[:, 0]] != y[found.pairs[:, 1]]).sum()
figure.suptitle(
    f"{len(found.pairs):,} pairs of digits have a cosine of 0.97 or more; {differ} of them are two different digits.\n"
    f"Codes left {found.n_candidates:,} of {len(X) * (len(X) - 1) // 2:,} pairs to verify and missed {missed:.1%}; "
    f"the promise allows {found.promised_missed:.0%}."
)
plt.show()
