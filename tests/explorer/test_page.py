"""The page on the side of Python: what stands in it, how large it gets, and what is refused."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from hashlearn.explorer import write_page
from hashlearn.explorer.encoding import LARGEST, places
from hashlearn.hashers import LSH
from tests.explorer.pages import CODES, HASHER, IMAGES, LABELS, N_BITS, TEXTS, N, X, data_of, decoded

EVERYTHING: dict[str, Any] = {"texts": TEXTS, "images": IMAGES, "labels": LABELS}


def pictures(data: dict[str, Any]) -> dict[int, np.ndarray]:
    """The thumbnail of each row that has one."""
    from PIL import Image

    held = data["images"]
    order = decoded(data["order"], "<u4") if "order" in data else np.arange(N)
    side, (h, w) = held["columns"], (held["height"], held["width"])
    found = {}
    for slot in range(held["count"]):
        address = held["sheets"][slot // side**2]
        sheet = np.asarray(Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))))
        y, x = divmod(slot % side**2, side)
        found[int(order[slot])] = sheet[y * h : (y + 1) * h, x * w : (x + 1) * w]
    return found


def test_codes_classes_texts_and_images_are_complete(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed")
    page = write_page(HASHER, X, tmp_path / "page.html", **EVERYTHING)
    assert page == (str(tmp_path / "page.html"), (tmp_path / "page.html").stat().st_size, N, N_BITS, N, N)
    data = data_of(tmp_path / "page.html")
    assert (data["count"], data["bits"]) == (N, N_BITS)
    np.testing.assert_array_equal(decoded(data["codes"], "u1").reshape(N, -1), CODES)
    np.testing.assert_array_equal(np.array(data["classes"]["names"])[decoded(data["classes"]["of"], "u1")], LABELS)
    assert data["texts"] == TEXTS
    assert "order" not in data
    found = pictures(data)
    np.testing.assert_array_equal([found[row] for row in range(N)], IMAGES)


def test_items_have_their_ids(tmp_path: Path) -> None:
    write_page(HASHER, X, tmp_path / "page.html", ids=np.arange(N) + 1000)
    assert data_of(tmp_path / "page.html")["ids"] == [str(1000 + row) for row in range(N)]
    with pytest.raises(ValueError, match=f"ids must have {N} entries, one for each row of X, got 3"):
        write_page(HASHER, X, tmp_path / "page.html", ids=["a", "b", "c"])


def test_places_fill_the_map_and_follow_the_first_axis(tmp_path: Path) -> None:
    write_page(HASHER, X, tmp_path / "page.html")
    found = decoded(data_of(tmp_path / "page.html")["places"], "<u2").reshape(N, 2)
    assert found.min(axis=0).tolist() == [0, 0]
    assert found.max(axis=0).tolist() == [LARGEST, LARGEST]
    margins = HASHER.decision_function(X)
    scaled = margins / np.sqrt((margins**2).mean(axis=0))
    first = np.linalg.svd(scaled - scaled.mean(axis=0), full_matrices=False)[0][:, 0]
    order = np.argsort(first)
    steps = np.diff(found[order, 0].astype(int))
    assert (steps >= -1).all() or (steps <= 1).all()


@pytest.mark.parametrize("margins", [np.zeros((3, 4)), np.ones((1, 4)), np.full((5, 1), 1e38), np.eye(3, 1)])
def test_places_where_little_differs(margins: np.ndarray) -> None:
    found = places(margins.astype(np.float32))
    assert found.shape == (len(margins), 2)
    assert (found[:, 1] == LARGEST // 2 + 1).all()


def test_many_rows_are_encoded_block_by_block(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).standard_normal((10_000, 4))
    hasher = LSH(n_bits=9, random_state=0).fit(rows)
    told: list[float] = []
    write_page(hasher, rows, tmp_path / "page.html", progress=lambda now: told.append(now.done))
    assert told == [8192, 10_000]
    np.testing.assert_array_equal(
        decoded(data_of(tmp_path / "page.html")["codes"], "u1").reshape(-1, 2), hasher.encode(rows)
    )


@pytest.mark.parametrize("extra", [8_000, 16_000, 30_000])
@pytest.mark.parametrize("kinds", [("texts",), ("images",), ("texts", "images", "labels")])
def test_the_budget_is_kept_and_used(tmp_path: Path, extra: int, kinds: tuple[str, ...]) -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed")
    noise = np.random.default_rng(0).integers(0, 255, (N, 8, 8), np.uint8)
    given = {"texts": [f"{'long ' * 30}{row}" for row in range(N)], "images": noise, "labels": LABELS}
    path = tmp_path / "page.html"
    max_bytes = write_page(HASHER, X, path).bytes + extra
    page = write_page(HASHER, X, path, max_bytes=max_bytes, **{kind: given[kind] for kind in kinds})
    assert page.bytes == path.stat().st_size <= max_bytes
    assert max_bytes - page.bytes < 8000  # one picture of 64 thumbnails, and what is kept for sentences
    data, said = data_of(path), path.read_text("utf-8")
    order = decoded(data["order"], "<u4") if "order" in data else np.arange(N)
    assert len(set(order.tolist())) == len(order)
    for kind, held in (("texts", page.n_texts), ("images", page.n_images)):
        if kind in kinds and held < N:
            assert (
                f"in the page for {held:,} random items of {N}, because the page was limited to {max_bytes:,}" in said
            )
    for slot, text in enumerate(data.get("texts", [])):
        assert text == given["texts"][order[slot]]
    if "images" in kinds:
        assert all((picture == noise[row]).all() for row, picture in pictures(data).items())
    assert min(page.n_texts if "texts" in kinds else N, page.n_images if "images" in kinds else N) < N


def test_large_images_become_thumbnails(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed")
    large = np.zeros((N, 70, 50, 3), np.uint8)
    large[:, :35, :, 0] = 200
    write_page(HASHER, X, tmp_path / "page.html", images=large, thumbnail=16)
    picture = pictures(data_of(tmp_path / "page.html"))[3]
    assert picture.shape == (14, 10, 3)
    assert picture[:7, :, 0].min() == 200
    assert picture[7:].max() == 0


def test_nothing_in_texts_classes_or_title_breaks_the_page(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>&\u2028\ud800\0"
    path = tmp_path / "page.html"
    write_page(HASHER, X, path, texts=[evil] * N, labels=[evil] * N, title=evil)
    text = path.read_text("utf-8")
    assert "alert(1)</script>" not in text
    assert "<img src=x" not in text
    assert text.count("<script") == 2
    assert data_of(path)["texts"][0].startswith("</script><script>alert(1)</script><!--<img")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"texts": TEXTS[:-1]}, "texts must have 400 entries, one for each row of X, got 399"),
        ({"texts": "text"}, "texts must have 400 entries, one for each row of X, got str"),
        ({"images": IMAGES[:7]}, "images must have 400 entries, one for each row of X, got 7"),
        ({"images": IMAGES / 255.0}, "images must be uint8, 0 to 255, got float64"),
        ({"images": X}, r"images must have shape \(n, h, w\) or \(n, h, w, 3\), got \(400, 64\)"),
        ({"images": [IMAGES[0], IMAGES[0][:3]]}, "images must all have one shape"),
        ({"labels": LABELS[:9]}, "inconsistent numbers of samples: 400 and 9"),
        ({"labels": np.eye(N, dtype=int)}, "labels must be one class for each row"),
        ({"max_bytes": 5000}, "max_bytes must be at least .* for 400 rows of 44 bits, got 5,000; raise it"),
        ({"max_bytes": 40_000, "labels": LABELS}, "max_bytes must be at least"),
        ({"max_bytes": 0}, "max_bytes must be an integer from 1 to 1073741824, got 0"),
        ({"thumbnail": 3}, "thumbnail must be an integer from 4 to 256, got 3"),
    ],
)
def test_bad_input_leaves_the_old_page(tmp_path: Path, given: dict[str, Any], words: str) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")
    with pytest.raises((TypeError, ValueError), match=words):
        write_page(HASHER, X, path, **given)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_rows_that_do_not_fit_the_hasher(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    with pytest.raises(ValueError, match="X has 63 features"):
        write_page(HASHER, X[:, 1:], path)
    with pytest.raises(ValueError, match="X has 0 samples"):
        write_page(HASHER, X[:0], path)
    with pytest.raises(NotFittedError):
        write_page(LSH(n_bits=8), X, path)
    with pytest.raises(FileNotFoundError, match="its folder does not exist"):
        write_page(HASHER, X, tmp_path / "nowhere" / "page.html")
    assert list(tmp_path.iterdir()) == []
