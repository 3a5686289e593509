"""
A promise tested
================

`compress` promises a recall for queries that nobody has seen yet. At 90 % confidence at most one promise in ten may be
broken. Here forty promises, each made with 250 queries of its own, are compared with 3,000 fresh queries.
"""

import matplotlib.pyplot as plt
import numpy as np

from hashlearn import compress
from hashlearn.compression import verify

# %%
# Rows around 60 centers (seed 0). They are made here, so there are as many fresh queries as we like.

rng = np.random.default_rng(0)
centers = rng.standard_normal((60, 32))


def draw(n):
    """``n`` new rows."""
    return centers[rng.integers(60, size=n)] + 0.6 * rng.standard_normal((n, 32))


database, fresh = draw(1500), draw(3000)

# %%
# Each plan knows only its own queries. The fresh queries stand for the future: their mean recall is close to the truth.

plans = [
    compress(
        database, queries=draw(250), recall=0.9, confidence=0.9, families=["pca_sign"], mode="hamming", max_bytes=4
    )
    for _ in range(40)
]
promised = np.array([plan.recall_lower_bound for plan in plans])
true = np.array([verify(plan, database, fresh).measured for plan in plans])
broken = true < promised

plt.style.use(["tableau-colorblind10", {"axes.spines.top": False, "axes.spines.right": False}])
figure, axes = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
order = np.argsort(true, kind="stable")
axes.vlines(range(40), promised[order], true[order], color="C2", linewidth=2)
axes.scatter(range(40), promised[order], marker="_", color="black", s=60)
axes.scatter(range(40), true[order], c=np.where(broken[order], "C1", "C0"), s=30, zorder=3)
axes.annotate("true recall", (39, true.max()), (9, 0), textcoords="offset points", color="C0", va="center")
axes.annotate("promised", (39, promised[order][-1]), (9, 0), textcoords="offset points", va="center")
axes.set(xlabel="forty promises, sorted by true recall", ylabel="recall@10", xticks=[])
axes.set_title(
    f"{broken.sum()} of {len(plans)} promises are broken, {0.1 * len(plans):.0f} may be expected at 90 % confidence",
    loc="left",
)
plt.show()
