"""Locations in the user's code: the file and line of each part of a description."""

import inspect
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, cast

from calve.errors import RequestInvalid

_PACKAGE = __name__.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class Location:
    """A line of a Python file."""

    file: str
    line: int

    def __str__(self) -> str:
        """Return it as editors accept it, relative if the file is below the current folder."""
        path, folder = Path(self.file), Path.cwd()
        return f"{path.relative_to(folder) if path.is_relative_to(folder) else path}:{self.line}"

    def refuse(self, message: str, *, remedy: str = "") -> RequestInvalid:
        """Return the error for something that cannot be described at this line."""
        return RequestInvalid(f"{self}: {message}", remedy=remedy, file=self.file, line=self.line)


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A value that cannot be part of a definition; ``Workflow.build`` reports why."""

    message: str
    hint: str = ""
    code: str = "wrong_type"


@dataclass(frozen=True, slots=True)
class Described:
    """A part of a definition, as a definition spells it, with its location in the user's code."""

    value: Any
    location: Location


def here() -> Location:
    """Return the line that called into this package."""
    frame = cast("FrameType", inspect.currentframe())
    while _is_ours(frame):
        frame = cast("FrameType", frame.f_back)  # some caller is outside of this package
    return Location(frame.f_code.co_filename, frame.f_lineno)


def _is_ours(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__"))
    return module == _PACKAGE or module.startswith(f"{_PACKAGE}.")
