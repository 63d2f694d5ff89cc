"""The blocks of docs/explain/architecture.md, and the functions of calve that some work calls."""

import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import calve

PAGE = Path(__file__).parents[1] / "docs" / "explain" / "architecture.md"
_SOURCE = str(Path(calve.__file__).parents[1])


def way(heading: str) -> list[str]:
    """Return the functions in the block below a heading, in order."""
    section = PAGE.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"\b(calve\.[\w.]+)$", section.partition("```text\n")[2].partition("```")[0], flags=re.MULTILINE)


def called(work: Callable[[], Any]) -> list[str]:
    """Return the functions of calve that some work calls, in all threads that it starts, by their first call."""
    seen: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(_SOURCE):
            module = ".".join(Path(code.co_filename).relative_to(_SOURCE).with_suffix("").parts)
            seen.setdefault(f"{module}.{code.co_qualname}")

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(seen)
