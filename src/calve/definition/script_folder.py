"""The files beside a definition, which ``$S3{path}`` names."""

from dataclasses import dataclass
from pathlib import Path

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
            if file.stat().st_size > LARGEST:
                raise RequestInvalid(f"{path} is larger than {LARGEST:,} bytes")
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeError, ValueError) as error:
            raise RequestInvalid(f"{path} cannot be read: {error}") from error
