"""Step one of two-step hashing: codes that preserve a target, one bit at a time (Algorithm 1)."""

from __future__ import annotations

from hashlearn.inference.all_rows import infer_codes
from hashlearn.inference.descent import BitRecord, InferenceReport
from hashlearn.inference.groups import infer_group_codes, merges_rows
from hashlearn.inference.presets import PRESETS, Passes
from hashlearn.inference.starts import STARTS, start_codes

__all__ = [
    "PRESETS",
    "STARTS",
    "BitRecord",
    "InferenceReport",
    "Passes",
    "infer_codes",
    "infer_group_codes",
    "merges_rows",
    "start_codes",
]
