"""
The bound closing in on a cut
=============================

Max-cut divides the nodes of a graph so that as many edges as possible run between the two sides. `bqp.solve` finds
cuts, and proves an upper bound that no cut can exceed. The longer both work, the less is unknown.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array

from hashlearn import bqp

# %%
# A random graph (seed 0) of 500 nodes. With A its adjacency matrix, a cut of signs x has (sum(A) - xᵀAx) / 4 edges. So
# the smallest xᵀAx is the largest cut.

upper = np.triu(np.random.default_rng(0).random((500, 500)) < 0.02, 1)
A = csr_array((upper | upper.T).astype(float))


def edges(value):
    """The number of edges in a cut, from xᵀAx."""
    return (A.sum() - value) / 4


# %%
# Local search improves the cut, and ``trace`` records every improvement. The semidefinite relaxation proves bounds: a
# smaller tolerance takes longer and proves more. One untimed solve of each compiles what is compiled on first use.

bqp.solve(A, method="local_search", random_state=0, time_limit=0.1)
bqp.solve(A, method="sdr", random_state=0)
search = bqp.solve(A, method="local_search", random_state=0, time_limit=2.0)
cuts = [(entry.seconds, edges(entry.value)) for entry in search.trace]
seconds, bounds = 0.0, []
for tol in np.geomspace(0.1, 1e-4, 7):
    proof = bqp.solve(A, method=bqp.SemidefiniteRelaxation(tol=tol), random_state=0)
    seconds += proof.seconds
    bounds.append((seconds, edges(proof.bound)))
seconds = max(seconds, search.seconds)
times, limits = np.transpose([*bounds, (seconds, bounds[-1][1])])
limits = np.minimum.accumulate(limits)
when, sizes = np.transpose([*cuts, (seconds, cuts[-1][1])])

plt.style.use(["tableau-colorblind10", {"axes.spines.top": False, "axes.spines.right": False}])
figure, axes = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
axes.step(times, limits, where="post", color="C1", linewidth=2.5)
axes.step(when, sizes, where="post", color="C0", linewidth=2.5)
axes.axhspan(sizes[-1], limits[-1], color="C2", alpha=0.25, linewidth=0)
for y, color, name in [(limits[-1], "C1", "no cut is\nlarger"), (sizes[-1], "C0", "a cut that\nwas found")]:
    axes.annotate(name, (seconds, y), (8, 0), textcoords="offset points", color=color, va="center")
middle = (sizes[-1] + limits[-1]) / 2
axes.annotate("not known", (when[0], middle), color="C3", va="center")
axes.set(xscale="log", xlabel="seconds that each solver has worked", ylabel="edges in the cut")
gap = limits[-1] / sizes[-1] - 1
axes.set_title(f"The largest cut has {sizes[-1]:.0f} to {int(limits[-1])} edges: {gap:.1%} are unknown", loc="left")
plt.show()
