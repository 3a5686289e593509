"""The usual spelling of data sets and of kinds of features."""

from __future__ import annotations

_DATASETS = {"mnist": "MNIST", "cifar10": "CIFAR-10", "sun397": "SUN397", "digits": "Digits"}
_FEATURES = {"gist": "GIST", "hog": "HOG"}


def dataset_name(name: str) -> str:
    """The usual spelling of a data set, or the name itself.

    >>> dataset_name("cifar10"), dataset_name("my-photos")
    ('CIFAR-10', 'my-photos')
    """
    return _DATASETS.get(name, name)


def features_name(name: str) -> str:
    """The usual spelling of a kind of features, or the name itself."""
    return _FEATURES.get(name, name)
