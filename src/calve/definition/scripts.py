"""``$S3{path}``: texts that stand in files beside the definition; and the files that steps read when they run."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Protocol

from calve.definition.document import Node
from calve.definition.problems import Problems
from calve.errors import CalveError, RequestInvalid

SCRIPT = "S3"
"""What interpolation takes for the name of a param in ``$S3{path}``."""

_REFERENCE = re.compile(r"(?<!\$)((?:\$\$)*)\$S3\{([^}]*)\}")
_DRIVE = re.compile(r"[a-zA-Z]:|[a-zA-Z][a-zA-Z0-9+.\-]*://|~")


class Scripts(Protocol):
    """Gives the text of a file that a definition names."""

    def read(self, path: str) -> str | None:
        """Return the file's text, or nothing if there is no such file."""
        ...


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that a step will read."""

    text: str
    is_in_project: bool = True
    """Not so where it was found beside the definition, and a worker would look elsewhere."""
    modified_at: int = field(default=0, compare=False)
    """When it was written, in milliseconds."""


class StepFiles(Protocol):
    """Finds the files that steps read when they run, so that their references can be checked before."""

    def find(self, path: str) -> FoundFile | None:
        """Return the file; None if there is none.

        Raises:
            RequestInvalid: it cannot be read, or is too large to be checked.
        """
        ...


def readable(files: StepFiles | None) -> Callable[[str], str | None]:
    """Return what gives the text of a file that a step reads; None for one that cannot be read here."""

    def read(path: str) -> str | None:
        found = file_here(files, path)
        return found.text if found else None

    return read


def file_here(files: StepFiles | None, path: str) -> FoundFile | None:
    """Return a file that a step reads; None if it cannot be read here: the run will say what is wrong with it."""
    try:
        return files.find(path) if files else None
    except RequestInvalid:
        return None


def is_inside(path: str) -> bool:
    """Tell whether a path stays in the folder it is relative to, judged by its letters alone."""
    if not path.strip() or _DRIVE.match(path) or "\\" in path or any(ord(letter) < 32 for letter in path):
        return False
    parts = PurePosixPath(path)
    return not parts.is_absolute() and ".." not in parts.parts


def inline(document: Node, scripts: Scripts, problems: Problems) -> Node:
    """Return the document with each ``$S3{path}`` replaced by the file's text; a missing file is warned of."""
    match document.value:
        case str() as text if "$S3{" in text:
            return document.made(_replaced(text, document, scripts, problems))
        case list() as items:
            return document.made([inline(item, scripts, problems) for item in items])
        case dict() as entries:
            return document.made({key: inline(item, scripts, problems) for key, item in entries.items()})
        case _:
            return document


def _replaced(text: str, node: Node, scripts: Scripts, problems: Problems) -> str:
    def replace(match: re.Match[str]) -> str:
        escaped, path = match.groups()
        if not is_inside(path):
            message = f"{path!r} does not lead to a file beside the definition"
            problems.add(node, "script_outside", message, hint="name a file in the folder of the definition or below")
            return match[0]
        try:
            found = scripts.read(path)
        except CalveError as error:
            problems.add(node, error.code, error.message, hint=error.remedy)
            return match[0]
        if found is None:
            problems.warn(
                node, "script_missing", f"there is no file {path} beside the definition", hint="a push needs it"
            )
            return match[0]
        return escaped + found

    return _REFERENCE.sub(replace, text)
