"""What a damaged zip archive raises when it is read; an npz file is one."""

from __future__ import annotations

import zipfile
import zlib

try:
    from lzma import LZMAError
except ImportError:  # a Python without it cannot read such members, and says so with NotImplementedError

    class LZMAError(Exception):  # type: ignore[no-redef]
        """Never raised."""


DAMAGED_ARCHIVE = (
    zipfile.BadZipFile,
    EOFError,
    NotImplementedError,  # an unknown way of packing
    OSError,  # what bz2 raises, and seeking outside the file
    RuntimeError,  # encrypted
    UnicodeDecodeError,  # in the name of a member
    LZMAError,
    zlib.error,
)
