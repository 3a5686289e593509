"""SUN397 as the paper uses it: AlexNet's fc7 of the 42 scene categories with more than 500 images, about 35,000 images.

``python -m benchmarks.sun397 FOLDER`` reads ``FOLDER/a/abbey/sun_….jpg``, as the archive has them, and writes
``sun397.npz`` to the data folder, where ``hashlearn bench --dataset sun397`` finds it. Needs torch and Pillow.
The archive, 37 GB, is http://vision.princeton.edu/projects/2010/SUN/SUN397.tar.gz, md5
8ca2778205c41d23104230ba66911c7a.

fc7 are the 4,096 activations before the last layer of a network trained on ImageNet: A. Krizhevsky, One weird trick for
parallelizing convolutional neural networks, arXiv:1404.5997. Layers are plain torch with the names of torchvision's
weights, so that its file loads and torchvision is not needed.

Deviations: the paper used Caffe's AlexNet, whose weights need Caffe; this is the one-tower variant with torchvision's
weights. The effect is not measured, because SUN397 was not available.
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from hashlearn.experiments.datasets import data_folder

WEIGHTS = "https://download.pytorch.org/models/alexnet-owt-7be5be79.pth"
MORE_THAN = 500
SUFFIXES = (".jpg", ".jpeg", ".png")
N_FEATURES, RESIZE, CROP, BATCH = 4096, 256, 224, 64
MEAN = np.array([0.485, 0.456, 0.406], np.float32)  # of ImageNet's red, green and blue
DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    categories = large_categories(parser.parse_args().folder)
    network = fc7_network(torch.hub.load_state_dict_from_url(WEIGHTS, map_location="cpu", check_hash=True))
    X = fc7(network, [path for paths in categories.values() for path in paths])
    y = np.repeat(np.arange(len(categories)), [len(paths) for paths in categories.values()])
    np.savez(data_folder() / "sun397.npz", X=X, y=y, names=np.array(list(categories)))
    print(f"{len(X):,} images in {len(categories)} categories; the paper's SUN397 has 42")


def large_categories(root: Path) -> dict[str, list[Path]]:
    """Category → its images, both sorted by name; only categories with more than `MORE_THAN` images.

    A category is the path between the letter and the file: "abbey", "apartment_building/outdoor".
    """
    images: dict[str, list[Path]] = defaultdict(list)
    for parent, _, names in os.walk(root):
        category = "/".join(Path(parent).relative_to(root).parts[1:])
        if category:
            images[category] += [Path(parent, name) for name in names if name.lower().endswith(SUFFIXES)]
    return {category: sorted(images[category]) for category in sorted(images) if len(images[category]) > MORE_THAN}


def fc7(network: Any, paths: list[Path]) -> NDArray[np.float32]:
    """Image files → float32 (n, 4096)."""
    rows = np.empty((len(paths), N_FEATURES), np.float32)
    with torch.inference_mode():
        for first in range(0, len(paths), BATCH):
            batch = np.stack([pixels(path) for path in paths[first : first + BATCH]])
            rows[first : first + BATCH] = network(torch.from_numpy(batch)).numpy()
    return rows


def pixels(path: Path) -> NDArray[np.float32]:
    """What the network sees of a file, (3, 224, 224): shorter side to 256 pixels, the middle, ImageNet's statistics."""
    with Image.open(path) as file:
        image = file.convert("RGB")
    scale = RESIZE / min(image.size)
    width, height = (max(RESIZE, int(side * scale)) for side in image.size)
    left, top = round((width - CROP) / 2.0), round((height - CROP) / 2.0)
    image = image.resize((width, height), Image.Resampling.BILINEAR).crop((left, top, left + CROP, top + CROP))
    scaled = (np.asarray(image, np.float32) / np.float32(255.0) - MEAN) / DEVIATION
    return np.ascontiguousarray(scaled.transpose(2, 0, 1))


def fc7_network(state: Mapping[str, Any]) -> Any:
    """(n, 3, 224, 224) → fc7 (n, 4096), evaluating. Layers are numbered as in the weights' names."""
    nn = torch.nn
    sizes_of_layers = [(3, 64, 11, 4, 2), (64, 192, 5, 1, 2)]
    sizes_of_layers += [(192, 384, 3, 1, 1), (384, 256, 3, 1, 1), (256, 256, 3, 1, 1)]
    layers: list[Any] = []
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


if __name__ == "__main__":
    main()
