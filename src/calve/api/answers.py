"""Answers as JSON."""

import json
import math
from typing import Any

from starlette.responses import JSONResponse


class Document(JSONResponse):
    """A JSON document; numbers that JSON does not have are written as text, as Java does."""

    def render(self, content: Any) -> bytes:
        """Return the text; half of a surrogate pair, which older versions let in, is escaped as JSON has it."""
        try:
            text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        except ValueError:
            text = json.dumps(_finite(content), ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace")


def _finite(value: Any) -> Any:
    match value:
        case dict():
            return {key: _finite(one) for key, one in value.items()}
        case list() | tuple():
            return [_finite(one) for one in value]
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
        case _:
            return value
