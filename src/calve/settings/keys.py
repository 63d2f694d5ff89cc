"""The names of keys in the file and in the environment, and the errors for unknown ones."""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from calve.environment import PREFIX
from calve.errors import SettingsInvalid
from calve.settings.alerts import EmailChannel, SlackChannel, WebhookChannel
from calve.settings.fields import Section
from calve.settings.settings import Settings

FILE = "calve.toml"
_FREE = (("catalogs", "NAME", "KEY"), ("connections", "NAME"))  # the tables whose keys users choose
_CLIENT = ("CALVE_URL", "CALVE_TOKEN")  # the server that commands use
_CHANNELS = ("alerts", "channels")
_NAMED = 3
"""The number of parts in the path of an alert channel: alerts, channels and its name."""

_EXPECTED = {
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "a quoted string",
    "path_type": "a quoted path",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a table: write [{key}]",
    "model_type": "a table: write [{key}]",
}
"""The expected value for each of pydantic's error types."""
_SECRETIVE = re.compile(r"^(?:secrets|connections)\.|password|secret|token|key$")
_HEADER = re.compile(r"\s*\[\[?(?P<table>[^\]]+)\]")
_ASSIGNED = re.compile(r"""\s*(?P<key>(?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_PART = re.compile(r""""([^"]*)"|'([^']*)'|([\w-]+)""")

Key = tuple[str, ...]


def known_keys(section: type[Section] = Settings) -> Iterator[Key]:
    """Yield the path of every key that has a fixed name."""
    for name, field in section.model_fields.items():
        kind = field.annotation
        if section is Settings and name == "project":
            continue  # the location of the file sets it
        if isinstance(kind, type) and issubclass(kind, Section):
            yield from ((name, *below) for below in known_keys(kind))
        else:
            yield (name,)


def variable_of(key: Key) -> str:
    """Return the variable that overrides a key."""
    return PREFIX + "__".join(key).upper()


def unknown_key(key: Key, origin: str) -> SettingsInvalid:
    """Return the error for an unknown key, with the likeliest known one; for a top-level key that may be a table."""
    keys = [*known_keys(), *_FREE, *_channel_keys(key)]
    tables = dict.fromkeys(each[:1] for each in keys) if len(key) == 1 else {}
    return _unknown(".".join(key), [".".join(each) for each in (*tables, *keys)], key, origin, where=origin)


def unknown_variable(key: Key, variable: str) -> SettingsInvalid:
    """Return the error for an unknown variable, with the likeliest known one."""
    known = [*(variable_of(each) for each in (*known_keys(), *_FREE)), *_CLIENT]
    return _unknown(variable, known, key, variable, where="environment")


def explained(error: ValidationError, origins: Mapping[Key, str], file: Path | None) -> SettingsInvalid:
    """Return the error with the key, its location, and the problem; a misspelt key first, since it may cause others."""
    first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    path = _as_written(tuple(str(part) for part in first["loc"]))
    origin = _origin(path, origins, file)
    if first["type"] == "extra_forbidden":
        return unknown_key(path, origin)
    key = ".".join(path)
    return SettingsInvalid(f"{key + ': ' if key else ''}{_problem(first, key)} ({origin}).", key=key, origin=origin)


def _origin(path: Key, origins: Mapping[Key, str], file: Path | None) -> str:
    """Return the location of a key: the variable, or the file with the line."""
    variable = next((origins[key] for key in origins if key[: len(path)] == path), None)
    if variable or file is None:
        return variable or "the defaults"
    line = line_of(file.read_text(encoding="utf-8"), path)
    return str(file) if line is None else f"{file}, line {line}"


def line_of(text: str, path: Key) -> int | None:
    """Return the line of a key in a TOML text, or else of the nearest table above it; None if neither is there."""
    table: Key = ()
    best: tuple[int, int] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = found = _parts(header["table"])
        elif assigned := _ASSIGNED.match(line):
            found = (*table, *_parts(assigned["key"]))
        else:
            continue
        if path[: len(found)] == found and (best is None or len(found) > best[0]):
            best = (len(found), number)
    return None if best is None else best[1]


def _parts(dotted: str) -> Key:
    return tuple(quoted or other or plain for quoted, other, plain in _PART.findall(dotted))


def _problem(error: ErrorDetails, key: str) -> str:
    """Return the problem with a value: what is expected, and what was found."""
    kind, context, given = error["type"], error.get("ctx", {}), error["input"]
    if kind in _EXPECTED:
        return f"must be {_EXPECTED[kind].format(key=key)}, not {_shown(given, key)}"
    match kind:
        case "missing":
            return "is missing"
        case "greater_than_equal":
            return f"must be at least {context['ge']}, not {given}"
        case "greater_than":
            return f"must be more than {context['gt']}, not {given}"
        case "less_than_equal":
            return f"must be at most {context['le']}, not {given}"
        case "literal_error" | "enum":
            return f"must be {context['expected']}, not {_shown(given, key)}"
        case "union_tag_not_found":
            return f"needs a {context['discriminator'].strip(chr(39))}"
        case "union_tag_invalid":
            return f"{context['tag']} is not a type: use one of {context['expected_tags']}"
        case _:
            return error["msg"].removeprefix("Value error, ")


def _shown(given: object, key: str) -> str:
    """Return a short form of a value; what may be secret is not shown."""
    match given:
        case dict():
            return "a table"
        case list() | tuple():
            return "a list"
        case _:
            return "this" if _SECRETIVE.search(key) else repr(given)[:60]


def _as_written(path: Key) -> Key:
    """Return the path of a key as it is in the file: pydantic adds the type of a channel to it."""
    return (*path[:_NAMED], *path[_NAMED + 1 :]) if path[:2] == _CHANNELS else path


def _channel_keys(key: Key) -> Iterator[Key]:
    """Yield the keys that the channel of an unknown key may have."""
    if key[:2] == _CHANNELS:
        for kind in (EmailChannel, SlackChannel, WebhookChannel):
            yield from ((*key[:_NAMED], name) for name in kind.model_fields)


def _unknown(written: str, known: list[str], key: Key, origin: str, where: str) -> SettingsInvalid:
    near = get_close_matches(written, known, n=1, cutoff=0.5)
    return SettingsInvalid(
        f"{written} is not a setting ({where}).",
        remedy=f"Did you mean {near[0]}?" if near else f"Known settings: {', '.join(known)}.",
        key=".".join(key),
        origin=origin,
    )
