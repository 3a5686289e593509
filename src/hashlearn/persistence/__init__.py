"""Fitted hashers as files: one safe file for each model, and ONNX for other runtimes.

A model file is safetensors with a SHA-256 over every byte. Writing it is atomic, and reading it runs no code. The ONNX
graph computes margins and packed bytes from features, and is compared with `encode` before it is written.
"""

from __future__ import annotations

from hashlearn.core.container import PersistenceError
from hashlearn.persistence.model_file import FORMAT_VERSION, describe, load, load_with_description, save
from hashlearn.persistence.onnx_export import OnnxReport, export_onnx
from hashlearn.persistence.values import fingerprint

__all__ = [
    "FORMAT_VERSION",
    "OnnxReport",
    "PersistenceError",
    "describe",
    "export_onnx",
    "fingerprint",
    "load",
    "load_with_description",
    "save",
]
