"""Damaged files: how large a metadata file may be, and what is said of one that cannot be believed."""

import reprlib
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from calve.errors import LakeCorrupt
from calve.settings import LakeSettings

MAX_METADATA_BYTES = LakeSettings().max_metadata_bytes
"""How large a metadata file may be, compressed or not, where no settings are at hand."""
_RAW = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    RecursionError,
    StopIteration,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)
"""What code raises that was given other bytes, or other values, than the format has."""


@contextmanager
def decoding(path: str) -> Iterator[None]:
    """Name the file in every error of the code that makes values of its content.

    Raises:
        LakeCorrupt: the content is not what it should be.
    """
    try:
        yield
    except LakeCorrupt as error:
        raise error.in_file(path) from error
    except _RAW as error:
        raise LakeCorrupt(f"{type(error).__name__}: {shown(str(error))}", path=path) from error


def too_large(problem: str, offset: int | None = None) -> LakeCorrupt:
    """Return the error of a file that is larger than metadata may be."""
    return LakeCorrupt(
        problem,
        offset=offset,
        remedy="If the table is meant to be that large, raise lake.max_metadata_bytes in the settings.",
    )


def shown(value: Any) -> str:
    """Return a value as a message may quote it: short, on one line, and without what a terminal obeys."""
    text = value if isinstance(value, str) and value.isprintable() else _SHORT.repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


_LONGEST = 80
_SHORT = reprlib.Repr()
_SHORT.maxlevel = 3
_SHORT.maxstring = _SHORT.maxother = _LONGEST
