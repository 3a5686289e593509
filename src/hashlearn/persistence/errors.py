"""The exception for everything that can be wrong with a model file."""

from __future__ import annotations


class PersistenceError(ValueError):
    """A hasher cannot be stored or exported, or a file is damaged, too new, or no model file."""
