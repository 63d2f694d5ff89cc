"""The files beside a definition: those that ``$S3{path}`` names, and those that its steps read when they run."""

from dataclasses import dataclass
from pathlib import Path

from calve.definition.scripts import FoundFile
from calve.errors import RequestInvalid

LARGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class ScriptFolder:
    """Reads files of one folder, and never one outside it, whatever links lie in it."""

    root: Path

    def read(self, path: str) -> str | None:
        """Return the file's text, or nothing if there is no such file."""
        root = self.root.resolve()
        try:
            file = (root / path).resolve()
            if not file.is_relative_to(root):
                raise RequestInvalid(f"{path} is a link that leads out of {root}", remedy="Put the file itself there.")
            if not file.is_file():
                return None
            return _text(file, path)
        except (OSError, UnicodeError, ValueError) as error:
            raise RequestInvalid(f"{path} cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """Finds the files that steps read, where a worker of this project would; else beside the definition."""

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
