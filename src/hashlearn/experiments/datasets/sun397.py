"""SUN397, as the paper uses it: the 42 scene categories with more than 500 images, about 35,000 images, AlexNet's fc7.

The images are read from a folder, ``SUN397/a/abbey/sun_….jpg`` as in the archive. There is no canonical test part: the
protocol draws 100 queries from each class. The user downloads the archive (about 37 GB); the weights (244 MB) are
downloaded on first use.

fc7 are the 4,096 activations before the last layer of a network trained on ImageNet: A. Krizhevsky, One weird trick for
parallelizing convolutional neural networks, arXiv:1404.5997. Five convolutions are followed by two fully connected
layers, whose second, after its rectifier, is fc7. Layers are plain torch with the names of torchvision's weights, so
that its file loads and torchvision is not needed. Needs torch and Pillow.

Deviations: the paper used Caffe's AlexNet, whose weights need Caffe; this is the one-tower variant with torchvision's
weights. The effect is not measured, because SUN397 was not available.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.packages import require
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.experiments.datasets.dataset import DataError, DataSet, MissingDataError, Provenance, Source, SourceFile
from hashlearn.experiments.datasets.files import PublishedFile, absent, obtain
from hashlearn.experiments.datasets.image_features import cached

FOLDER = "SUN397"
ARCHIVE = "http://vision.princeton.edu/projects/2010/SUN/SUN397.tar.gz"
ARCHIVE_MD5 = "8ca2778205c41d23104230ba66911c7a"
MORE_THAN = 500
CATEGORIES = 42
SUFFIXES = (".jpg", ".jpeg", ".png")
WEIGHTS = PublishedFile(
    "alexnet-owt-7be5be79.pth",
    "sha256:7be5be791159472b1fbf3c69796f7cb30dca7ad8466c2df70058c37116cdee02",
    ("https://download.pytorch.org/models/alexnet-owt-7be5be79.pth",),
)
N_FEATURES, RESIZE, CROP, BATCH = 4096, 256, 224, 64
EXTRA = "torch"
PURPOSE = "AlexNet's fc7"
MEAN = np.array([0.485, 0.456, 0.406], np.float32)  # of ImageNet's red, green and blue
DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)


class Sun397(Source):
    """A folder of images and AlexNet's weights."""

    name = "sun397"
    features = ("fc7",)
    samples = None
    home = "https://vision.princeton.edu/projects/2010/SUN/"
    license = "no formal license, images belong to their owners; cite Xiao et al., SUN Database, CVPR 2010"
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
        files = (_manifest(root, paths), *obtain(self.name, [WEIGHTS], folder, progress))
        described = {"name": "fc7", "version": 1, "resize": RESIZE, "crop": CROP}
        shape, weights = (len(paths), N_FEATURES), folder / WEIGHTS.path
        X = cached(self.name, described, files, shape, folder, lambda: compute_fc7(paths, weights, progress))
        y = np.repeat(np.arange(len(categories)), [len(images) for images in categories.values()]).astype(np.int64)
        provenance = Provenance(self.home, self.license, files, described)
        return DataSet(self.name, "fc7", X, y, tuple(categories), None, None, provenance)


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


def compute_fc7(paths: list[Path], weights: Path, progress: ProgressCallback | None) -> NDArray[np.float32]:
    """Image files → float32 (n, 4096), with the network whose torchvision ``state_dict`` is in ``weights``."""
    torch = require("torch", EXTRA, PURPOSE)
    network = fc7_network(torch.load(weights, map_location="cpu", weights_only=True))
    rows = np.empty((len(paths), N_FEATURES), np.float32)
    with torch.inference_mode():
        for first in range(0, len(paths), BATCH):
            last = min(first + BATCH, len(paths))
            rows[first:last] = network(torch.from_numpy(np.stack([pixels(path) for path in paths[first:last]]))).numpy()
            tell(progress, "AlexNet fc7", last, len(paths))
    return rows


def pixels(path: Path) -> NDArray[np.float32]:
    """What the network sees of a file, (3, 224, 224): shorter side to 256 pixels, the middle, ImageNet's statistics."""
    Image = require("PIL.Image", EXTRA, PURPOSE)
    try:
        with Image.open(path) as file:
            image = file.convert("RGB")
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise DataError(f"{path}: cannot be read as an image: {error}") from None
    scale = RESIZE / min(image.size)
    width, height = (max(RESIZE, int(side * scale)) for side in image.size)
    left, top = round((width - CROP) / 2.0), round((height - CROP) / 2.0)
    image = image.resize((width, height), Image.Resampling.BILINEAR).crop((left, top, left + CROP, top + CROP))
    scaled = (np.asarray(image, np.float32) / np.float32(255.0) - MEAN) / DEVIATION
    return np.ascontiguousarray(scaled.transpose(2, 0, 1))


def fc7_network(state: Mapping[str, Any]) -> Any:
    """(n, 3, 224, 224) → fc7 (n, 4096), evaluating. Layers are numbered as in the weights' names."""
    nn = require("torch", EXTRA, PURPOSE).nn
    sizes_of_layers = [(3, 64, 11, 4, 2), (64, 192, 5, 1, 2)]
    sizes_of_layers += [(192, 384, 3, 1, 1), (384, 256, 3, 1, 1), (256, 256, 3, 1, 1)]
    layers = []
    for place, sizes in enumerate(sizes_of_layers):
        layers += [nn.Conv2d(*sizes), nn.ReLU()] + ([nn.MaxPool2d(3, stride=2)] if place in (0, 1, 4) else [])
    classifier = nn.Sequential(
        nn.Dropout(), nn.Linear(256 * 6 * 6, N_FEATURES), nn.ReLU(),
        nn.Dropout(), nn.Linear(N_FEATURES, N_FEATURES), nn.ReLU(),
    )  # fmt: skip
    network = nn.ModuleDict({"features": nn.Sequential(*layers), "classifier": classifier})
    network.load_state_dict({name: part for name, part in state.items() if not name.startswith("classifier.6.")})
    network.eval()
    return nn.Sequential(network["features"], nn.Flatten(), network["classifier"])
