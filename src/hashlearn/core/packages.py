"""Optional packages are imported where they are used; the error says how to install them."""

from __future__ import annotations

import re
import shlex
from importlib import import_module, metadata
from typing import Any


def require(module: str, extra: str, purpose: str) -> Any:
    """Import the module, or raise an ImportError that says what to install.

    >>> require("json", "data", "nothing").__name__
    'json'
    >>> require("no_such_module", "onnx", "export")
    Traceback (most recent call last):
    ImportError: export needs no_such_module, which is not installed: pip install 'onnx>=1.17' 'onnxruntime>=1.20'
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        if (error.name or package).partition(".")[0] != package:
            raise  # the package is installed, but something that it needs is not
        raise ImportError(f"{purpose} needs {package}, which is not installed: {installation(extra)}") from None


def installation(extra: str) -> str:
    """The command that installs the packages of an extra. It names these, so that pip need not find hashlearn.

    >>> installation("faiss")
    "pip install 'faiss-cpu>=1.10'"
    """
    try:
        requirements = metadata.requires("hashlearn") or []
    except metadata.PackageNotFoundError:  # run from a checkout that is not installed
        requirements = []
    named = [text.partition(";")[0].strip() for text in requirements if re.search(rf"extra == ['\"]{extra}['\"]", text)]
    return f"pip install {shlex.join(named or [f'hashlearn[{extra}]'])}"
