"""Which code keeps which recall: the frontier, the promise, its certificate and its page; and near-duplicates."""

from __future__ import annotations

from hashlearn.compression.near_duplicates import NearDuplicates, near_duplicates

__all__ = ["NearDuplicates", "near_duplicates"]
