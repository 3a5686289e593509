"""Image features: each a frozen dataclass of parameters with one method, ``compute``.

Adding one is its file and one line in `IMAGE_FEATURES`.
"""

from __future__ import annotations

from collections.abc import Callable

from hashlearn.datasets.features.alexnet import AlexNetFC7
from hashlearn.datasets.features.base import ImageFeatures, parameters
from hashlearn.datasets.features.cache import cached
from hashlearn.datasets.features.gist import Gist
from hashlearn.datasets.features.hog import Hog

__all__ = ["IMAGE_FEATURES", "AlexNetFC7", "Gist", "Hog", "ImageFeatures", "cached", "parameters"]

IMAGE_FEATURES: dict[str, Callable[[], ImageFeatures]] = {"gist": Gist, "hog": Hog}
