"""Runs the console blocks of a Markdown page as a reader would: in order, in one folder, comparing what is shown.

- A line that starts with ``$ `` begins a command, which goes on until the shell has a whole one. What follows is what
  the reader is told to expect.
- A paragraph that ends in "the file `NAME`:" names the block after it: the block is written to that file.
- ``…`` on a line of its own stands for any lines, within a line for any text.
- Ids, sizes, durations and times differ from run to run. An id stands for one value all over the page.
- A command whose comment is "until Ctrl-C" runs beside those that follow, and is interrupted at the end.
- A command fails if, and only if, the page shows an error for it.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"the file `([\w.-]+)`[^`\n]*:\s*\Z")
_SNAPSHOT = r"\d{15,19}"
_CAPTURE = r"[a-z0-9]{8}"
_CAPTURES = re.compile(rf"\bcapture ({_CAPTURE}) of\b")
_VARYING = (
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d",  # a time
    r"\d+(?:\.\d+)? (?:ms|s|min|h|d)\b(?: \d+ (?:s|min|h))?",  # a duration
    r"\d+(?:\.\d+)? (?:[kMG]i?)?B\b",  # a size
    r"\b\d+\.\d+\.\d+\b",  # a version
)
_ERROR = re.compile(r"^error: |: error: ", re.MULTILINE)
_FOREGROUND_SECONDS = 300
_READY_SECONDS = 60


@dataclass(frozen=True, slots=True)
class File:
    """A file that the reader is told to make."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command that the reader is told to type, and what the page shows for it."""

    line: int
    text: str
    shown: str

    @property
    def is_background(self) -> bool:
        """Tell whether it runs until it is interrupted."""
        return "until Ctrl-C" in self.text

    @property
    def fails(self) -> bool:
        """Tell whether the page shows that it fails."""
        return _ERROR.search(self.shown) is not None


def parts_of(page: str) -> Iterator[File | Command]:
    """Yield what a page tells its reader to do."""
    for block in _FENCE.finditer(page):
        named = _NAMED.search(page[: block.start()])
        first = page.count("\n", 0, block.start()) + 2
        if block[1] == "console":
            yield from _commands(block[2].splitlines(), first)
        elif named:
            yield File(named[1], block[2])


def _commands(lines: list[str], first: int) -> Iterator[Command]:
    starts = []
    at = 0
    while at < len(lines):
        assert lines[at].startswith("$ "), f"line {first + at} is neither a command nor the output of one"
        end = at + 1
        while not _is_whole("\n".join(lines[at:end])[2:]):
            end += 1
            assert end <= len(lines), f"the command in line {first + at} does not end"
        following = next((n for n in range(end, len(lines)) if lines[n].startswith("$ ")), len(lines))
        starts.append(Command(first + at, "\n".join(lines[at:end])[2:], "\n".join(lines[end:following])))
        at = following
    yield from starts


def _is_whole(text: str) -> bool:
    """Tell whether a shell would run this, rather than wait for more."""
    checked = subprocess.run(["bash", "-n", "-c", text], capture_output=True, text=True, check=False)
    return checked.returncode == 0 and "here-document" not in checked.stderr


@dataclass(slots=True)
class Reader:
    """Follows a page in a folder; ``instead`` replaces texts in commands and what they show, such as a port."""

    folder: Path
    environment: Mapping[str, str]
    instead: Mapping[str, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    """The ids of this run by those on the page."""

    def follow(self, page: str, *, leaving_out: Mapping[str, str]) -> int:
        """Do what a page says; return how many commands ran. ``leaving_out`` says why a command is not run."""
        ran = 0
        known = {*re.findall(rf"\b{_SNAPSHOT}\b", page), *_CAPTURES.findall(page)}
        with self._background() as started:
            for part in parts_of(page):
                match part:
                    case File():
                        (self._cwd() / part.name).write_text(part.text, encoding="utf-8")
                    case Command() if part.text.partition("#")[0].strip() in leaving_out:
                        pass
                    case Command() if part.is_background:
                        self._start(part, started)
                        ran += 1
                    case Command():
                        self._run(part, known)
                        ran += 1
        return ran

    def _run(self, command: Command, known: set[str]) -> None:
        script = f'{self._real(command.text)}\ncode=$?; pwd > "$TRANSCRIPT_CWD"; exit $code'
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self._cwd(),
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_FOREGROUND_SECONDS,
            check=False,
        )
        where = f"line {command.line}: $ {command.text}\n\n--- shown\n{command.shown}\n--- printed\n{done.stdout}"
        found = re.fullmatch(self._pattern(command.shown, known), _trimmed(done.stdout))
        assert found, where
        assert bool(done.returncode) == command.fails, f"exit code {done.returncode}; {where}"
        self.ids.update({f"{name}"[3:]: value for name, value in found.groupdict().items()})

    def _pattern(self, shown: str, known: set[str]) -> str:
        """Return a regular expression of what is shown: blanks as wide as they come, ids as they are here."""
        lines = []
        bound: set[str] = set()
        separators = "|".join(["…", "─+", "[ ]+", *sorted(known | self.ids.keys()), *_VARYING])
        for line in _trimmed(self._here(shown)).splitlines():
            if line == "…":
                lines.append(r"(?:[^\n]*\n)*?")
                continue
            tokens = re.split(f"({separators})", line)
            lines.append("".join(self._token(token, known, bound) for token in tokens) + "\n")
        return "".join(lines)

    def _token(self, token: str, known: set[str], bound: set[str]) -> str:
        if token in self.ids:
            return re.escape(self.ids[token])
        if token in known:
            name = f"id_{token}"
            first = token not in bound
            bound.add(token)
            return f"(?P<{name}>{_SNAPSHOT if token.isdigit() else _CAPTURE})" if first else f"(?P={name})"
        if token == "…":
            return r"[^\n]*"
        if token and not token.strip(" "):
            return " +"
        if token and not token.strip("─"):
            return "─+"
        return next((kind for kind in _VARYING if re.fullmatch(kind, token)), re.escape(token))

    def _real(self, text: str) -> str:
        """Return a command with the ids of this run."""
        for there, here in self.ids.items():
            text = text.replace(there, here)
        return self._here(text)

    def _here(self, text: str) -> str:
        for there, here in self.instead.items():
            text = text.replace(there, here)
        return text

    def _cwd(self) -> Path:
        noted = self.folder / ".cwd"
        return Path(noted.read_text().strip()) if noted.exists() else self.folder

    def _environment(self) -> dict[str, str]:
        return {**self.environment, "TRANSCRIPT_CWD": str(self.folder / ".cwd")}

    def _start(self, command: Command, started: list[subprocess.Popen[str]]) -> None:
        """Start a command beside those that follow; wait until it has shown what the page shows."""
        log = self.folder / f".background-{command.line}"
        with log.open("w") as written:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {self._real(command.text)}"],
                cwd=self._cwd(),
                env=self._environment(),
                stdout=written,
                stderr=subprocess.STDOUT,
                text=True,
            )
        started.append(process)
        pattern = self._pattern(command.shown, set())
        end = time.monotonic() + _READY_SECONDS
        while not re.match(pattern, _trimmed(log.read_text(encoding="utf-8"))):
            assert process.poll() is None, f"line {command.line}: it ended: {log.read_text(encoding='utf-8')}"
            assert time.monotonic() < end, f"line {command.line}: not ready: {log.read_text(encoding='utf-8')}"
            time.sleep(0.1)

    @contextmanager
    def _background(self) -> Iterator[list[subprocess.Popen[str]]]:
        """Yield a list of processes, which are interrupted in the end and have to end well."""
        started: list[subprocess.Popen[str]] = []
        try:
            yield started
            for process in started:
                process.send_signal(signal.SIGINT)
                assert process.wait(_READY_SECONDS) in {0, 130}
        finally:
            for process in started:
                process.kill()
                process.wait()


def _trimmed(text: str) -> str:
    """Return a text without blanks at the ends of its lines and without empty lines around it."""
    lines = [line.rstrip() for line in text.splitlines()]
    return "\n".join(lines).strip("\n") + "\n" if any(lines) else ""


def shell_environment(programs: Path) -> dict[str, str]:
    """Return the environment of a reader who has calve's programs on their path and no setting of their own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CALVE_")}  # noqa: TID251 - a reader's shell has one
    return {**kept, "PATH": f"{programs}{os.pathsep}{kept['PATH']}", "NO_COLOR": "1", "COLUMNS": "120"}
