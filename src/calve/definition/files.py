"""The files of a definition: those named by ``$S3{path}``, and those that its steps read when they run."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Protocol

from calve.definition.document import Node
from calve.definition.problems import Problems
from calve.errors import CalveError, RequestInvalid

SCRIPT = "S3"
"""The name of the param that interpolation sees in ``$S3{path}``."""

SCRIPT_MISSING = "script_missing"
"""A warning, except for a definition to push, because a version contains its scripts."""
_REFERENCE = re.compile(r"(?<!\$)((?:\$\$)*)\$S3\{([^}]*)\}")
_DRIVE = re.compile(r"[a-zA-Z]:|[a-zA-Z][a-zA-Z0-9+.\-]*://|~")


class Scripts(Protocol):
    """Reads a file that a definition names."""

    def read(self, path: str) -> str | None:
        """Return the text of a file; None if there is no such file."""
        ...


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that a step will read."""

    text: str
    is_in_project: bool = True
    """False if it was found beside the definition, where a worker does not look."""
    modified_at: int = field(default=0, compare=False)
    """When it was last modified, in milliseconds."""


class StepFiles(Protocol):
    """Finds the files that steps read when they run, so that their references can be checked before a run."""

    def find(self, path: str) -> FoundFile | None:
        """Return the file; None if there is none.

        Raises:
            RequestInvalid: it cannot be read, or is too large to be checked.
        """
        ...


def readable(files: StepFiles | None) -> Callable[[str], str | None]:
    """Return a function that reads a file of a step; it returns None if the file cannot be read here."""

    def read(path: str) -> str | None:
        found = file_here(files, path)
        return found.text if found else None

    return read


def file_here(files: StepFiles | None, path: str) -> FoundFile | None:
    """Return a file that a step reads; None if it cannot be read here: the run will report why."""
    try:
        return files.find(path) if files else None
    except RequestInvalid:
        return None


def is_inside(path: str) -> bool:
    """Tell whether a relative path stays inside its folder, without looking at the file system."""
    if not path.strip() or _DRIVE.match(path) or "\\" in path or any(ord(letter) < 32 for letter in path):
        return False
    parts = PurePosixPath(path)
    return not parts.is_absolute() and ".." not in parts.parts


def inline(document: Node, scripts: Scripts, problems: Problems) -> Node:
    """Return the document with each ``$S3{path}`` replaced by the file's text; a missing file is a warning."""
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
            message = f"{path!r} is not the path of a file in the folder of the definition"
            problems.add(
                node, "script_outside", message, hint="name a file in the folder of the definition or below it"
            )
            return match[0]
        try:
            found = scripts.read(path)
        except CalveError as error:
            problems.add(node, error.code, error.message, hint=error.remedy)
            return match[0]
        if found is None:
            problems.warn(
                node,
                SCRIPT_MISSING,
                f"there is no file {path} in the folder of the definition",
                hint="it is required to push the workflow",
            )
            return match[0]
        return escaped + found

    return _REFERENCE.sub(replace, text)


LARGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class ScriptFolder:
    """Reads files of one folder, and never one outside it, even through links."""

    root: Path

    def read(self, path: str) -> str | None:
        """Return the text of a file; None if there is no such file."""
        root = self.root.resolve()
        try:
            file = (root / path).resolve()
            if not file.is_relative_to(root):
                raise RequestInvalid(
                    f"{path} is a link to a file outside of {root}", remedy="Put the file itself there."
                )
            if not file.is_file():
                return None
            return _text(file, path)
        except (OSError, UnicodeError, ValueError) as error:
            raise RequestInvalid(f"{path} cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """Finds the files that steps read: in the project, as a worker does, or else beside the definition."""

    project: Path
    beside: Path
    """The folder of the definition."""

    def find(self, path: str) -> FoundFile | None:
        """Return the file; None if there is none.

        Raises:
            RequestInvalid: it cannot be read, or is too large to be checked.
        """
        for folder in dict.fromkeys((self.project, self.beside)):
            try:
                file = folder / Path(path).expanduser()
                if file.is_file():
                    return FoundFile(
                        _text(file, path),
                        is_in_project=folder == self.project or Path(path).is_absolute(),
                        modified_at=file.stat().st_mtime_ns // 1_000_000,
                    )
            except (OSError, UnicodeError, ValueError, RuntimeError) as error:
                raise RequestInvalid(f"{path} cannot be read: {error}") from error
        return None


def _text(file: Path, path: str) -> str:
    if file.stat().st_size > LARGEST:
        raise RequestInvalid(f"{path} is larger than {LARGEST:,} bytes")
    return file.read_text(encoding="utf-8")
