"""
Neighbors kept against bytes
============================

Four methods, measured alike: queries stay floats, rows are coded. With 1,200 rows, 256 centroids of a product quantizer
nearly hold the rows themselves. So FAISS is shown with 16 centroids as well. Compare methods on your own data, with
many more rows and full training, before you choose. Seeds are 0. Needs ``pip install '.[faiss]'``.
"""

import faiss
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from hashlearn import RankingHasher, metrics
from hashlearn.hashers import ITQ, SignCodes
from hashlearn.search import asymmetric_search

X = normalize(load_digits().data).astype("float32")
database, queries = X[:1200], X[1200:]
true = metrics.float_neighbors(queries, database, k=10)


def found(method, size):
    """The 10 best rows of each query, from ``size`` bytes a row."""
    if not isinstance(method, int):
        margins = (hasher := method(8 * size).fit(database)).decision_function(queries)
        return asymmetric_search(margins, hasher.encode(database), k=10).indices
    index = faiss.IndexPQ(X.shape[1], 8 * size // method, method)  # that many bits for each part of a row
    index.pq.cp.min_points_per_centroid = 1  # without this FAISS warns
    index.train(database)
    index.add(database)
    return index.search(queries, 10)[1]


methods = {
    "RankingHasher": lambda n_bits: RankingHasher(n_bits, hidden=128, n_steps=200, random_state=0),
    "ITQ": lambda n_bits: ITQ(n_bits, random_state=0),
    "PCA signs": lambda n_bits: SignCodes(n_bits, features="pca"),
    "FAISS PQ (16 centroids)": 4,
    "FAISS PQ (256 centroids)": 8,
}

# %%
# Recall: the share of the 10 nearest rows by cosine of the floats that are among the 10 best of a method.

plt.style.use(["tableau-colorblind10", {"axes.spines.top": False, "axes.spines.right": False}])
figure, axes = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
sizes, best = [1, 2, 4], (0.0, "")
for (name, method), color in zip(methods.items(), ["C0", "C3", "C2", "C1", "C5"], strict=True):
    recalls = [metrics.recall_of_neighbors(found(method, size), true) for size in sizes]
    best = max(best, (recalls[-1], name))
    line, side = ("o--", "bottom") if "FAISS" in name else ("o-", "top")
    axes.plot(sizes, recalls, line, color=color, linewidth=2)
    axes.annotate(name, (sizes[-1], recalls[-1]), (9, 0), textcoords="offset points", color=color, va=side)
axes.set_xscale("log", base=2)
axes.set(xticks=sizes, xticklabels=sizes, xlabel="bytes a row", ylabel="recall of the 10 nearest rows", ylim=0)
axes.set_title(f"With {sizes[-1]} bytes {best[1]} finds most, {best[0]:.0%}", loc="left")
plt.show()
