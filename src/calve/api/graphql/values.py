"""What GraphQL's types are made of: numbers that its own are too small for, JSON, who asks."""

from typing import NewType

import strawberry
from strawberry.scalars import JSON
from strawberry.schema.config import StrawberryConfig

from calve.api.services import Caller

Info = strawberry.Info[Caller, None]
"""What a resolver is given: ``info.context`` is who asks."""

Listening = strawberry.Info[dict[str, Caller], None]
"""What a subscription is given: ``info.context["caller"]`` is who listens."""

Long = NewType("Long", int)
"""A whole number of 64 bits: instances, times in milliseconds."""

CONFIG = StrawberryConfig(
    scalar_map={
        Long: strawberry.scalar(name="Long", description="A whole number of 64 bits.", serialize=int, parse_value=int)
    }
)

__all__ = ["CONFIG", "JSON", "Info", "Listening", "Long"]
