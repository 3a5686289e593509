"""Image features: each a frozen dataclass of parameters with one method, ``compute``.

Adding one is its file and one line in `IMAGE_FEATURES`.
"""

from __future__ import annotations

from collections.abc import Callable

from hashlearn.experiments.datasets.features.alexnet import AlexNetFC7
from hashlearn.experiments.datasets.features.base import ImageFeatures, cached, parameters
from hashlearn.experiments.datasets.features.gist import Gist
from hashlearn.experiments.datasets.features.hog import Hog

__all__ = ["IMAGE_FEATURES", "AlexNetFC7", "Gist", "Hog", "ImageFeatures", "cached", "parameters"]

IMAGE_FEATURES: dict[str, Callable[[], ImageFeatures]] = {"gist": Gist, "hog": Hog}
