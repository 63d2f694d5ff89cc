"""Names and ids: what they may look like."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

ID_LENGTH = 128
NAME_LENGTH = 256
SEPARATOR = "__"
"""Stands between a step and its param in an expression, and so in no name."""

_ID = re.compile(r"[_a-zA-Z0-9][.\-_a-zA-Z0-9]*")
_REFERENCE = re.compile(r"[_a-zA-Z][.\-_a-zA-Z0-9]*")
_NAME = re.compile(r"[\w .,:@&='(){}$+\[\]\-/\\]+", re.ASCII)

RESERVED_PARAMS = frozenset(
    {spelt for word in ("maestro", "scheduler", "util", "params") for spelt in (word, word.capitalize(), word.upper())}
    | {
        "AUTH_BLOB",
        "AUTH_DATA",
        "AUTH_ACTING_ON_BEHALF_OF_BLOB",
        "AUTH_TRIGGERING_ON_BEHALF_OF_BLOB",
        "AUTHORIZED_MANAGERS",
    }
)
"""Names that no param may have."""


def _checked(value: str, pattern: re.Pattern[str], length: int, what: str) -> str:
    if not value.strip():
        raise PydanticCustomError("name_empty", "{what} may not be empty", {"what": what})
    if len(value) > length:
        raise PydanticCustomError(
            "name_too_long",
            "{what} has {length} characters, more than {limit}",
            {"what": what, "length": len(value), "limit": length},
        )
    if not pattern.fullmatch(value):
        raise PydanticCustomError(
            "name_malformed",
            "{what} {value} is not of the form {form}",
            {"what": what, "value": repr(value), "form": pattern.pattern},
        )
    if value.lower().startswith("maestro_"):
        raise PydanticCustomError(
            "name_reserved",
            "{what} {value} starts with maestro_, which is reserved",
            {"what": what, "value": repr(value)},
        )
    return value


def _no_suffix(value: str, what: str) -> str:
    if value.lower().endswith("_maestro"):
        raise PydanticCustomError(
            "name_reserved",
            "{what} {value} ends with _maestro, which is reserved",
            {"what": what, "value": repr(value)},
        )
    return value


def check_id(value: str) -> str:
    """Return a workflow id, or refuse it."""
    return _no_suffix(_checked(value, _ID, ID_LENGTH, "an id"), "the id")


def check_name(value: str) -> str:
    """Return a name that people read, or refuse it."""
    return _no_suffix(_checked(value, _NAME, NAME_LENGTH, "a name"), "the name")


def check_reference(value: str) -> str:
    """Return the id of a step or the name of a param, or refuse it."""
    checked = _checked(value, _REFERENCE, ID_LENGTH, "a step id or param name")
    if SEPARATOR in checked:
        raise PydanticCustomError(
            "name_malformed", "{value} holds __, which stands between step and param", {"value": repr(value)}
        )
    return checked


WorkflowId = Annotated[str, AfterValidator(check_id)]
Name = Annotated[str, AfterValidator(check_name)]
Title = Annotated[str, Field(max_length=NAME_LENGTH)]
Description = Annotated[str, Field(max_length=16_384)]
StepId = Annotated[str, AfterValidator(check_reference)]
