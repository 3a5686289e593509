"""
From digits to bits
===================

`TwoStepHasher` learns from 1,200 labeled digits of scikit-learn. It then turns digits that it has never seen into codes
of four bytes. Digits of one class get nearly the same code.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from hashlearn import TwoStepHasher
from hashlearn.bits import hamming_distances

X, y = load_digits(return_X_y=True)
hasher = TwoStepHasher(n_bits=32, random_state=0).fit(X[:1200], y[:1200])

# %%
# The other 597 digits are new. ``transform`` gives bits of 0 and 1, ``encode`` packs eight of them into a byte.

images, labels = X[1200:], y[1200:]
bits, codes = hasher.transform(images), hasher.encode(images)

distances = hamming_distances(codes, codes)
pairs = np.triu(np.ones(distances.shape, bool), 1)
same = distances[pairs & (labels[:, None] == labels)].mean()
other = distances[pairs & (labels[:, None] != labels)].mean()

# %%
# Five random digits of each class, and their codes. A dark cell is a bit that is 1.

rng = np.random.default_rng(0)
shown = np.stack([rng.choice(np.flatnonzero(labels == digit), 5, replace=False) for digit in range(10)])
pictures = np.pad(images[shown].reshape(10, 5, 8, 8), [(0, 0), (0, 0), (1, 1), (1, 1)])
pictures = pictures.transpose(0, 2, 1, 3).reshape(100, 50)
rows = np.pad(bits[shown].astype(float), [(0, 0), (0, 1), (0, 0)], constant_values=np.nan).reshape(60, 32)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 6.2), width_ratios=[5, 9], layout="constrained")
left.imshow(pictures, cmap="gray_r", extent=(0, 5, 10, 0), aspect="auto")
left.set(xticks=[], yticks=np.arange(10) + 0.5, yticklabels=range(10), xlabel="five new digits", ylabel="class")
right.imshow(rows, cmap="Blues", vmin=-0.15, vmax=1.25, extent=(0, 32, 10, 0), aspect="auto", interpolation="none")
right.set(xticks=range(0, 33, 8), yticks=[], xlabel="the 32 bits of each of the five, one line a digit")
right.vlines(range(1, 32), 0, 10, color="white", linewidth=0.8)
for axes in (left, right):
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
figure.suptitle(f"Codes of one class differ in {same:.1f} of 32 bits on average, codes of two classes in {other:.1f}")
plt.show()
