"""Which model made the codes. Codes of two models must not be compared, though their widths may be equal.

A model is named by its digest, the SHA-256 that `hashlearn.persistence.fingerprint` computes. Codes in an array have no
place for it, and not every file and table holds it. Such codes are accepted.
"""

from __future__ import annotations

import re
from typing import Any

DIGEST = re.compile(r"[0-9a-f]{64}")
SHOWN_DIGITS = 12


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
