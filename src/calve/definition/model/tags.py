"""Tags: names that group workflows and steps, and limit how many of them run at once."""

from collections import Counter
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer
from pydantic_core import PydanticCustomError

from calve.definition.model.base import Model
from calve.definition.model.names import Name


class Namespace(StrEnum):
    """Who gave the tag."""

    SYSTEM = "SYSTEM"
    RUNTIME = "RUNTIME"
    JOB_TEMPLATE = "JOB_TEMPLATE"
    NOTEBOOK_TEMPLATE = "NOTEBOOK_TEMPLATE"
    USER_DEFINED = "USER_DEFINED"
    PLATFORM = "PLATFORM"


class Tag(Model):
    """A tag; what is not a field of it is an attribute."""

    name: Name
    namespace: Namespace | None = None
    attributes: dict[str, Any] = Field(default_factory=dict)

    @property
    def is_bare(self) -> bool:
        """Tell whether the name is all there is."""
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
