"""What GraphQL's types are made of: numbers that its own are too small for, JSON, who asks."""

import inspect
from typing import Any, NewType, TypeVar

import strawberry
from strawberry.scalars import JSON
from strawberry.schema.config import StrawberryConfig

from calve.api.caller import WebCaller

Info = strawberry.Info[WebCaller, None]
"""What a resolver is given: ``info.context`` is who asks."""

Listening = strawberry.Info[dict[str, WebCaller], None]
"""What a subscription is given: ``info.context["caller"]`` is who listens."""

Long = NewType("Long", int)
"""A whole number of 64 bits: instances, times in milliseconds."""

CONFIG = StrawberryConfig(
    scalar_map={
        Long: strawberry.scalar(name="Long", description="A whole number of 64 bits.", serialize=int, parse_value=int)
    }
)

Kind = TypeVar("Kind", bound=type)


def described(kind: Kind) -> Kind:
    """Let the schema say of a type and its fields what their docstrings say."""
    definition: Any = kind.__dict__["__strawberry_definition__"]
    definition.description = definition.description or _first_line(kind)
    for field in definition.fields:
        if field.base_resolver is not None:
            field.description = field.description or _first_line(field.base_resolver.wrapped_func)
    return kind


def _first_line(what: Any) -> str:
    return (inspect.getdoc(what) or "").partition("\n")[0]


__all__ = ["CONFIG", "JSON", "Info", "Listening", "Long", "described"]
