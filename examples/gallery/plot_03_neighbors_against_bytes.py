"""
Neighbors kept against bytes
============================

Four methods, measured alike: queries stay floats, rows are coded. With 1,200 rows, 256 centroids of a product quantizer
nearly hold the rows themselves. So FAISS is shown with 16 centroids as well. Compare methods on your own data, with
many more rows, before you choose. Our seeds are 0. Needs ``pip install 'hashlearn[faiss]'``.
"""

import faiss
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from hashlearn import RankingHasher, metrics
from hashlearn.hashers import ITQ, SignCodes
from hashlearn.search import asymmetric_search

X, _ = load_digits(return_X_y=True)
X = np.float32(X / np.linalg.norm(X, axis=1, keepdims=True))
database, queries = X[:1200], X[1200:]
true = metrics.float_neighbors(queries, database, k=10)


def binary(hasher):
    """Rows found by the margins of a query against the codes of the database."""
    margins = hasher.fit(database).decision_function(queries)
    return asymmetric_search(margins, hasher.encode(database), k=10).indices


def quantized(size, bits):
    """Rows found by FAISS's product quantizer, ``bits`` bits for each part of a row."""
    index = faiss.IndexPQ(X.shape[1], 8 * size // bits, bits)
    index.pq.cp.min_points_per_centroid = 1
    index.train(database)
    index.add(database)
    return index.search(queries, 10)[1]


methods = {
    "RankingHasher": lambda size: binary(RankingHasher(8 * size, hidden=128, n_steps=200, random_state=0)),
    "ITQ": lambda size: binary(ITQ(8 * size, random_state=0)),
    "PCA signs": lambda size: binary(SignCodes(8 * size, features="pca")),
    "FAISS PQ (16 centroids)": lambda size: quantized(size, 4),
    "FAISS PQ (256 centroids)": lambda size: quantized(size, 8),
}
sizes = [1, 2, 4]
found = {name: [metrics.recall_of_neighbors(search(n), true) for n in sizes] for name, search in methods.items()}

# %%
# Recall: the share of the 10 nearest rows by cosine of the floats that are among the 10 best of a method.

plt.style.use(["tableau-colorblind10", {"axes.spines.top": False, "axes.spines.right": False}])
figure, axes = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
for (name, recalls), color in zip(found.items(), ["C0", "C3", "C2", "C1", "C5"], strict=True):
    axes.plot(sizes, recalls, "o--" if "FAISS" in name else "o-", color=color, linewidth=2)
    side = "bottom" if "FAISS" in name else "top"
    axes.annotate(name, (sizes[-1], recalls[-1]), (9, 0), textcoords="offset points", color=color, va=side)
axes.set_xscale("log", base=2)
axes.set(xticks=sizes, xticklabels=sizes, xlabel="bytes a row", ylabel="share of the 10 nearest rows found", ylim=0)
recall, best = max((recalls[-1], name) for name, recalls in found.items())
axes.set_title(f"With {sizes[-1]} bytes {best} finds most, {recall:.0%}", loc="left")
plt.show()
