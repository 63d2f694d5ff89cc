"""The formats of times, sizes, numbers and statuses on pages; ``legend`` has the tones of statuses. Pure."""

import json
import re
from datetime import UTC, datetime

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_BRIEF = 300
_CONDITION = re.compile(r"\A\[[A-Z0-9_.]+\] (?=\S)")
_UNITS = ("kB", "MB", "GB", "TB", "PB", "EB")
_SCALES = ((1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M"), (10_000, "k"))


def words(status: object) -> str:
    """Return a status in lower case, with spaces instead of underscores."""
    return str(status).replace("_", " ").lower()


def shown(value: object) -> str:
    """Return the value of a param as text: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def brief(text: str) -> str:
    """Return a text for a list, which shows only the beginning of a long one."""
    return text if len(text) <= _BRIEF else f"{text[:_BRIEF]}…"


def cause(error: str) -> str:
    """Return an error for a list, without the name of the condition with which Spark begins."""
    return brief(_CONDITION.sub("", error))


def since(then: int, now: int) -> str:
    """Return how long ago, or in how long, a time in milliseconds is: ``2 min ago``, ``in 3 h``."""
    distance = abs(now - then)
    if distance < _SECOND:
        return "now"
    return f"{_rough(distance)} ago" if then <= now else f"in {_rough(distance)}"


def _rough(milliseconds: int) -> str:
    for unit, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if milliseconds >= unit:
            return f"{milliseconds // unit} {name}"
    return f"{milliseconds // _SECOND} s"


def duration(milliseconds: float) -> str:
    """Return how long something took: ``28 ms``, ``4.1 s``, ``3 min 20 s``, ``2 h 5 min``, ``3 d 4 h``."""
    whole = round(milliseconds)
    if whole < _SECOND:
        return f"{whole} ms"
    if whole < _MINUTE:
        return f"{whole / _SECOND:.1f} s"
    for unit, name, part, part_name in ((_DAY, "d", _HOUR, "h"), (_HOUR, "h", _MINUTE, "min")):
        if whole >= unit:
            return f"{whole // unit} {name}" + (f" {whole % unit // part} {part_name}" if whole % unit >= part else "")
    rest = whole % _MINUTE // _SECOND
    return f"{whole // _MINUTE} min" + (f" {rest} s" if rest else "")


def size(count: float) -> str:
    """Return a number of bytes: ``812 B``, ``1.1 GB``."""
    if count < 1_000:
        return f"{count:.0f} B"
    number, unit = float(count), "B"
    for unit in _UNITS:  # noqa: B007 - the last one is used after the loop
        number /= 1_000
        if number < 999.5:
            break
    return f"{number:.1f} {unit}" if number < 99.95 else f"{number:.0f} {unit}"


def number(count: float) -> str:
    """Return a number for people: ``2,060,114`` as it is, ``28.8 M`` if it is long."""
    if abs(count) < 10_000_000:
        return f"{count:,}" if isinstance(count, int) else f"{count:,.6g}"
    scale, letter = next(one for one in _SCALES if abs(count) >= one[0])
    return f"{count / scale:,.1f} {letter}"


def moment(milliseconds: int) -> str:
    """Return a time in ISO 8601, in UTC."""
    return datetime.fromtimestamp(milliseconds / 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def clock(milliseconds: int) -> str:
    """Return a time for people, in UTC: ``2026-03-26 06:12``."""
    return datetime.fromtimestamp(milliseconds / 1_000, UTC).strftime("%Y-%m-%d %H:%M")
