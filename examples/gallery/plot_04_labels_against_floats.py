"""
Labels against floats
=====================

The nearest floats look alike. They are not always of the same class. Codes that are learned from labels rank by
class, so eight bytes can rank better than the 64 floats they were made from.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import average_precision_score

from hashlearn import TwoStepHasher, metrics

X, y = load_digits(return_X_y=True)
database, queries, known, asked = X[:1200], X[1200:], y[:1200], y[1200:]

# %%
# Codes of 64 bits are learned from the database and its labels, in one sweep over the bits to save time. The queries
# and their labels are new to them.

hasher = TwoStepHasher(n_bits=64, n_sweeps=1, random_state=0).fit(database, known)
by_codes = metrics.average_precision(hasher.encode(queries), hasher.encode(database), asked, known)

# %%
# The floats rank the same database by Euclidean distance.

distances = np.linalg.norm(queries[:, None] - database, axis=2)
by_floats = np.array([average_precision_score(known == a, -row) for a, row in zip(asked, distances, strict=True)])

# %%
# One line for each class, sorted by what the floats reach.

classes = sorted(range(10), key=lambda digit: by_floats[asked == digit].mean())
floats, codes = (np.array([ap[asked == digit].mean() for digit in classes]) for ap in (by_floats, by_codes))

plt.style.use(["tableau-colorblind10", {"axes.spines.top": False, "axes.spines.right": False}])
figure, axes = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
axes.hlines(range(10), floats, codes, color="C2", linewidth=2)
axes.scatter(floats, range(10), color="C3", s=60, zorder=3, clip_on=False)
axes.scatter(codes, range(10), color="C0", s=60, zorder=3, clip_on=False)
axes.annotate("64 floats", (floats[0], 0), (-9, 0), textcoords="offset points", color="C3", ha="right", va="center")
axes.annotate("8 bytes", (codes[0], 0), (9, 0), textcoords="offset points", color="C0", va="center")
axes.set(
    yticks=range(10), yticklabels=classes, ylabel="digit", xlabel="mean average precision of new digits", xlim=(0, 1)
)
wins = (codes > floats).sum()
finding = f"8 bytes rank better than 64 floats for {wins} of 10 digits"
axes.set_title(f"{finding}: {codes.mean():.0%} against {floats.mean():.0%}", loc="left")
plt.show()
