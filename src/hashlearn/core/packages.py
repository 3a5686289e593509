"""Optional packages are imported where they are used; the error says how to install them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any


def require(module: str, extra: str, purpose: str) -> Any:
    """Import the module, or raise an ImportError that says what to install.

    >>> require("json", "data", "nothing").__name__
    'json'
    >>> require("no_such_module", "data", "downloading")
    Traceback (most recent call last):
    ImportError: downloading needs no_such_module, which is not installed: pip install 'hashlearn[data]'
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        if (error.name or package).partition(".")[0] != package:
            raise  # the package is installed, but something that it needs is not
        raise ImportError(
            f"{purpose} needs {package}, which is not installed: pip install 'hashlearn[{extra}]'"
        ) from None


def is_installed(package: str) -> bool:
    """Whether a package can be imported; it is not imported to find out.

    >>> is_installed("json"), is_installed("no_such_module")
    (True, False)
    """
    return find_spec(package) is not None
