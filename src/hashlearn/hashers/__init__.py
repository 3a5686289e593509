"""scikit-learn estimators that turn features into binary codes. Adding one is its file and one line in `HASHERS`."""

from __future__ import annotations

from hashlearn.hashers.base import BaseHasher
from hashlearn.hashers.two_step import TwoStepHasher

__all__ = ["HASHERS", "BaseHasher", "TwoStepHasher"]

HASHERS: dict[str, type[BaseHasher]] = {"two_step": TwoStepHasher}
