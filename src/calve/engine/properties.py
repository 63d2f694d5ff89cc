"""Properties of workflows, changed apart from any version."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from pydantic import ValidationError

from calve.definition.model.workflow import Properties
from calve.engine.model import Json
from calve.errors import RequestInvalid

Change = Callable[[Json], Json]


def changed(changes: Mapping[str, Any], reset: Collection[str] = ()) -> Change:
    """Return what puts changes over properties; what is None stays as it is, what is named in ``reset`` goes.

    Raises:
        RequestInvalid: a property is unknown or makes no sense, or is both changed and reset.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    if both := sorted(given.keys() & set(reset)):
        raise RequestInvalid(f"{', '.join(both)} cannot be set and reset at once.")
    written = _checked(given)
    return lambda before: {name: value for name, value in {**before, **written}.items() if name not in set(reset)}


def tagged(tag: str | Mapping[str, Any]) -> Change:
    """Return what adds a tag, or replaces the one of that name.

    Raises:
        RequestInvalid: it is no tag.
    """
    (written,) = _checked({"tags": [tag]})["tags"]
    return lambda before: {**before, "tags": [*_without(before, _name(written)), written]}


def untagged(name: str) -> Change:
    """Return what takes a tag away, if it is there."""
    return lambda before: {**before, "tags": _without(before, name)}


def _checked(given: Mapping[str, Any]) -> dict[str, Any]:
    try:
        properties = Properties.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise RequestInvalid(f"The property {place} makes no sense: {first['msg']}.", property=place) from None
    written = properties.as_json()
    return {name: written[name] for name in given if name in written}


def _without(properties: Json, name: str) -> list[Any]:
    return [tag for tag in properties.get("tags", ()) if _name(tag) != name]


def _name(tag: Any) -> str:
    return str(tag if isinstance(tag, str) else tag["name"])
