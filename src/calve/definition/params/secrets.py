"""Secrets: only their names are handled until a step runs, so that no text is shown, logged or stored."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from calve.errors import ParamError
from calve.expressions.java import json_escaped

HIDDEN = "***"
"""What is shown in place of a secret."""

Resolve = Callable[[str], str]
"""Returns the text of a secret by its name."""


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A secret; ``quotings`` is the number of nested JSON texts around it."""

    name: str
    quotings: int = 0

    def __repr__(self) -> str:
        return HIDDEN

    def __format__(self, spec: str) -> str:
        return format(HIDDEN, spec)


@dataclass(frozen=True, slots=True, repr=False)
class SecretText:
    """A text with secrets in it, in parts."""

    parts: tuple[str | Secret, ...]

    def __repr__(self) -> str:
        return "".join(str(part) for part in self.parts)

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)


def joined(parts: Iterable[str | Secret | SecretText]) -> str | SecretText:
    """Return one text, plain unless it contains a secret."""
    flat: list[str | Secret] = []
    for part in parts:
        for piece in part.parts if isinstance(part, SecretText) else (part,):
            if isinstance(piece, str) and flat and isinstance(flat[-1], str):
                flat[-1] += piece
            elif piece:
                flat.append(piece)
    if any(isinstance(part, Secret) for part in flat):
        return SecretText(tuple(flat))
    return "".join(str(part) for part in flat)


def holds_secret(value: Any) -> bool:
    """Tell whether a value contains a secret."""
    match value:
        case Secret() | SecretText():
            return True
        case Mapping():
            return any(holds_secret(member) for member in value.values())
        case list() | tuple():
            return any(holds_secret(member) for member in value)
        case _:
            return False


def shown(value: Any) -> Any:
    """Return a value in JSON's types, with stars for its secrets."""
    return _replaced(value, str)


def reveal(value: Any, resolve: Resolve) -> Any:
    """Return a value with the texts of its secrets; call it only where a step runs.

    Raises:
        ParamError: a secret has no text.
    """

    def revealed(found: Secret | SecretText) -> str:
        parts = (found,) if isinstance(found, Secret) else found.parts
        return "".join(part if isinstance(part, str) else _text(part, resolve) for part in parts)

    return _replaced(value, revealed)


def _replaced(value: Any, replacement: Callable[[Secret | SecretText], str]) -> Any:
    """Return a value in JSON's types, with something else in place of its secrets."""
    match value:
        case Secret() | SecretText():
            return replacement(value)
        case Mapping():
            return {key: _replaced(member, replacement) for key, member in value.items()}
        case list() | tuple():
            return [_replaced(member, replacement) for member in value]
        case _:
            return value


def _text(secret: Secret, resolve: Resolve) -> str:
    found: Any = resolve(secret.name)
    if not isinstance(found, str):
        raise ParamError(f"The secret [{secret.name}] has no text", secret=secret.name)
    text: str = found
    for _ in range(secret.quotings):
        text = json_escaped(text)
    return text


def stored(value: Any) -> Any:
    """Return a value in JSON's types that keeps the names of its secrets, for ``restored``."""
    match value:
        case Secret():
            return {"secret": value.name, "quotings": value.quotings}
        case SecretText():
            return {"parts": [stored(part) for part in value.parts]}
        case Mapping():
            return {"members": {key: stored(member) for key, member in value.items()}}
        case list() | tuple():
            return [stored(member) for member in value]
        case _:
            return value


def restored(value: Any) -> Any:
    """Return the value that ``stored`` gave.

    Raises:
        ParamError: it is malformed.
    """
    match value:
        case {"secret": str(name), "quotings": int(quotings)}:
            return Secret(name, quotings)
        case {"parts": list(parts)}:
            return joined(_part(restored(part)) for part in parts)
        case {"members": dict(members)}:
            return {key: restored(member) for key, member in members.items()}
        case list():
            return [restored(member) for member in value]
        case None | bool() | int() | float() | str():
            return value
        case _:
            raise ParamError("The stored param cannot be read")


def _part(value: Any) -> str | Secret:
    if isinstance(value, str | Secret):
        return value
    raise ParamError("The stored param cannot be read")
