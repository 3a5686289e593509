"""AlexNet's fc7 with untrained weights, on generated images, and which categories of SUN397 count."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="AlexNet needs torch")
image_module = pytest.importorskip("PIL.Image", reason="images need Pillow")

from benchmarks import sun397  # noqa: E402

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


def test_only_large_categories_in_the_order_of_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sun397, "MORE_THAN", 2)
    counts = {"b/bakery": 5, "a/abbey": 4, "a/apartment_building/outdoor": 3, "a/apartment_building/indoor": 2}
    for category, count in counts.items():
        (tmp_path / category).mkdir(parents=True)
        for k in range(count):
            (tmp_path / category / f"sun_{k}.jpg").touch()
    (tmp_path / "a" / "abbey" / "readme.txt").touch()
    found = sun397.large_categories(tmp_path)
    assert {name: len(paths) for name, paths in found.items()} == {
        "abbey": 4,
        "apartment_building/outdoor": 3,
        "bakery": 5,
    }
    assert [path.name for path in found["abbey"]] == [f"sun_{k}.jpg" for k in range(4)]


def weights() -> dict[str, Any]:
    """Random weights in the layout of torchvision's file; the same 65,537 numbers again and again, to be quick."""
    numbers = torch.randn(65_537, generator=torch.Generator().manual_seed(0))
    state = {}
    for name, shape in LAYERS.items():
        n = math.prod(shape)
        spread = math.sqrt(2.0 / math.prod(shape[1:]))  # keeps the activations' size from layer to layer
        state[f"{name}.weight"] = (numbers * spread).repeat(n // len(numbers) + 1)[:n].reshape(shape).clone()
        state[f"{name}.bias"] = numbers[: shape[0]] * 0.1
    return state


def by_hand(state: dict[str, Any], x: Any) -> Any:
    """fc7 out of torch's functions, layer by layer."""
    f = torch.nn.functional

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


def test_fc7_layer_by_layer() -> None:
    state = weights()
    x = torch.randn((3, 3, 224, 224), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        found, expected = sun397.fc7_network(state)(x), by_hand(state, x)
    assert found.shape == (3, 4096)
    assert found.min() == 0.0
    assert 0.2 < (found > 0).float().mean() < 0.8
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_what_the_network_sees(tmp_path: Path) -> None:
    wide = np.zeros((256, 400, 3), np.uint8)
    wide[:, :88] = 255  # the middle 224 of 400 columns start at 88
    wide[:, 88:200, 0] = 255
    image_module.fromarray(wide).save(tmp_path / "wide.png")
    seen = sun397.pixels(tmp_path / "wide.png")
    assert seen.shape == (3, 224, 224)
    assert seen.dtype == np.float32
    np.testing.assert_allclose(seen[0, :, :112], (1 - 0.485) / 0.229, rtol=1e-5)
    np.testing.assert_allclose(seen[0, :, 112:], -0.485 / 0.229, rtol=1e-5)
    np.testing.assert_allclose(seen[2], -0.406 / 0.225, rtol=1e-5)
