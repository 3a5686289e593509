"""
Classes without labels
======================

Labels teach codes about the classes that they name, and about no others. Here two of ten digits have no labels.
`LabelsAndNeighbors` also learns from rows without labels, through the graph of their neighbors.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from hashlearn import TwoStepHasher, metrics
from hashlearn.hashers import ITQ
from hashlearn.targets import UNLABELED, LabelsAndNeighbors

X, y = load_digits(return_X_y=True)
database, queries, known, asked = X[:500], X[500:], y[:500], y[500:]

# %%
# Three splits: 0 and 1 have no labels, then 4 and 5, then 8 and 9. Codes have 16 bits, and all seeds are 0. Every query
# searches the whole database. Queries of the two digits without labels are scored apart from the others.


def scores(hasher, hidden):
    """Mean average precision of classes with labels, and of the two without."""
    values = metrics.average_precision(hasher.encode(queries), hasher.encode(database), asked, known)
    return values[~np.isin(asked, hidden)].mean(), values[np.isin(asked, hidden)].mean()


found = {"labels only": [], "no labels (ITQ)": [], "labels and neighbors": []}
for hidden in ([0, 1], [4, 5], [8, 9]):
    without = np.isin(known, hidden)
    hasher = TwoStepHasher(n_bits=16, random_state=0).fit(database[~without], known[~without])
    found["labels only"].append(scores(hasher, hidden))
    hasher = ITQ(n_bits=16, random_state=0).fit(database)
    found["no labels (ITQ)"].append(scores(hasher, hidden))
    hasher = TwoStepHasher(n_bits=16, target=LabelsAndNeighbors(), random_state=0)
    hasher.fit(database, np.where(without, UNLABELED, known))
    found["labels and neighbors"].append(scores(hasher, hidden))

plt.style.use(["tableau-colorblind10", {"axes.spines.top": False, "axes.spines.right": False}])
figure, axes = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
for (name, pairs), color in zip(found.items(), ["C1", "C3", "C0"], strict=True):
    axes.plot([0, 1], np.transpose(pairs), color=color, alpha=0.25, linewidth=1)
    axes.plot([0, 1], np.mean(pairs, axis=0), color=color, marker="o", linewidth=3)
    axes.annotate(name, (1, np.mean(pairs, axis=0)[1]), (12, 0), textcoords="offset points", color=color, va="center")
axes.set(xticks=[0, 1], xticklabels=["classes with labels", "classes without"], xlim=(-0.15, 1.1), ylim=(0, 1))
axes.set(ylabel="mean average precision\n(thin: three splits, thick: their mean)", xlabel="what the query is")
lost, kept = (np.mean(found[name], axis=0)[1] for name in ("labels only", "labels and neighbors"))
axes.set_title(f"New classes: labels only reach {lost:.0%}, labels and neighbors {kept:.0%}", loc="left")
plt.show()
