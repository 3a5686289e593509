"""What goes wrong with model files, as one exception."""

from __future__ import annotations


class PersistenceError(ValueError):
    """A hasher that cannot be stored or exported, or a file that is no model of ours, is damaged, or is too new."""
