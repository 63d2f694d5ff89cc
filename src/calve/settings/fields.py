"""The types of settings, and how they are read from text."""

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from ipaddress import ip_network
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class Section(BaseModel):
    """A table of the settings; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def parse_duration(text: str) -> timedelta:
    """Read ``7d``, ``12h``, ``30m``, ``90s`` or ``2w``.

    Raises:
        ValueError: it is none of these.
    """
    match = re.fullmatch(r"\s*(\d+)\s*([smhdw])\s*", text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration like 90s, 30m, 12h, 7d or 2w")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def _duration(value: object) -> object:
    duration = parse_duration(value) if isinstance(value, str) else value
    if duration == timedelta():
        raise ValueError("must be greater than zero")
    return duration


_SIZES = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}


def _size(value: object) -> object:
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"\s*(\d+)\s*(KB|MB|GB|)\s*", value.upper())
    if match is None:
        raise ValueError(f"{value!r} is not a size like 500KB, 4MB or 1GB")
    return int(match[1]) * _SIZES[match[2]]


_NEVER = ("never", "0", 0)


def _age(value: object) -> object:
    return None if value in _NEVER else _duration(value)


def _strings(table: object, prefix: str = "") -> dict[str, str]:
    """Flatten a free-form table: TOML reads ``s3.region = "x"`` as a table in a table."""
    if not isinstance(table, Mapping):
        raise ValueError("must be a table of keys and values")  # noqa: TRY004 - pydantic reports only ValueError
    flat: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            flat |= _strings(value, f"{prefix}{key}.")
        elif isinstance(value, bool):
            flat[prefix + key] = str(value).lower()
        elif isinstance(value, str | int | float):
            flat[prefix + key] = str(value)
        else:
            raise ValueError(f"{prefix}{key} must be a string, a number, true or false")  # noqa: TRY004 - as above
    return flat


def is_range(text: str) -> bool:
    """Tell whether a text is an address or a range of addresses."""
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def words(value: object) -> object:
    """Split a list given by the environment."""
    return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value


def from_json(value: object) -> object:
    """Parse a table, or a list of tables, given by the environment."""
    return json.loads(value) if isinstance(value, str) else value


Strings = Annotated[dict[str, str], BeforeValidator(_strings)]
Words = Annotated[tuple[str, ...], BeforeValidator(words)]
Duration = Annotated[timedelta, BeforeValidator(_duration)]
Size = Annotated[int, BeforeValidator(_size)]
"""Bytes, as a number or with a unit."""
Age = Annotated[timedelta | None, BeforeValidator(_age)]
"""After how long something is deleted; with ``never``, or 0, it is kept."""
