"""Where something was described: the file and line of the user's code."""

import inspect
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, cast

from calve.errors import RequestInvalid

_PACKAGE = __name__.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a Python file."""

    file: str
    line: int

    def __str__(self) -> str:
        """Return it as editors take it, short where the file is below the current folder."""
        path, folder = Path(self.file), Path.cwd()
        return f"{path.relative_to(folder) if path.is_relative_to(folder) else path}:{self.line}"

    def refuse(self, message: str, *, remedy: str = "") -> RequestInvalid:
        """Return the error for something that cannot be described here."""
        return RequestInvalid(f"{self}: {message}", remedy=remedy, file=self.file, line=self.line)


@dataclass(frozen=True, slots=True)
class Unfit:
    """Stands for a value that cannot be part of a definition: building tells why."""

    message: str
    hint: str = ""
    code: str = "wrong_type"


@dataclass(frozen=True, slots=True)
class Described:
    """A part of a definition, in the definition's own words, and where it was described."""

    value: Any
    place: Place


def here() -> Place:
    """Return the line that called into this package."""
    frame = cast("FrameType", inspect.currentframe())
    while _is_ours(frame):
        frame = cast("FrameType", frame.f_back)  # somebody called this package
    return Place(frame.f_code.co_filename, frame.f_lineno)


def _is_ours(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__"))
    return module == _PACKAGE or module.startswith(f"{_PACKAGE}.")
