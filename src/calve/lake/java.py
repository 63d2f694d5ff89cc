"""The Java that Spark runs on."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from calve.errors import JavaMissing

SUPPORTED = (17, 21)
_INSTALL = (
    "Install it: apt install openjdk-17-jre-headless (Debian, Ubuntu), "
    "dnf install java-21-openjdk-headless (Fedora), brew install openjdk@21 (macOS); or set JAVA_HOME."
)


@dataclass(frozen=True, slots=True)
class Java:
    """An installed Java."""

    executable: Path
    version: str
    feature: int
    """The 17 of 17.0.15."""

    @property
    def home(self) -> Path:
        """What JAVA_HOME should say."""
        return self.executable.resolve().parent.parent


def find(java_home: Path | None) -> Java:
    """Return the first Java that Spark supports: from JAVA_HOME, else from PATH.

    Raises:
        JavaMissing: there is none; the message names what was found.
    """
    on_path = shutil.which("java")
    candidates = [java_home / "bin" / "java"] if java_home else []
    candidates += [Path(on_path)] if on_path else []
    found: list[str] = []
    for executable in candidates:
        java = _probe(executable)
        if java is not None and java.feature in SUPPORTED:
            return java
        found.append(f"Java {java.version} at {executable}" if java else f"no working Java at {executable}")
    what = "; ".join(dict.fromkeys(found)) or "not found by JAVA_HOME or PATH"
    raise JavaMissing(f"Spark requires Java 17 or 21: {what}.", remedy=_INSTALL, found=found)


def parse_version(text: str) -> tuple[str, int] | None:
    """Parse the output of ``java -version``; Java 8 calls itself 1.8."""
    match = re.search(r'version "(?:1\.)?(\d+)([^"]*)"', text)
    return (match[1] + match[2], int(match[1])) if match else None


def _probe(executable: Path) -> Java | None:
    try:
        said = subprocess.run(  # noqa: S603 - the user's own Java
            [executable, "-version"], capture_output=True, text=True, check=True, timeout=30
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version = parse_version(said.stderr + said.stdout)
    return Java(executable, *version) if version else None
