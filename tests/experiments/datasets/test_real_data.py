"""The canonical files themselves, where ``$HASHLEARN_DATA`` has them."""

from __future__ import annotations

import numpy as np
import pytest

from hashlearn.experiments import datasets
from hashlearn.experiments.datasets.features import gist, hog

PRESENT = {known.name for known in datasets.known() if known.present}
needs_mnist = pytest.mark.skipif("mnist" not in PRESENT, reason="needs MNIST in $HASHLEARN_DATA")
needs_cifar10 = pytest.mark.skipif("cifar10" not in PRESENT, reason="needs CIFAR-10 in $HASHLEARN_DATA")


@needs_mnist
def test_mnist() -> None:
    data = datasets.load("mnist")
    assert data.X.shape == (70_000, 784)
    assert data.is_query is not None
    assert (~data.is_query).sum() == 60_000
    assert data.y[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert np.bincount(data.y[data.is_query]).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


@needs_cifar10
def test_cifar10_and_what_its_features_are_worth() -> None:
    """A class mean of GIST or HOG predicts far better than chance, which is a tenth."""
    data = datasets.load("cifar10", "pixels")
    assert data.X.shape == (60_000, 3072)
    assert data.is_query is not None
    assert np.bincount(data.y[data.is_query]).tolist() == [1000] * 10
    assert [data.class_names[k] for k in data.y[:4]] == ["frog", "truck", "truck", "deer"]
    assert data.images is not None
    some = np.r_[:2000, 50_000:50_500]
    for features in (gist, hog):
        X, y = features(data.images[some]), data.y[some]
        means = np.stack([X[:2000][y[:2000] == k].mean(axis=0) for k in range(10)])
        nearest = ((X[2000:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
        assert np.mean(nearest == y[2000:]) > 0.25
