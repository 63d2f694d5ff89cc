"""The base class and field types of the models: names and ids, durations, and tags."""

import re
from collections import Counter
from enum import StrEnum
from functools import cache, lru_cache
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

_FIRST = ("id", "name", "type", "value", "expression", "cron", "interval")
"""The fields that are written first."""
_LAST = ("transition", "params", "steps")


def _rank(name: str) -> int:
    if name in _FIRST:
        return _FIRST.index(name)
    return len(_FIRST) + (_LAST.index(name) + 1 if name in _LAST else 0)


@lru_cache(maxsize=1_000)
def _ordered(names: tuple[str, ...]) -> list[str]:
    """Return field names in the order in which they are written."""
    return sorted(names, key=_rank)


@cache
def _defaults(model: type[BaseModel]) -> dict[str, Any]:
    """Return the defaults of a model; cached, because pydantic computes them on each access, which is slow."""
    return {name: field.get_default(call_default_factory=True) for name, field in model.model_fields.items()}


class Model(BaseModel):
    """A frozen model that refuses unknown fields; fields with their default value are not written."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        """Treat null as missing, as Maestro does."""
        if isinstance(value, dict):
            return {key: item for key, item in value.items() if item is not None or key not in cls.model_fields}
        return value

    @model_serializer(mode="wrap")
    def _without_defaults(self, inner: SerializerFunctionWrapHandler) -> dict[str, Any]:
        defaults = _defaults(type(self))
        written = inner(self)
        return {
            name: written[name]
            for name in _ordered(tuple(written))
            # The type says which model it is, so it is always written.
            if name == "type" or getattr(self, name) != defaults[name]
        }

    def as_json(self) -> dict[str, Any]:
        """Return the value in JSON's types."""
        return self.model_dump(mode="json")


ID_LENGTH = 128
NAME_LENGTH = 256
SEPARATOR = "__"
"""Separates a step from its param in an expression, so that no name may contain it."""

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
        raise PydanticCustomError("name_empty", "{what} cannot be empty", {"what": what})
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
    """Return a workflow id if it is valid."""
    return _no_suffix(_checked(value, _ID, ID_LENGTH, "an id"), "the id")


def check_name(value: str) -> str:
    """Return a name if it is valid."""
    return _no_suffix(_checked(value, _NAME, NAME_LENGTH, "a name"), "the name")


def check_reference(value: str) -> str:
    """Return the id of a step or the name of a param if it is valid."""
    checked = _checked(value, _REFERENCE, ID_LENGTH, "a step id or param name")
    if SEPARATOR in checked:
        raise PydanticCustomError(
            "name_malformed", "{value} contains __, which separates a step from its param", {"value": repr(value)}
        )
    return checked


WorkflowId = Annotated[str, AfterValidator(check_id)]
Name = Annotated[str, AfterValidator(check_name)]
Title = Annotated[str, Field(max_length=NAME_LENGTH)]
Description = Annotated[str, Field(max_length=16_384)]
StepId = Annotated[str, AfterValidator(check_reference)]


def _is_number_or_text(value: Any) -> int | str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise PydanticCustomError("not_a_duration", "must be a whole number or a text such as 2 hours")
    return value


ParsableLong = Annotated[int | str, BeforeValidator(_is_number_or_text)]
"""A number, or a text with a number, a duration or a reference: ``"3600"``, ``"2 hours"``, ``"${param}"``."""


class Namespace(StrEnum):
    """The origin of a tag."""

    SYSTEM = "SYSTEM"
    RUNTIME = "RUNTIME"
    JOB_TEMPLATE = "JOB_TEMPLATE"
    NOTEBOOK_TEMPLATE = "NOTEBOOK_TEMPLATE"
    USER_DEFINED = "USER_DEFINED"
    PLATFORM = "PLATFORM"


class Tag(Model):
    """A tag; unknown keys become its attributes."""

    name: Name
    namespace: Namespace | None = None
    attributes: dict[str, Any] = Field(default_factory=dict)

    @property
    def is_bare(self) -> bool:
        """Tell whether the tag has nothing but a name."""
        return self.namespace is None and not self.attributes


def _from_text(value: Any) -> Any:
    match value:
        case str():
            return {"name": value}
        case dict():
            known = {key: value[key] for key in ("name", "namespace") if key in value}
            extra = {key: item for key, item in value.items() if key not in {"name", "namespace", "attributes"}}
            return {**known, "attributes": {**value.get("attributes", {}), **extra}}
        case _:
            return value


def _as_text(tag: Tag) -> Any:
    return tag.name if tag.is_bare else tag.as_json()


def _are_distinct(tags: tuple[Tag, ...]) -> tuple[Tag, ...]:
    counts = Counter(tag.name for tag in tags)
    twice = sorted(name for name, count in counts.items() if count > 1)
    if twice:
        raise PydanticCustomError("tag_twice", "names the tag {name} twice", {"name": twice[0]})
    return tags


_Tag = Annotated[Tag, BeforeValidator(_from_text), PlainSerializer(_as_text, return_type=Any)]
Tags = Annotated[tuple[_Tag, ...], ..., AfterValidator(_are_distinct)]
