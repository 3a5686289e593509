"""`MtebModel`: a text encoder followed by a hasher, scored by mteb as any other embedding model.

mteb compares embeddings by ``similarity``. Codes are given to it as signs ±1. Their inner product is n_bits − 2 ·
Hamming distance, eq. (2), so it ranks documents exactly as the Hamming distance does. In an asymmetric search the query
keeps its margins, and the inner product is the score of `hashlearn.search.asymmetric_search`.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.bits import bits_to_signs
from hashlearn.core.arrays import to_numpy
from hashlearn.core.packages import require
from hashlearn.persistence.values import fingerprint
from hashlearn.search.model_digest import SHOWN_DIGITS

PURPOSE = "scoring codes by mteb"


class MtebModel:
    """Codes of texts as a model that ``mteb.evaluate`` takes.

    Parameters
    ----------
    encoder : a sentence-transformers model, a model of mteb, or any object whose ``encode(texts)`` returns one row for
        each text. Prompts and batch sizes of mteb reach the first two only
    hasher : fitted on embeddings of this encoder, never on those of the task's test queries
    asymmetric : compare margins of the query with codes of the documents. False: compare codes by Hamming distance

    Notes
    -----
    mteb orders documents of equal score by their ids. Short codes have many equal scores.

    mteb stores results under the name of the encoder. The kind of the hasher, its bits and its digest are stored as
    experiment settings, so results of two hashers are kept apart.
    """

    def __init__(self, encoder: Any, hasher: Any, *, asymmetric: bool = False) -> None:
        if isinstance(encoder, str) or not callable(getattr(encoder, "encode", None)):  # a string has `encode` too
            raise TypeError(f"encoder must be a model with a method encode(texts), got {encoder!r}")
        if not all(hasattr(hasher, name) for name in ("n_bits", "transform", "decision_function")):
            raise TypeError(
                f"hasher must be a fitted hasher, such as hashlearn.load(path), got {type(hasher).__name__}"
            )
        packages = {base.__module__.partition(".")[0] for base in type(encoder).__mro__}
        if "sentence_transformers" in packages:
            wrappers = require("mteb.models.sentence_transformer_wrapper", "mteb", PURPOSE)
            encoder = wrappers.SentenceTransformerEncoderWrapper(encoder)
        self.encoder, self.hasher, self.asymmetric = encoder, hasher, asymmetric
        self._digest = fingerprint(hasher) or secrets.token_hex()  # results of an unknown hasher are never reused

    def encode(self, inputs: Iterable[Any], *, prompt_type: Any = None, **settings: Any) -> NDArray[np.float32]:
        """Signs ±1 of the texts in mteb's batches, (n, n_bits); margins of queries in an asymmetric search."""
        if hasattr(self.encoder, "mteb_model_meta"):
            embeddings = self.encoder.encode(inputs, prompt_type=prompt_type, **settings)
        else:
            embeddings = self.encoder.encode([text for batch in inputs for text in batch["text"]])
        rows = to_numpy(embeddings)
        if self.asymmetric and prompt_type == "query":
            return np.asarray(self.hasher.decision_function(rows), np.float32)
        return bits_to_signs(self.hasher.transform(rows)).astype(np.float32)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Inner products of all pairs, as a tensor."""
        first, second = self._tensors(embeddings1, embeddings2)
        return first.reshape(-1, first.shape[-1]) @ second.reshape(-1, second.shape[-1]).T

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Inner products row by row, as a tensor."""
        first, second = self._tensors(embeddings1, embeddings2)
        return (first * second).sum(-1)

    @property
    def mteb_model_meta(self) -> Any:
        """What mteb records: the encoder's own entry, with the hasher as experiment settings."""
        meta = require("mteb.models.model_meta", "mteb", PURPOSE)
        base = getattr(self.encoder, "mteb_model_meta", None)
        if base is None:
            kind = type(self.encoder)
            base = meta.ModelMeta.create_empty({"name": f"{kind.__module__}/{kind.__name__}"})
        settings = {
            **(base.experiment_kwargs or {}),
            "hasher": type(self.hasher).__name__,
            "n_bits": int(self.hasher.n_bits),
            "asymmetric": self.asymmetric,
            "digest": self._digest[:SHOWN_DIGITS],
        }
        dot = meta.ScoringFunction.DOT_PRODUCT
        changes = {"experiment_kwargs": settings, "embed_dim": int(self.hasher.n_bits), "similarity_fn_name": dot}
        return base.model_copy(update=changes)

    @staticmethod
    def _tensors(*embeddings: Any) -> list[Any]:
        torch = require("torch", "torch", PURPOSE)
        return [torch.as_tensor(rows, dtype=torch.float32) for rows in embeddings]
