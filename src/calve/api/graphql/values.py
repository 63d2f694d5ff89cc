"""Values of GraphQL's types: numbers of 64 bits, JSON, and the caller."""

import inspect
from contextlib import suppress
from typing import Any, NewType, TypeVar

import strawberry
from strawberry.scalars import JSON
from strawberry.schema.config import StrawberryConfig

from calve.api.caller import WebCaller
from calve.errors import RequestInvalid

Info = strawberry.Info[WebCaller, None]
"""The context of a resolver: ``info.context`` is the caller."""

Listening = strawberry.Info[dict[str, WebCaller], None]
"""The context of a subscription: ``info.context["caller"]`` is the caller."""

Long = NewType("Long", int)
"""An integer of 64 bits: instance numbers, times in milliseconds."""


def _long(given: Any) -> int:
    """Return the integer that a caller has sent, as a number or as text.

    Raises:
        RequestInvalid: it is not an integer of 64 bits.
    """
    with suppress(ValueError, TypeError, OverflowError):
        if -(2**63) <= (number := int(given)) < 2**63:
            return number
    raise RequestInvalid(f"{given!r} is not an integer of 64 bits.")


CONFIG = StrawberryConfig(
    scalar_map={
        Long: strawberry.scalar(name="Long", description="An integer of 64 bits.", serialize=int, parse_value=_long)
    }
)

Kind = TypeVar("Kind", bound=type)


def described(kind: Kind) -> Kind:
    """Use the docstrings of a type and its fields as descriptions in the schema."""
    definition: Any = kind.__dict__["__strawberry_definition__"]
    definition.description = definition.description or _first_line(kind)
    for field in definition.fields:
        if field.base_resolver is not None:
            field.description = field.description or _first_line(field.base_resolver.wrapped_func)
    return kind


def _first_line(what: Any) -> str:
    return (inspect.getdoc(what) or "").partition("\n")[0]


__all__ = ["CONFIG", "JSON", "Info", "Listening", "Long", "described"]
