"""A text encoder followed by a hasher, as one encoder: for evaluators of embeddings, such as mteb's.

The inner product of signs is n_bits − 2 · Hamming distance, so a ranking by it is that of the codes.
With ``margins=True``, for queries, it is that of the asymmetric search. mteb takes such an object once it also has the
metadata that mteb asks for: subclass its ``AbsEncoder`` and call `encode` with the texts of each batch.
"""

import numpy as np


class SignEncoder:
    """``text_model`` is anything whose ``encode(texts)`` returns one row for each text."""

    def __init__(self, text_model, hasher):
        self.text_model, self.hasher = text_model, hasher

    def encode(self, texts, margins=False, **options):
        """Signs ±1, (n, n_bits), or the margins."""
        rows = self.hasher.decision_function(self.text_model.encode(list(texts), **options))
        return rows if margins else np.where(rows >= 0, 1.0, -1.0)
