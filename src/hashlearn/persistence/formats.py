"""Versions of the model file. Files of older versions are upgraded step by step while they are read.

To change what a file holds, increase FORMAT_VERSION, add a function to `UPGRADES` that converts the version before, and
add files of the new version to tests/persistence/golden. The old files stay there. A new hasher needs no new version:
older readers refuse its name, and still read the files of all other hashers. The optional key
"promise" needs none either: a reader that does not know it reads the same hasher.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hashlearn.persistence.container import PersistenceError

FORMAT = "hashlearn"
FORMAT_VERSION = 3


def _with_scaling(model: dict[str, Any]) -> dict[str, Any]:
    """Format 1 had no scaling of features and no arranged codewords."""
    if model.get("method") not in ("two_step", "tsh"):
        return model
    parameters, fitted = model.get("parameters"), model.get("fitted")
    if not isinstance(parameters, dict) or not isinstance(fitted, dict):
        return model  # refused where it is read
    if model["method"] == "two_step":
        parameters = {**parameters, "scaling": "none", "arrange": False}
    return {**model, "parameters": parameters, "fitted": {**fitted, "scaling_": "none"}}


def _unchanged(model: dict[str, Any]) -> dict[str, Any]:
    """Format 2 had no sharpened scores; kernel ridge without them is stored as before."""
    return model


# From the description of a model in format k to format k + 1.
UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: _with_scaling, 2: _unchanged}


def up_to_date(model: dict[str, Any], stored_version: str) -> dict[str, Any]:
    """``model`` as this version would have written it."""
    if not stored_version.isdecimal() or not stored_version.isascii() or len(stored_version) > 9:
        raise PersistenceError(f"the format version must be a whole number, got {stored_version!r}")
    number = int(stored_version)
    if number > FORMAT_VERSION:
        raise PersistenceError(
            f"this model has format {number}, written by a newer hashlearn; this one reads formats up to "
            f"{FORMAT_VERSION}; install a newer hashlearn"
        )
    while number < FORMAT_VERSION:
        if number not in UPGRADES:
            raise PersistenceError(f"format {number} is not one that hashlearn ever wrote")
        model, number = UPGRADES[number](model), number + 1
    return model
