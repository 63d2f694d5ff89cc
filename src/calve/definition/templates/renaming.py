"""Give the steps of a template ids of their own, wherever they are named."""

import re
from collections.abc import Iterable
from typing import Any

_CAPTURE_STEP = "capture_step"
_ID_FIELDS = frozenset({"id", "predecessors", _CAPTURE_STEP})
"""Keys whose text is the id of a step."""


def prefixed(prefix: str, step_id: str) -> str:
    """Return the id that a template's step has in a workflow."""
    return f"{prefix}_{step_id}"


def renamed(value: Any, ids: Iterable[str], prefix: str) -> Any:
    """Return plain JSON in which steps have prefixed ids, in edges and in texts that refer to them too.

    Texts refer to a step as ``${step.param}``, ``step__param`` and ``getFromStep('step', …)``.
    """
    names = "|".join(re.escape(step_id) for step_id in sorted(ids, key=len, reverse=True))
    pattern = re.compile(
        rf"(?P<before>\$\{{|(?<![\w.$-])(?=(?:{names})__)|getFrom\w+\(\s*['\"])(?P<id>{names})(?=\.|__|['\"])"
    )
    return _Renaming(frozenset(ids), prefix, pattern).of(value)


class _Renaming:
    def __init__(self, ids: frozenset[str], prefix: str, pattern: re.Pattern[str]) -> None:
        self._ids = ids
        self._prefix = prefix
        self._pattern = pattern

    def of(self, value: Any, key: str = "") -> Any:
        match value:
            case str() if key in _ID_FIELDS and value in self._ids:
                return prefixed(self._prefix, value)
            case str():
                return self._pattern.sub(lambda found: found["before"] + prefixed(self._prefix, found["id"]), value)
            case list():
                return [self.of(item, key) for item in value]
            case dict() if key == "successors":
                return {self._id(name): self.of(item) for name, item in value.items()}
            case dict():
                # The text of a param stands under "value", so what it is called is one level up.
                is_named = key == _CAPTURE_STEP
                return {name: self.of(item, key if is_named else name) for name, item in value.items()}
            case _:
                return value

    def _id(self, name: str) -> str:
        return prefixed(self._prefix, name) if name in self._ids else name
