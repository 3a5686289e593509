"""From images in memory to a `DataSet`: pixels as they are, or features computed once and cached."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.progress import ProgressCallback
from hashlearn.experiments.datasets.dataset import DataSet, Provenance, SourceFile
from hashlearn.experiments.datasets.features import IMAGE_FEATURES, ImageFeatures, cached, parameters

PIXELS = "pixels"


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """What an image data set's files hold, before any features."""

    images: NDArray[np.uint8]
    y: NDArray[np.int64]
    class_names: tuple[str, ...]
    is_query: NDArray[np.bool_] | None
    files: tuple[SourceFile, ...]


def with_features(
    name: str,
    labelled: LabelledImages,
    features: str | ImageFeatures,
    folder: Path,
    source: str,
    licence: str,
    progress: ProgressCallback | None = None,
) -> DataSet:
    """The data set with these features; "pixels" are grey levels or colours from 0 to 1, row by row."""
    described: dict[str, Any]
    if features == PIXELS:
        X = (labelled.images.reshape(len(labelled.images), -1) / np.float32(255.0)).astype(np.float32, copy=False)
        described = {"name": PIXELS, "scale": "0 to 1"}
    else:
        chosen = IMAGE_FEATURES[features]() if isinstance(features, str) else features
        described = parameters(chosen)
        X = cached(
            name,
            described,
            labelled.files,
            (len(labelled.images), chosen.n_features),
            folder,
            lambda: chosen.compute(labelled.images, progress),
        )
    return DataSet(
        name,
        described["name"],
        X,
        labelled.y,
        labelled.class_names,
        labelled.is_query,
        labelled.images,
        Provenance(source, licence, labelled.files, described),
    )


def queries_last(n_train: int, n_test: int) -> NDArray[np.bool_]:
    """Which samples are canonical queries, where the test part follows the training part."""
    return np.arange(n_train + n_test) >= n_train
