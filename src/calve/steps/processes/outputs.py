"""The outputs of a program: printed between markers, or written to the file that CALVE_OUTPUT names.

Both hold JSON: ``{"params": {…}, "artifacts": {…}}``; the file may also be plain ``{name: value}``. A param is a plain
value, or Maestro's ``{"value": …, "type": …}``.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Never

from calve.engine import Outcome, State, StepContext
from calve.errors import StepFailed
from calve.steps.failures import fatal, message_of
from calve.steps.processes.folders import ProcessFolder
from calve.steps.processes.supervisor import END_MARKERS, LONGEST_MARKER, PRINTED_LIMIT, START_MARKERS

OUTPUT_LIMIT = PRINTED_LIMIT
"""How many bytes a program may print between markers, and write to its file."""
_PARTS = {"params", "artifacts"}
_PRINTED = "between the output markers"


@dataclass(frozen=True, slots=True)
class ProgramOutputs:
    """The params and artifacts that a program gives the steps after it."""

    params: Mapping[str, Any] = field(default_factory=dict)
    artifacts: Mapping[str, Any] = field(default_factory=dict)

    def then(self, later: "ProgramOutputs") -> "ProgramOutputs":
        """Return both combined; for equal names, ``later`` wins."""
        return ProgramOutputs({**self.params, **later.params}, {**self.artifacts, **later.artifacts})


def with_outputs(outcome: Outcome, read: Callable[[], ProgramOutputs], context: StepContext) -> Outcome:
    """Add a program's outputs to the outcome of its step; outputs that cannot be read fail a step that succeeded."""
    try:
        found = read()
    except StepFailed as failure:
        context.log(f"{message_of(failure)}\n")
        if outcome.state is not State.DONE:
            return outcome
        return replace(outcome, state=State(failure.context["state"]), message=message_of(failure))
    return replace(outcome, outputs={**found.params, **outcome.outputs}, artifacts=found.artifacts)


def read_outputs(folder: ProcessFolder, *more: str) -> ProgramOutputs:
    """Return a process's outputs: printed ones, overridden by those in its file, then by those in ``more`` files.

    Raises:
        StepFailed: some of them are invalid or too large.
    """
    found = ProgramOutputs()
    for path in folder.printed:
        content = _content(partial(_start, path), _PRINTED)
        _decoded(content, _PRINTED)
        printed = MarkedOutput()
        printed.feed(content)
        found = found.then(printed.outputs())
    for name in (folder.output.name, *more):
        content = _content(partial(folder.result, name, OUTPUT_LIMIT + 1), "to the file of CALVE_OUTPUT")
        text = _decoded(content, "to the file of CALVE_OUTPUT")
        found = found.then(parse_outputs(text, "The file of CALVE_OUTPUT") if text.strip() else ProgramOutputs())
    return found


def parse_outputs(text: str, where: str) -> ProgramOutputs:
    """Read outputs from JSON.

    Raises:
        StepFailed: it is not such JSON.
    """
    try:
        document = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise fatal(f"{where} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise fatal(f"{where} is not a map of names and values, but {text.strip()[:80]}")
    parts = document if _has_parts(document) else {"params": document}
    for part in _PARTS:
        if not isinstance(parts.get(part, {}), dict):
            raise fatal(f"{where}: {part} is not a map of names and values.")
    params = {name: _plain(value) for name, value in parts.get("params", {}).items()}
    return ProgramOutputs(params, parts.get("artifacts", {}))


def _has_parts(document: dict[str, Any]) -> bool:
    return bool(document) and set(document) <= _PARTS


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is not a number in JSON")


def _plain(value: Any) -> Any:
    """Return the value of a param in Maestro's form; other values unchanged."""
    if not isinstance(value, dict) or not {"value", "type"} <= set(value):
        return value
    inner = value["value"]
    is_map = str(value["type"]).upper() == "MAP" and isinstance(inner, dict)
    return {name: _plain(item) for name, item in inner.items()} if is_map else inner


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(OUTPUT_LIMIT + 1)


def _content(read: Callable[[], bytes], where: str) -> bytes:
    try:
        content = read()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise fatal(f"What the program wrote {where} cannot be read: {error.strerror}") from error
    if len(content) > OUTPUT_LIMIT:
        raise fatal(f"The program wrote more than {OUTPUT_LIMIT} bytes {where}.")
    return content


def _decoded(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise fatal(f"What the program wrote {where} is not UTF-8: {error.reason}") from error


class MarkedOutput:
    """Reads one stream of a program's output, piece by piece, and keeps what is between markers."""

    def __init__(self) -> None:
        self._rest = b""
        self._block: list[bytes] | None = None
        self._blocks: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> None:
        """Read the next piece of output."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line)
        if self._block is None or self._size > OUTPUT_LIMIT:  # of a long line, only its end could be a marker
            self._rest = self._rest[-LONGEST_MARKER:]

    def outputs(self) -> ProgramOutputs:
        """Return the program's outputs, once all of its output was read.

        Raises:
            StepFailed: they are invalid, too large, or not followed by an end marker.
        """
        self._take(self._rest)
        if self._size > OUTPUT_LIMIT:
            raise fatal(f"The program printed more than {OUTPUT_LIMIT} bytes {_PRINTED}.")
        if self._block is not None:
            raise fatal("The program printed the marker OUTPUT_START, but not OUTPUT_END.")
        found = ProgramOutputs()
        for block in self._blocks:
            text = block.decode("utf-8", "replace")
            found = found.then(parse_outputs(text, f"What was printed {_PRINTED}"))
        return found

    def _take(self, line: bytes) -> None:
        mark = line.strip()
        if self._block is None:
            self._block = [] if mark in START_MARKERS else None
        elif mark in END_MARKERS:
            self._blocks.append(b"\n".join(self._block))
            self._block = None
        else:
            self._size += len(line)
            self._block += [line] if self._size <= OUTPUT_LIMIT else []
