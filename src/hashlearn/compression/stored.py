"""A certificate and a frontier as JSON inside a model file, and back. A file may be forged, so all is checked."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any, TypeVar

from hashlearn.compression.contenders import FAMILIES, MODES
from hashlearn.compression.promise import LARGEST_CONFIDENCE
from hashlearn.compression.records import Certificate, FrontierRow
from hashlearn.core.names import require_choice
from hashlearn.hashers.base import MAX_BITS
from hashlearn.metrics.neighbors import METRICS

LARGEST_COUNT, LARGEST_REAL = 2**63 - 1, 1e300
Record = TypeVar("Record", Certificate, FrontierRow)
KINDS: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float, int),
    "str": (str,),
    "bool": (bool,),
    "None": (type(None),),
}


def to_json(certificate: Certificate, frontier: tuple[FrontierRow, ...]) -> dict[str, Any]:
    """What `from_json` reads."""
    return {"certificate": asdict(certificate), "frontier": [asdict(row) for row in frontier]}


def from_json(promise: Any) -> tuple[Certificate, tuple[FrontierRow, ...]]:
    """The certificate and the frontier. A ValueError: they are not as `to_json` makes them."""
    if not isinstance(promise, dict) or set(promise) != {"certificate", "frontier"}:
        raise ValueError("a promise must have a certificate and a frontier")
    if not isinstance(promise["frontier"], list):
        raise ValueError("frontier must be a list")
    certificate = _record(Certificate, promise["certificate"])
    frontier = tuple(_record(FrontierRow, row) for row in promise["frontier"])
    _require_possible(certificate)
    for row in frontier:
        _require_names(row.mode, row.family)
        if max(row.recall, row.bound, row.codes_recall, row.codes_bound) > 1.0:
            raise ValueError("recalls and bounds of the frontier must be from 0 to 1")
        if not 1 <= row.bytes_per_row <= MAX_BITS or row.depth == 0:
            raise ValueError(f"bytes and depths of the frontier must be at least 1, and bytes at most {MAX_BITS}")
    return certificate, frontier


def _require_possible(c: Certificate) -> None:
    """Refuse a certificate that `compress` cannot have made."""
    if not (0.0 < c.recall < 1.0 and 0.0 < c.confidence <= LARGEST_CONFIDENCE):
        raise ValueError("recall and confidence must be from 0 to 1")
    if c.promised > c.recall:
        raise ValueError("promised must be at most recall")
    _require_names(c.mode, c.family)
    require_choice(c.metric, "metric", METRICS)
    if not (1 <= c.k <= c.depth <= c.max_depth <= c.n_database <= c.n_rows):
        raise ValueError("k, depth, max_depth, n_database and n_rows must ascend from 1")
    if not c.keep_floats and c.max_depth > c.k:
        raise ValueError("max_depth must be k if floats are not kept")
    if c.n_choosing < 1:
        raise ValueError("n_choosing must be at least 1")
    if len(c.found) != c.k + 1 or min(c.found) < 0 or sum(c.found) != c.n_testing or c.n_testing < 1:
        raise ValueError("found must hold k + 1 counts that add up to n_testing")
    if not (c.bet >= 0.0 and c.bet * c.promised < 1.0) or not (c.growth is None or 0.0 <= c.growth < 10.0):
        raise ValueError("bet or growth is out of range")
    shown = f"depth {c.depth}" if c.kept else "not shown"  # in the words of `hashlearn.compression.testing`
    if f"{c.family}, {-(-c.n_bits // 8)} bytes, {c.mode}: {shown}" not in c.tested:
        raise ValueError("tested must name the code of the promise with its depth")
    if not c.accepted():
        raise ValueError("the promise does not follow from its own numbers")


def _require_names(mode: str, family: str) -> None:
    require_choice(mode, "mode", MODES)
    require_choice(family, "family", FAMILIES)


def _record(kind: type[Record], stored: Any) -> Record:
    known = {field.name: str(field.type) for field in fields(kind)}
    if not isinstance(stored, dict) or set(stored) != set(known):
        raise ValueError(f"a {kind.__name__} must have exactly the fields {', '.join(known)}")
    return kind(**{name: _value(stored[name], known[name], name) for name in known})


def _value(value: Any, kind: str, name: str) -> Any:
    """A stored value of a field with this annotation."""
    if kind.startswith("tuple["):
        item = kind.removeprefix("tuple[").partition(",")[0]
        if isinstance(value, list):
            return tuple(_value(part, item, name) for part in value)
    elif kind == "dict[str, str]":
        if isinstance(value, dict) and all(isinstance(part, str) for part in value.values()):
            return value
    else:
        allowed = tuple(python for part in kind.split(" | ") for python in KINDS[part])
        if isinstance(value, allowed) and (not isinstance(value, bool) or bool in allowed):
            limit = LARGEST_COUNT if isinstance(value, int) else LARGEST_REAL
            if isinstance(value, int | float) and name != "seed" and not 0 <= value <= limit:  # a seed has no limit
                raise ValueError(f"{name} must be from 0 to {limit:.3g}")
            return value
    raise ValueError(f"{name} must be {kind}, got {type(value).__name__}")
