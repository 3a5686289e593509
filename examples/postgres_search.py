"""From nothing to search in PostgreSQL: learn codes for handwritten digits, store them, find the nearest of new ones.

    python examples/postgres_search.py postgresql://localhost/mydatabase

The server needs the extension pgvector; here: pip install '.[postgres]'.
"""

import sys

from sklearn.datasets import load_digits

from hashlearn import TwoStepHasher
from hashlearn.search.about import About
from hashlearn.search.stores import PostgresStore

X, y = load_digits(return_X_y=True)
hasher = TwoStepHasher(n_bits=32, random_state=0).fit(X[:1200], y[:1200])

with PostgresStore.open(sys.argv[1], About(32), table="digits") as store:
    store.upsert(hasher.encode(X[:1200]), ids=range(1200))
    found = store.search(hasher.encode(X[1200:1205]), k=5)

for digit, neighbors in zip(y[1200:1205], found.indices, strict=True):
    print(f"a {digit}: nearest are {y[neighbors]}, rows {neighbors}")
