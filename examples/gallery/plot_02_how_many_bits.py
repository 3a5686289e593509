"""
How many bits?
==============

It depends on what the codes must keep. Classes need few bits. Each row's nearest neighbors need more, because there are
many more rows than classes.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from hashlearn import RankingHasher, TwoStepHasher, metrics

X, y = load_digits(return_X_y=True)
database, queries, known, asked = X[:1200], X[1200:], y[:1200], y[1200:]
neighbors = metrics.float_neighbors(queries, database, k=10)

# %%
# Mean average precision says how well a ranking by code separates the classes of the labels. Recall is the share of the
# 10 nearest rows by floats that are among the 10 nearest by code. No query was learned from; all seeds are 0. Training
# is short so that this takes seconds: with the default steps more neighbors are kept.

sizes = [2, 4, 8, 16, 32]
precision, recall = [], []
for n_bits in sizes:
    hasher = TwoStepHasher(n_bits=n_bits, n_sweeps=1, random_state=0).fit(database, known)
    precision.append(metrics.mean_average_precision(hasher.encode(queries), hasher.encode(database), asked, known))
    hasher = RankingHasher(n_bits=n_bits, hidden=128, n_steps=100, random_state=0).fit(database)
    recall.append(metrics.neighbor_recall(hasher.encode(queries), hasher.encode(database), neighbors, k=10))

# %%
# A length is enough if no longer code of this figure is better by more than one point.


def enough(scores):
    """The fewest bits whose score is within a hundredth of the best."""
    return next(n_bits for n_bits, score in zip(sizes, scores, strict=True) if score > max(scores) - 0.01)


plt.style.use(["tableau-colorblind10", {"axes.spines.top": False, "axes.spines.right": False}])
figure, axes = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
for scores, color, name in [(precision, "C0", "classes kept\n(mAP)"), (recall, "C1", "neighbors kept\n(recall@10)")]:
    axes.plot(sizes, scores, color=color, marker="o", linewidth=2, clip_on=False)
    axes.annotate(name, (sizes[-1], scores[-1]), (10, 0), textcoords="offset points", color=color, va="center")
axes.set_xscale("log", base=2)
axes.set(xticks=sizes, xticklabels=sizes, ylim=(0, 1), xlabel="bits a row", ylabel="share kept, new digits")
axes.grid(axis="y", alpha=0.3)
few, more = enough(precision), enough(recall)
ending = f"neighbors with {more}" if more < sizes[-1] else f"neighbors still gain at {more}"
axes.set_title(f"Classes are kept with {few} bits, {ending}", loc="left")
plt.show()
