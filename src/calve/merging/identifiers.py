"""Names in SQL, taken apart, and what may stand after FROM."""

import re

_NAME = re.compile(r"\s*(?:`(?:[^`]|``)+`|\w+)(?:\.(?:`(?:[^`]|``)+`|\w+))*\s*")
_QUERY = re.compile(
    r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*(?:(?:select|with|from|table|values)\b|\()", re.IGNORECASE | re.DOTALL
)
_PART = re.compile(r"`((?:[^`]|``)+)`|([^`.]+)")


def parts(name: str) -> tuple[str, ...]:
    """Return the parts of a dotted name, which may be quoted already.

    Raises:
        ValueError: It is not a name.
    """
    found: list[str] = []
    at = 0
    while True:
        match = _PART.match(name, at)
        if match is None:
            raise ValueError(f"{name!r} is not a name")
        found.append(match[1].replace("``", "`") if match[1] else match[2].strip())
        at = match.end()
        if at == len(name):
            return tuple(found)
        if name[at] != ".":
            raise ValueError(f"{name!r} is not a name")
        at += 1


def selecting(text: str) -> str:
    """Return a query for a table's name, a query, or anything that may follow FROM."""
    if _NAME.fullmatch(text) is None and _QUERY.match(text):
        return text
    return f"SELECT * FROM {text}"
