"""Damaged and forged files, for fuzzing and for tests. Forged ones carry right checksums over wrong contents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from hashlearn.core.container import BLANK, DTYPES

ODD = (
    None,
    True,
    -1,
    0,
    1,
    2,
    -(2**31),
    2**31 - 1,
    2**31,
    2**60,
    2**63,
    2**64,
    0.5,
    5e-324,
    1e200,
    1e308,
    {"$": "float", "value": "nan"},
    {"$": "float", "value": "inf"},
    "",
    "x",
    "float",
    [],
    [[]],
    {},
    {"$": "array"},
    {"$": "x"},
)
# Numbers that arithmetic and indices do not expect, at most as wide as the array that they go into.
ODD_REALS = (np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1e-300, 1e18, 1e39, 1e154, 1e200, 1e300, 1.7e308, -1e308)
SMALL = (-2, -1, 0, 1, 2, 7, 8, 127)
ODD_INTEGERS = (*SMALL, 2**15, -(2**30), 2**30, -(2**31), 2**31 - 1, 2**31, -(2**63), 2**62, 2**63 - 1)


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
    """One to three values of the header, or numbers of an array, replaced, and all digests made anew."""

    def edit(header: dict[str, Any], model: dict[str, Any], payload: bytearray) -> None:
        for _ in range(rng.integers(1, 4)):
            way = rng.integers(7)
            names = [name for name in header if name != "__metadata__"]
            name = names[rng.integers(len(names))]
            if way == 0 and payload:
                at = int(rng.integers(len(payload)))
                payload[at : at + 8] = rng.integers(0, 256, len(payload[at : at + 8]), dtype=np.uint8).tobytes()
            elif way in (1, 2):
                _edit_array(header[name], payload, rng)
            elif way == 3:
                edit_somewhere(header[name], rng)
            elif way == 4:
                other = names[rng.integers(len(names))]
                header[name], header[other] = header[other], header[name]
            else:
                edit_somewhere(model, rng)

    return rewritten(data, edit)


def rewritten(data: bytes, edit: Callable[[dict[str, Any], dict[str, Any], bytearray], Any]) -> bytes:
    """The file after ``edit(header, model, payload)`` changed them in place, with digests as a forger has them."""
    length = int.from_bytes(data[:8], "little")
    header, payload = json.loads(data[8 : 8 + length]), bytearray(data[8 + length :])
    kind = "model" if "model" in header["__metadata__"] else "index"
    model = json.loads(header["__metadata__"][kind])
    edit(header, model, payload)
    sums = model.get("sha256")
    for name, entry in header.items():
        offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
        if isinstance(sums, dict) and isinstance(offsets, list) and [type(o) for o in offsets] == [int, int]:
            sums[name] = hashlib.sha256(payload[offsets[0] : offsets[1]]).hexdigest()
    header["__metadata__"] |= {kind: json.dumps(model), "sha256": BLANK.decode()}
    first = {"__metadata__": {"sha256": BLANK.decode(), **header["__metadata__"]}}
    text = json.dumps(first | header, separators=(",", ":")).encode()
    blank = len(text).to_bytes(8, "little") + text
    return blank.replace(BLANK, hashlib.sha256(blank).hexdigest().encode(), 1) + payload


def forged_index(data: bytes, rng: np.random.Generator) -> bytes:
    """An index file with values of its description, ids or codes replaced, and its digests made anew."""

    def edit(header: dict[str, Any], about: dict[str, Any], body: bytearray) -> None:
        for _ in range(rng.integers(1, 4)):
            way = rng.integers(4)
            if way == 0 and body:
                at = 8 * int(rng.integers(max(1, len(body) // 8)))
                number = ODD_INTEGERS[rng.integers(len(ODD_INTEGERS))]
                body[at : at + 8] = number.to_bytes(8, "little", signed=number < 0)[: len(body[at : at + 8])]
            elif way == 1 and body:
                body[int(rng.integers(len(body)))] ^= 1 << int(rng.integers(8))
            else:
                edit_somewhere(header["codes"] if way == 2 else about, rng)

    return rewritten(data, edit)


def odd_array(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """An array with a few odd numbers in it, or of another dtype, length or shape."""
    way = rng.integers(8)
    if way == 0:
        kinds = ("f2", "f4", ">f8", "f8", "i1", "i4", "i8", "u1", "u8", "c16", "b1", "U3", "S3", "m8[s]")
        return array.astype(kinds[rng.integers(len(kinds))])
    if way == 1 and array.ndim:
        return array[: rng.integers(len(array) + 1)]
    if way == 2 and array.ndim:
        return np.concatenate([array, array[: rng.integers(len(array) + 1)]])
    if way == 3:
        return (array.reshape(-1), array[None], array.reshape(*array.shape, 1), array.T)[rng.integers(4)]
    out = array.copy()
    put_odd(out, rng)
    return out


def put_odd(array: np.ndarray, rng: np.random.Generator) -> None:
    """Replace one number, a run of them or all by odd numbers, in place."""
    if array.size == 0 or array.dtype.kind not in "fiu":
        return
    flat = array.reshape(-1)
    first = int(rng.integers(len(flat)))
    last = (first + 1, first + 1, int(rng.integers(first, len(flat))) + 1, len(flat))[rng.integers(4)]
    with np.errstate(all="ignore"):
        if array.dtype.kind == "f":
            flat[first:last] = np.array(ODD_REALS[rng.integers(len(ODD_REALS))]).astype(array.dtype)
        else:
            flat[first:last] = np.array(ODD_INTEGERS[rng.integers(len(ODD_INTEGERS))]).astype(array.dtype)


def _edit_array(entry: Any, payload: bytearray, rng: np.random.Generator) -> None:
    """Odd numbers into the bytes of one array, or another dtype for them."""
    try:
        first, last = entry["data_offsets"]
        dtype = np.dtype(DTYPES[entry["dtype"]])
        numbers = np.frombuffer(bytes(payload[first:last]), dtype).copy()
    except (KeyError, TypeError, ValueError):
        return  # an earlier edit spoiled the entry
    if rng.random() < 0.1:
        same = [name for name, code in DTYPES.items() if np.dtype(code).itemsize == dtype.itemsize]
        entry["dtype"] = same[rng.integers(len(same))]
    put_odd(numbers, rng)
    payload[first:last] = numbers.tobytes()


def edit_somewhere(tree: Any, rng: np.random.Generator) -> None:
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
