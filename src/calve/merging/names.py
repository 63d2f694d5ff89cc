"""Names in SQL, quoted with backticks."""

import re

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


def quoted(*of: str) -> str:
    """Return the parts as one quoted name."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in of)
