"""SUN397, as the paper uses it: the 42 scene categories with more than 500 images, about 35,000 images, AlexNet's fc7.

The images are read from a folder, ``SUN397/a/abbey/sun_….jpg`` as in the archive. There is no canonical test part: the
protocol draws 100 queries from each class. The user downloads the archive (about 37 GB); the weights (244 MB) are
downloaded on first use.

fc7 are the 4,096 activations before the last layer of a network trained on ImageNet: A. Krizhevsky, One weird trick for
parallelizing convolutional neural networks, arXiv:1404.5997. Five convolutions are followed by two fully connected
layers, whose second, after its rectifier, is fc7. Layers are plain torch with the names of torchvision's weights, so
that its file loads and torchvision is not needed. Needs torch and Pillow.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.packages import require
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.experiments.datasets.dataset import DataError, DataSet, MissingDataError, Provenance, Source, SourceFile
from hashlearn.experiments.datasets.files import CanonicalFile, absent, obtain
from hashlearn.experiments.datasets.image_features import cached, parameters

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
N_FEATURES = 4096
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


@dataclass(frozen=True)
class AlexNetFC7:
    """fc7 of image files: shorter side to ``resize`` pixels, the middle ``crop`` × ``crop``, ImageNet's statistics.

    Deviations: the paper used Caffe's AlexNet, whose weights need Caffe; this is the one-tower variant with
    torchvision's weights. The effect is not measured, because SUN397 was not available.
    """

    name: ClassVar[str] = "fc7"
    version: ClassVar[int] = 1

    resize: int = 256
    crop: int = 224
    batch: int = 64

    @property
    def n_features(self) -> int:
        """Number of features of an image."""
        return N_FEATURES

    def compute_files(
        self, paths: Sequence[Path], weights: Path, progress: ProgressCallback | None = None
    ) -> NDArray[np.float32]:
        """Image files → float32 (n, 4096), with the network whose torchvision ``state_dict`` is in ``weights``."""
        torch = require("torch", EXTRA, PURPOSE)
        network = load_network(weights)
        rows = np.empty((len(paths), N_FEATURES), np.float32)
        with torch.inference_mode():
            for first in range(0, len(paths), self.batch):
                last = min(first + self.batch, len(paths))
                pixels = np.stack([self.pixels(path) for path in paths[first:last]])
                rows[first:last] = network(torch.from_numpy(pixels)).numpy()
                tell(progress, "AlexNet fc7", last, len(paths))
        return rows

    def pixels(self, path: Path) -> NDArray[np.float32]:
        """What the network sees of a file: (3, crop, crop)."""
        Image = require("PIL.Image", EXTRA, PURPOSE)
        try:
            with Image.open(path) as file:
                image = file.convert("RGB")
        except (OSError, ValueError, Image.DecompressionBombError) as error:
            raise DataError(f"{path}: cannot be read as an image: {error}") from None
        scale = self.resize / min(image.size)
        width, height = (max(self.resize, int(side * scale)) for side in image.size)
        left, top = round((width - self.crop) / 2.0), round((height - self.crop) / 2.0)
        image = image.resize((width, height), Image.Resampling.BILINEAR)
        image = image.crop((left, top, left + self.crop, top + self.crop))
        scaled = (np.asarray(image, np.float32) / np.float32(255.0) - MEAN) / DEVIATION
        return np.ascontiguousarray(scaled.transpose(2, 0, 1))


def load_network(weights: Path) -> Callable[[Any], Any]:
    """(n, 3, height, width) → fc7 (n, 4096), evaluating; only tensors are read from the file, never code."""
    torch = require("torch", EXTRA, PURPOSE)
    with torch.device("meta"):  # shapes only: 61 million random numbers would be overwritten at once
        network = _layers(torch)
    try:
        network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True), assign=True)
    except (RuntimeError, pickle.UnpicklingError, EOFError, TypeError, AttributeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise DataError(f"{weights}: not the weights of torchvision's AlexNet: {reason}") from None
    network.float().eval()

    def fc7(x: Any) -> Any:
        x = torch.flatten(network.avgpool(network.features(x)), 1)
        return network.classifier[:6](x)

    return fc7


def _layers(torch: Any) -> Any:
    """The whole network; the numbers of its layers are part of the weights' names."""
    nn = torch.nn

    def convolution(n_in: int, n_out: int, side: int, **how: int) -> list[Any]:
        return [nn.Conv2d(n_in, n_out, side, **how), nn.ReLU()]

    def pool() -> Any:
        return nn.MaxPool2d(3, stride=2)

    network = nn.Module()
    network.features = nn.Sequential(
        *convolution(3, 64, 11, stride=4, padding=2), pool(),
        *convolution(64, 192, 5, padding=2), pool(),
        *convolution(192, 384, 3, padding=1),
        *convolution(384, 256, 3, padding=1),
        *convolution(256, 256, 3, padding=1), pool(),
    )  # fmt: skip
    network.avgpool = nn.AdaptiveAvgPool2d(6)
    network.classifier = nn.Sequential(
        nn.Dropout(), nn.Linear(256 * 6 * 6, N_FEATURES), nn.ReLU(),
        nn.Dropout(), nn.Linear(N_FEATURES, N_FEATURES), nn.ReLU(),
        nn.Linear(N_FEATURES, 1000),
    )  # fmt: skip
    return network
