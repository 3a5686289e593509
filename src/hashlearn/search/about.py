"""`About`: what codes say about themselves, as one JSON text in every file and engine.

Codes of two models must not be compared, though their widths may be equal. A model is named by its digest, the SHA-256
that `hashlearn.persistence.fingerprint` computes. Codes in a plain array have no place for it and are accepted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hashlearn.search.fields import checked_field_types
from hashlearn.search.ids import INTEGER, WORDS, checked_id_type
from hashlearn.search.interface import require_n_bits

DIGEST = re.compile(r"[0-9a-f]{64}")
SHOWN_DIGITS = 12


@dataclass(frozen=True)
class About:
    """The number of bits, the type of the ids, the model and the fields of codes.

    ``id_type`` is "int64" or "string"; UUIDs are text. ``model`` is a digest. ``fields`` are more columns by name and
    type: "text", "integer", "real" or "boolean", or Python's `str`, `int`, `float` and `bool`. None means that nothing
    is known, or that anything will do.

    >>> About(64, "string", fields={"year": int})
    About(n_bits=64, id_type='string', model=None, fields={'year': 'integer'})
    """

    n_bits: int
    id_type: str | None = None
    model: str | None = None
    fields: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        checked = {
            "n_bits": require_n_bits(self.n_bits),
            "id_type": None if self.id_type is None else checked_id_type(self.id_type),
            "model": checked_model(self.model),
            "fields": None if self.fields is None else checked_field_types(self.fields),
        }
        vars(self).update(checked)

    @property
    def n_bytes(self) -> int:
        """The bytes of one packed code."""
        return -(-self.n_bits // 8)

    def to_json(self) -> str:
        """The text that files and engines hold.

        >>> About(8, "int64", fields={}).to_json()
        '{"n_bits": 8, "id_type": "int64", "model": null, "fields": {}}'
        """
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: Any) -> About:
        """Read what `to_json` wrote; ValueError for anything else."""
        try:
            parts = json.loads(text)
            if set(parts) != {"n_bits", "id_type", "model", "fields"}:
                raise ValueError("its entries are not those of About")
            return cls(**parts)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"it does not describe codes: {error}") from None

    def for_new_codes(self) -> About:
        """The same, with integers as ids and no fields where anything will do."""
        return About(self.n_bits, self.id_type or INTEGER, self.model, self.fields or {})

    def require(self, other: About, described: str) -> None:
        """Refuse these stored codes unless they are what ``other`` asks for; ``described`` names where they are."""
        there = f"{described} is there already, with"
        if self.n_bits != other.n_bits:
            raise ValueError(f"{there} codes of {self.n_bits} bits and not n_bits={other.n_bits}")
        if other.id_type not in (None, self.id_type):
            raise ValueError(f"{there} ids that are {WORDS[str(self.id_type)]} and not {WORDS[str(other.id_type)]}")
        if other.fields is not None and other.fields != self.fields:
            raise ValueError(
                f"{there} {_listed(self.fields) or 'no more columns'}, and fields asks for "
                f"{_listed(other.fields) or 'none'}"
            )
        require_same_model(self.model, other.model, described)


def checked_model(model: Any) -> str | None:
    """The digest of a model, or None."""
    if model is None or (isinstance(model, str) and DIGEST.fullmatch(model)):
        return model
    raise ValueError(
        "model must be the digest of a hasher, 64 hexadecimal digits as hashlearn.persistence.fingerprint returns; got "
        f"{model if isinstance(model, str) else type(model).__name__!r}"
    )


def require_same_model(
    stored: Any, model: str | None, where: str, *, stored_name: str | None = None, model_name: str | None = None
) -> None:
    """Refuse ``stored`` codes of another model; None is an unknown model, which may be any. Names of files are shown.

    >>> require_same_model("a" * 64, "b" * 64, "the file")
    Traceback (most recent call last):
    ValueError: the file has codes of model aaaaaaaaaaaa, not of bbbbbbbbbbbb; encode its rows again with this model
    """
    stored, model = checked_model(stored), checked_model(model)
    if stored is not None and model is not None and stored != model:
        raise ValueError(
            f"{where} has codes of model {_shown(stored, stored_name)}, not of {_shown(model, model_name)}; encode its "
            "rows again with this model"
        )


def _shown(model: str, name: str | None) -> str:
    return model[:SHOWN_DIGITS] + (f" ({name})" if name else "")


def _listed(fields: Mapping[str, str] | None) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in (fields or {}).items())
