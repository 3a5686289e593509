"""SUN397: which categories count, AlexNet's fc7 on generated images with untrained weights, and what is refused."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn.experiments import datasets
from hashlearn.experiments.datasets import DataError, MissingDataError, sun397
from hashlearn.experiments.datasets.files import PublishedFile
from hashlearn.experiments.datasets.sun397 import fc7_network, pixels

COUNTS = {"a/abbey": 4, "a/apartment_building/outdoor": 3, "a/apartment_building/indoor": 2, "b/bakery": 5}
# Names and shapes in torchvision's file of weights.
LAYERS = {
    "features.0": (64, 3, 11, 11),
    "features.3": (192, 64, 5, 5),
    "features.6": (384, 192, 3, 3),
    "features.8": (256, 384, 3, 3),
    "features.10": (256, 256, 3, 3),
    "classifier.1": (4096, 9216),
    "classifier.4": (4096, 4096),
    "classifier.6": (1000, 4096),
}


@pytest.fixture
def images(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four categories, of which three have more than two "images"; weights whose content nobody reads."""
    monkeypatch.setattr(sun397, "MORE_THAN", 2)
    monkeypatch.setattr(sun397, "CATEGORIES", 3)
    for category, count in COUNTS.items():
        for k in range(count):
            path = folder / "SUN397" / category / f"sun_{k}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x" * (k + 1))
    (folder / "SUN397" / "ClassName.txt").write_text("/a/abbey\n")
    (folder / "SUN397" / "a" / "abbey" / "readme.txt").write_text("no image")
    use_weights(folder, monkeypatch, b"weights")
    return folder / "SUN397"


def use_weights(folder: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    (folder / "weights.pth").write_bytes(content)
    checksum = f"sha256:{hashlib.sha256(content).hexdigest()}"
    monkeypatch.setattr(sun397, "WEIGHTS", PublishedFile("weights.pth", checksum))


def sizes_as_features(paths: Sequence[Path], weights: Path, progress: Any = None) -> np.ndarray:
    return np.tile(np.array([[path.stat().st_size] for path in paths], np.float32), 4096)


def test_only_large_categories_in_the_order_of_their_names(images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sun397, "compute_fc7", sizes_as_features)
    data = datasets.load("sun397")
    assert data.class_names == ("abbey", "apartment_building/outdoor", "bakery")
    assert data.y.tolist() == [0] * 4 + [1] * 3 + [2] * 5
    assert data.X[:, 0].tolist() == [1, 2, 3, 4, 1, 2, 3, 1, 2, 3, 4, 5]
    assert data.is_query is None
    assert data.features == "fc7"
    assert data.X.shape == (12, 4096)


def test_another_number_of_categories_is_warned_of(images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sun397, "compute_fc7", sizes_as_features)
    monkeypatch.setattr(sun397, "CATEGORIES", 42)
    with pytest.warns(UserWarning, match="3 categories with more than 2 images, the paper's SUN397 has 42"):
        datasets.load("sun397")


def test_missing_folder_says_what_to_do(folder: Path) -> None:
    with pytest.raises(MissingDataError, match="md5 8ca2778205c41d23104230ba66911c7a") as caught:
        datasets.load("sun397")
    assert f"tar -xzf SUN397.tar.gz -C {folder}" in str(caught.value)


def test_folder_without_large_categories(folder: Path) -> None:
    (folder / "SUN397" / "a" / "abbey").mkdir(parents=True)
    with pytest.raises(DataError, match="no category has more than 500 images"):
        datasets.load("sun397")


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Random weights in the layout of torchvision's file; the same 65,537 numbers again and again, to be quick."""
    torch = pytest.importorskip("torch", reason="AlexNet needs torch")
    numbers = torch.randn(65_537, generator=torch.Generator().manual_seed(0))
    state = {}
    for name, shape in LAYERS.items():
        n = math.prod(shape)
        spread = math.sqrt(2.0 / math.prod(shape[1:]))  # keeps the activations' size from layer to layer
        state[f"{name}.weight"] = (numbers * spread).repeat(n // len(numbers) + 1)[:n].reshape(shape).clone()
        state[f"{name}.bias"] = numbers[: shape[0]] * 0.1
    path = tmp_path_factory.mktemp("weights") / "alexnet.pth"
    torch.save(state, path)
    return path, state


def by_hand(state: dict[str, Any], x: Any) -> Any:
    """fc7 out of torch's functions, layer by layer."""
    f = pytest.importorskip("torch").nn.functional

    def convolution(x: Any, name: str, **how: int) -> Any:
        return f.conv2d(x, state[f"features.{name}.weight"], state[f"features.{name}.bias"], **how).clamp(min=0)

    x = f.max_pool2d(convolution(x, "0", stride=4, padding=2), 3, 2)
    x = f.max_pool2d(convolution(x, "3", padding=2), 3, 2)
    for name in ("6", "8", "10"):
        x = convolution(x, name, padding=1)
    x = f.max_pool2d(x, 3, 2).flatten(1)
    for name in ("classifier.1", "classifier.4"):
        x = f.linear(x, state[f"{name}.weight"], state[f"{name}.bias"]).clamp(min=0)
    return x


def test_fc7_layer_by_layer(untrained: tuple[Path, dict[str, Any]]) -> None:
    torch = pytest.importorskip("torch")
    path, state = untrained
    assert sum(tensor.numel() for tensor in state.values()) == 61_100_840
    x = torch.randn((3, 3, 224, 224), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        found, expected = fc7_network(torch.load(path, weights_only=True))(x), by_hand(state, x)
    assert found.shape == (3, 4096)
    assert found.min() == 0.0
    assert 0.2 < (found > 0).float().mean() < 0.8
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_folder_of_images_to_fc7(
    images: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, untrained: tuple[Path, dict[str, Any]]
) -> None:
    image_module = pytest.importorskip("PIL.Image", reason="images need Pillow")
    rng = np.random.default_rng(0)
    for k, path in enumerate(sorted(images.rglob("*.jpg"))):
        shape = [(240, 300), (300, 240), (64, 64)][k % 3]  # wide, high, and smaller than what the network sees
        image = rng.integers(0, 256, (*shape, 3), dtype=np.uint8)
        image_module.fromarray(image).convert("L" if k == 1 else "RGB").save(path)
    (images / "b" / "bakery" / "sun_4.jpg").write_bytes((images / "b" / "bakery" / "sun_0.jpg").read_bytes())
    (folder / "weights.pth").unlink()
    (folder / "weights.pth").symlink_to(untrained[0])
    content = untrained[0].read_bytes()
    checksum = f"sha256:{hashlib.sha256(content).hexdigest()}"
    monkeypatch.setattr(sun397, "WEIGHTS", PublishedFile("weights.pth", checksum))
    heard: list[tuple[str, int, int]] = []
    data = datasets.load("sun397", progress=lambda p: heard.append((p.stage, p.done, p.total)))
    assert data.X.shape == (12, 4096)
    assert heard == [("AlexNet fc7", 12, 12)]
    assert np.isfinite(data.X).all()
    np.testing.assert_allclose(data.X[11], data.X[7], rtol=1e-4, atol=1e-4)
    assert np.abs(data.X[8] - data.X[7]).mean() > 0.01


def test_what_the_network_sees(tmp_path: Path) -> None:
    image_module = pytest.importorskip("PIL.Image", reason="images need Pillow")
    wide = np.zeros((256, 400, 3), np.uint8)
    wide[:, :88] = 255  # the middle 224 of 400 columns start at 88
    wide[:, 88:200, 0] = 255
    image_module.fromarray(wide).save(tmp_path / "wide.png")
    seen = pixels(tmp_path / "wide.png")
    assert seen.shape == (3, 224, 224)
    assert seen.dtype == np.float32
    np.testing.assert_allclose(seen[0, :, :112], (1 - 0.485) / 0.229, rtol=1e-5)
    np.testing.assert_allclose(seen[0, :, 112:], -0.485 / 0.229, rtol=1e-5)
    np.testing.assert_allclose(seen[2], -0.406 / 0.225, rtol=1e-5)


def test_damaged_image_is_named(tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image", reason="images need Pillow")
    (tmp_path / "bad.jpg").write_bytes(b"\xff\xd8\xff nonsense")
    with pytest.raises(DataError, match=r"bad\.jpg: cannot be read as an image"):
        pixels(tmp_path / "bad.jpg")
