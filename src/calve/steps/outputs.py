"""What a program gives back: printed between markers, or written to the file that CALVE_OUTPUT names.

Both hold JSON: ``{"params": {…}, "artifacts": {…}}``; the file may also be plain ``{name: value}``. A param is a plain
value, or Maestro's ``{"value": …, "type": …}``.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Never

from calve.errors import StepFailed
from calve.steps.failures import fatal
from calve.steps.places import Place
from calve.steps.supervisor import PRINTED_LIMIT

LIMIT = PRINTED_LIMIT
"""How many bytes a program may give back in one way."""
_PARTS = {"params", "artifacts"}


@dataclass(frozen=True, slots=True)
class Given:
    """What a program gave back."""

    params: Mapping[str, Any] = field(default_factory=dict)
    artifacts: Mapping[str, Any] = field(default_factory=dict)

    def then(self, later: "Given") -> "Given":
        """Return both, where what came later wins."""
        return Given({**self.params, **later.params}, {**self.artifacts, **later.artifacts})


def given_by(place: Place, *more: str) -> Given:
    """Return what a process gave back: what it printed, then its file, then files that hold more of the same.

    Raises:
        StepFailed: some of it cannot be understood, or is too large.
    """
    found = Given()
    for path in place.printed:
        for block in _blocks(_content(partial(_start, path), "between the output markers")):
            found = found.then(read(block, "What was printed between the output markers"))
    for name in (place.output.name, *more):
        text = _content(partial(place.result, name, LIMIT + 1), "in the file of CALVE_OUTPUT")
        found = found.then(read(text, "The file of CALVE_OUTPUT") if text.strip() else Given())
    return found


def read(text: str, where: str) -> Given:
    """Understand one piece of JSON.

    Raises:
        StepFailed: it is not such JSON.
    """
    try:
        document = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise fatal(f"{where} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise fatal(f"{where} is not a map of names and values, but {text.strip()[:80]}")
    parts = document if _is_in_parts(document) else {"params": document}
    for part in _PARTS:
        if not isinstance(parts.get(part, {}), dict):
            raise fatal(f"{where}: {part} is not a map of names and values.")
    params = {name: _plain(value) for name, value in parts.get("params", {}).items()}
    return Given(params, parts.get("artifacts", {}))


def _is_in_parts(document: dict[str, Any]) -> bool:
    return bool(document) and set(document) <= _PARTS


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is no number of JSON")


def _plain(value: Any) -> Any:
    """Return the value of a param that is written as Maestro writes it, or the value itself."""
    if not isinstance(value, dict) or not {"value", "type"} <= set(value):
        return value
    inner = value["value"]
    is_map = str(value["type"]).upper() == "MAP" and isinstance(inner, dict)
    return {name: _plain(item) for name, item in inner.items()} if is_map else inner


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(LIMIT + 1)


def _content(ask: Callable[[], bytes], where: str) -> str:
    try:
        content = ask()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise fatal(f"What the program gave back {where} cannot be read: {error.strerror}") from error
    if len(content) > LIMIT:
        raise fatal(f"The program gave back more than {LIMIT} bytes {where}.")
    return _decoded(content, where)


def _decoded(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise fatal(f"What the program gave back {where} is not UTF-8: {error.reason}") from error


def _blocks(text: str) -> Iterator[str]:
    """Yield what stands between a start marker and the next end marker."""
    block: list[str] | None = None
    for line in text.split("\n"):
        mark = line.strip()
        if mark.endswith("_OUTPUT_START") and block is None:
            block = []
        elif mark.endswith("_OUTPUT_END") and block is not None:
            yield "\n".join(block)
            block = None
        elif block is not None:
            block.append(line)
    if block is not None:
        raise _unfinished()


def _unfinished() -> StepFailed:
    return fatal("The program printed the marker OUTPUT_START, but OUTPUT_END never came.")
