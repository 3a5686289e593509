"""SUN397, as the paper uses it: the 42 scene categories with more than 500 images, about 35,000 images, AlexNet's fc7.

The images are read from a folder, ``SUN397/a/abbey/sun_….jpg`` as in the archive. There is no canonical test part: the
protocol draws 100 queries from each class. The user downloads the archive (about 37 GB); the weights (244 MB) are
downloaded on first use.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from hashlearn.core.progress import ProgressCallback
from hashlearn.experiments.datasets.dataset import (
    DataError,
    DataSet,
    MissingDataError,
    Provenance,
    Source,
    SourceFile,
)
from hashlearn.experiments.datasets.features import AlexNetFC7, cached, parameters
from hashlearn.experiments.datasets.files import CanonicalFile, absent, obtain

FOLDER = "SUN397"
ARCHIVE = "http://vision.princeton.edu/projects/2010/SUN/SUN397.tar.gz"
ARCHIVE_MD5 = "8ca2778205c41d23104230ba66911c7a"
MORE_THAN = 500
CATEGORIES = 42
SUFFIXES = (".jpg", ".jpeg", ".png")

WEIGHTS = CanonicalFile(
    "alexnet-owt-7be5be79.pth",
    244_408_911,
    "sha256:7be5be791159472b1fbf3c69796f7cb30dca7ad8466c2df70058c37116cdee02",
    ("https://download.pytorch.org/models/alexnet-owt-7be5be79.pth",),
)


class Sun397(Source):
    """A folder of images and AlexNet's weights."""

    name = "sun397"
    features = ("fc7",)
    samples = None
    home = "https://vision.princeton.edu/projects/2010/SUN/"
    licence = "no formal licence, images belong to their owners; cite Xiao et al., SUN Database, CVPR 2010"
    how = (
        f"download {ARCHIVE} (about 37 GB, md5 {ARCHIVE_MD5}) and unpack it in the data folder; the network's weights "
        "(244 MB) are downloaded on first use"
    )

    def missing(self, folder: Path) -> list[str]:
        images = [] if (folder / FOLDER).is_dir() else [f"{FOLDER}/"]
        return images + [file.path for file in absent([WEIGHTS], folder)]

    def read(self, folder: Path, features: Any, progress: ProgressCallback | None) -> DataSet:
        """The data set with fc7 features, computed once and cached."""
        root = folder / FOLDER
        if not root.is_dir():
            raise MissingDataError(
                f"{self.name}: there is no folder {root}. Download {ARCHIVE} (about 37 GB, md5 {ARCHIVE_MD5}) "
                f"and unpack it with `tar -xzf SUN397.tar.gz -C {folder}`."
            )
        categories = large_categories(root)
        if len(categories) != CATEGORIES:
            warnings.warn(
                f"{root} has {len(categories)} categories with more than {MORE_THAN} images, the paper's SUN397 has "
                f"{CATEGORIES}: is it complete?",
                stacklevel=3,
            )
        paths = [path for images in categories.values() for path in images]
        fc7 = AlexNetFC7()
        files = (_manifest(root, paths), *obtain(self.name, [WEIGHTS], folder, progress))
        described, shape, weights = parameters(fc7), (len(paths), fc7.n_features), folder / WEIGHTS.path
        X = cached(self.name, described, files, shape, folder, lambda: fc7.compute_files(paths, weights, progress))
        y = np.repeat(np.arange(len(categories)), [len(images) for images in categories.values()]).astype(np.int64)
        provenance = Provenance(self.home, self.licence, files, described)
        return DataSet(self.name, fc7.name, X, y, tuple(categories), None, None, provenance)


def large_categories(root: Path) -> dict[str, list[Path]]:
    """Category → its images, both sorted by name; only categories with more than `MORE_THAN` images.

    A category is the path between the letter and the file: "abbey", "apartment_building/outdoor".
    """
    found: dict[str, list[Path]] = defaultdict(list)
    for parent, _, names in os.walk(root):
        category = "/".join(Path(parent).relative_to(root).parts[1:])
        if category:
            found[category] += [Path(parent, name) for name in names if name.lower().endswith(SUFFIXES)]
    large = {category: sorted(found[category]) for category in sorted(found) if len(found[category]) > MORE_THAN}
    if not large:
        raise DataError(
            f"{root}: no category has more than {MORE_THAN} images; expected {root / 'a' / 'abbey' / 'sun_….jpg'}, …"
        )
    return large


def _manifest(root: Path, paths: list[Path]) -> SourceFile:
    """One entry for all images: a checksum of their names and sizes, because each load cannot read 12 GB."""
    sizes = [path.stat().st_size for path in paths]
    lines = (f"{path.relative_to(root).as_posix()} {size}\n" for path, size in zip(paths, sizes, strict=True))
    return SourceFile(f"{FOLDER} (names and sizes)", hashlib.sha256("".join(lines).encode()).hexdigest(), sum(sizes))
