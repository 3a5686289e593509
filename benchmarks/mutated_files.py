"""Damaged and forged model files, for fuzzing and for tests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from hashlearn.persistence.header import BLANK

ODD = (
    None,
    True,
    -1,
    0,
    1,
    2**31,
    2**60,
    2**64,
    0.5,
    1e308,
    "",
    "x",
    "float",
    [],
    [[]],
    {},
    {"$": "array"},
    {"$": "x"},
)


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """A few bytes changed, cut out, put in or swapped."""
    out = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(len(out)) if rng.random() < 0.5 else rng.integers(min(len(out), 4096)))
        some = rng.integers(0, 256, rng.integers(1, 9), dtype=np.uint8).tobytes()
        way = rng.integers(5)
        if way == 0:
            out[at] ^= 1 << int(rng.integers(8))
        elif way == 1:
            out[at : at + len(some)] = some
        elif way == 2:
            del out[at : len(out) if rng.random() < 0.5 else at + len(some)]
        elif way == 3:
            out[at:at] = some
        else:
            other = int(rng.integers(len(out)))
            out[at : at + 16], out[other : other + 16] = out[other : other + 16], out[at : at + 16]
        if not out:
            break
    return bytes(out)


def forged(data: bytes, rng: np.random.Generator) -> bytes:
    """One to three values of the header, or bytes of an array, replaced, and all digests made anew."""

    def edit(header: dict[str, Any], model: dict[str, Any], payload: bytearray) -> None:
        for _ in range(rng.integers(1, 4)):
            way = rng.integers(4)
            if way == 0 and payload:
                at = int(rng.integers(len(payload)))
                payload[at : at + 8] = rng.integers(0, 256, len(payload[at : at + 8]), dtype=np.uint8).tobytes()
            elif way == 1:
                names = [name for name in header if name != "__metadata__"]
                _edit_somewhere(header[names[rng.integers(len(names))]], rng)
            else:
                _edit_somewhere(model, rng)

    return rewritten(data, edit)


def rewritten(data: bytes, edit: Callable[[dict[str, Any], dict[str, Any], bytearray], Any]) -> bytes:
    """The file after ``edit(header, model, payload)`` changed them in place, with digests as a forger has them."""
    length = int.from_bytes(data[:8], "little")
    header, payload = json.loads(data[8 : 8 + length]), bytearray(data[8 + length :])
    model = json.loads(header["__metadata__"]["model"])
    edit(header, model, payload)
    sums = model.get("sha256")
    for name, entry in header.items():
        offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
        if isinstance(sums, dict) and isinstance(offsets, list) and [type(o) for o in offsets] == [int, int]:
            sums[name] = hashlib.sha256(payload[offsets[0] : offsets[1]]).hexdigest()
    header["__metadata__"] |= {"model": json.dumps(model), "sha256": BLANK.decode()}
    first = {"__metadata__": {"sha256": BLANK.decode(), **header["__metadata__"]}}
    text = json.dumps(first | header, separators=(",", ":")).encode()
    blank = len(text).to_bytes(8, "little") + text
    return blank.replace(BLANK, hashlib.sha256(blank).hexdigest().encode(), 1) + payload


def _edit_somewhere(tree: Any, rng: np.random.Generator) -> None:
    """Walk down at random; replace, remove or rename what is found."""
    while True:
        keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
        if not keys:
            return
        key = keys[rng.integers(len(keys))]
        if isinstance(tree[key], dict | list) and len(tree[key]) and rng.random() < 0.8:
            tree = tree[key]
            continue
        if rng.random() < 0.1:
            del tree[key]
        elif isinstance(tree[key], int) and rng.random() < 0.3:
            tree[key] += int(rng.integers(-2, 3))
        else:
            other = keys[rng.integers(len(keys))]
            tree[key] = deepcopy(tree[other] if rng.random() < 0.3 else ODD[rng.integers(len(ODD))])
        return
