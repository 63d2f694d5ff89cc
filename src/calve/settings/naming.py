"""How keys are named, in the file and in the environment; and what to say of one that is unknown."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

from pydantic import ValidationError

from calve.errors import SettingsInvalid
from calve.settings.alerts import EmailChannel, SlackChannel, WebhookChannel
from calve.settings.fields import Section
from calve.settings.settings import Settings

FILE = "calve.toml"
PREFIX = "CALVE_"
_FREE = (("catalogs", "NAME", "KEY"), ("connections", "NAME"))  # what people name themselves
_CLIENT = ("CALVE_URL", "CALVE_TOKEN")  # the server that commands ask
_CHANNELS = ("alerts", "channels")
_NAMED = 3
"""How many parts the name of a channel has."""

Key = tuple[str, ...]


def known_keys(section: type[Section] = Settings) -> Iterator[Key]:
    """Yield the path of every key that has a fixed name."""
    for name, field in section.model_fields.items():
        kind = field.annotation
        if section is Settings and name == "project":
            continue  # where the file lies says it
        if isinstance(kind, type) and issubclass(kind, Section):
            yield from ((name, *below) for below in known_keys(kind))
        else:
            yield (name,)


def variable_of(key: Key) -> str:
    """Return the variable that overrides a key."""
    return PREFIX + "__".join(key).upper()


def unknown_key(key: Key, origin: str) -> SettingsInvalid:
    """Say that a key is unknown, and which one may have been meant."""
    known = [".".join(each) for each in (*known_keys(), *_FREE, *_channel_keys(key))]
    return _unknown(".".join(key), known, key, origin, where=origin)


def unknown_variable(key: Key, variable: str) -> SettingsInvalid:
    """Say that a variable is unknown, and which one may have been meant."""
    known = [*(variable_of(each) for each in (*known_keys(), *_FREE)), *_CLIENT]
    return _unknown(variable, known, key, variable, where="environment")


def explained(error: ValidationError, origins: Mapping[Key, str], file: Path | None) -> SettingsInvalid:
    """Name the key, where it stands, and what is wrong with it."""
    first = error.errors()[0]
    path = _as_written(tuple(str(part) for part in first["loc"]))
    origin = origins.get(path) or str(file or "the defaults")
    if first["type"] == "extra_forbidden":
        return unknown_key(path, origin)
    key = ".".join(path)
    problem = first["msg"].removeprefix("Value error, ")
    return SettingsInvalid(f"{key + ': ' if key else ''}{problem} ({origin}).", key=key, origin=origin)


def _as_written(path: Key) -> Key:
    """Return the path of a key as it stands in the file: pydantic adds the type of a channel to it."""
    return (*path[:_NAMED], *path[_NAMED + 1 :]) if path[:2] == _CHANNELS else path


def _channel_keys(key: Key) -> Iterator[Key]:
    """Yield the keys that the channel of an unknown one may have."""
    if key[:2] == _CHANNELS:
        for kind in (EmailChannel, SlackChannel, WebhookChannel):
            yield from ((*key[:_NAMED], name) for name in kind.model_fields)


def _unknown(written: str, known: list[str], key: Key, origin: str, where: str) -> SettingsInvalid:
    near = get_close_matches(written, known, n=1, cutoff=0.5)
    return SettingsInvalid(
        f"{written} is not a setting ({where}).",
        remedy=f"Did you mean {near[0]}?" if near else f"Known are: {', '.join(known)}.",
        key=".".join(key),
        origin=origin,
    )
