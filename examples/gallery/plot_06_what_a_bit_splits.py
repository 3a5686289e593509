"""
What a bit splits
=================

A bit is the sign of a margin. The digits with the lowest and the highest margins show what a bit looks at. With labels
each bit splits the ten classes into two groups, and each bit splits them in another way.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from hashlearn import TwoStepHasher

X, y = load_digits(return_X_y=True)
hasher = TwoStepHasher(n_bits=8, random_state=0).fit(X[:1200], y[:1200])

# %%
# Margins of the 597 digits that were not learned from. For each class and bit, the sign that most of them have:

images, labels = X[1200:], y[1200:]
margins = hasher.decision_function(images)
ones = np.array([(margins[labels == digit] > 0).mean(axis=0) for digit in range(10)])
agreement = np.maximum(ones, 1 - ones).mean()

# %%
# For each bit and class, the digit that lies farthest on the side of its class, sorted by margin.

figure, axes = plt.subplots(figsize=(9, 6.2), layout="constrained")
for bit in range(8):
    side = ones[:, bit] > 0.5
    chosen = [
        max(np.flatnonzero(labels == digit), key=lambda row: margins[row, bit] * (1 if side[digit] else -1))
        for digit in range(10)
    ]
    for group, start, step in ((~side, -0.6, -1), (side, 0.6, 1)):
        rows = sorted(np.array(chosen)[group], key=lambda row: abs(margins[row, bit]))
        for place, row in enumerate(rows):
            x = start + step * (place + 0.5)
            box = (x - 0.46, x + 0.46, bit + 0.46, bit - 0.46)
            axes.imshow(images[row].reshape(8, 8), cmap="Oranges" if step > 0 else "Blues", extent=box)
axes.axvline(0, color="0.6", linewidth=1)
widest = 0.7 + max((ones > 0.5).sum(axis=0).max(), (ones <= 0.5).sum(axis=0).max())
axes.set(xlim=(-widest, widest), ylim=(7.6, -0.6), yticks=range(8), yticklabels=range(1, 9), ylabel="bit", xticks=[])
axes.set_xlabel("← lower margins: the bit is 0        the bit is 1: higher margins →")
axes.spines[:].set_visible(False)
axes.tick_params(length=0)
axes.set_title(f"Each bit divides the ten digits in its own way; {agreement:.1%} of the bits of new digits agree")
plt.show()
