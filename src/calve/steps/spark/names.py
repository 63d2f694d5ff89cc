"""What a name may have meant that Spark does not know: a table of nearly the same name, another catalog."""

import re

from calve.errors import CalveError
from calve.lake import Lake
from calve.steps.spark.failing import condition_of

_UNKNOWN = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE", "CATALOG_NOT_FOUND")
_NAMES = ("relationName", "schemaName", "namespace", "catalogName")
_PART = re.compile(r"`((?:``|[^`])+)`|([^.`]+)")
_CATALOG_AND_MORE = 3
"""How many parts a name has that begins with a catalog."""


def hint(error: BaseException, lake: Lake) -> str:
    """Return what a name in an error of Spark may have meant; nothing where that cannot be told at once."""
    condition = condition_of(error)
    if not condition.startswith(_UNKNOWN):
        return ""
    parts = _parts(error)
    if parts and parts[0] not in lake.catalog_names:
        is_catalog = condition.startswith("CATALOG_NOT_FOUND") or len(parts) >= _CATALOG_AND_MORE
        if is_catalog:
            return f"{parts[0]} is not a catalog; the settings have: {', '.join(lake.catalog_names)}."
    if not parts or not condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
        return ""
    try:
        table = lake.parse(".".join(parts))
        near = lake.catalog(table.catalog).near(table)
    except CalveError:
        return ""
    return f"Did you mean {', '.join(near)}?" if near else ""


def _parts(error: BaseException) -> list[str]:
    """Return the parts of the name that an error is about."""
    find = getattr(error, "getMessageParameters", None)
    given: dict[str, str] = (find() if callable(find) else None) or {}
    name = next((given[key] for key in _NAMES if given.get(key)), "")
    return [(quoted or plain).replace("``", "`") for quoted, plain in _PART.findall(name)]
