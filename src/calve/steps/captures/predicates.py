"""Ranges of changed values as a condition in Spark's SQL. Pure."""

from collections.abc import Mapping
from typing import Any

from calve.lake import quoted

Range = Mapping[str, Any]
"""A range as a capture reports it."""

_TYPED = {"date": "DATE", "timestamp": "TIMESTAMP_NTZ", "timestamptz": "TIMESTAMP"}


def predicate(ranges: Mapping[str, Range]) -> str:
    """Return a condition that holds for every changed row; ``true`` where nothing is known of any column."""
    parts = [part for column, found in ranges.items() if (part := _of_column(column, found)) != "true"]
    return " AND ".join(f"({part})" if " OR " in part else part for part in parts) or "true"


def _of_column(column: str, found: Range) -> str:
    name = quoted(*column.split("."))
    within = "" if found["empty"] else _within(name, found)
    if within == "true":
        return within
    parts = [within] if within else []
    if found["has_nulls"]:
        parts.append(f"{name} IS NULL")
    if found["has_nans"]:
        parts.append(f"isnan({name})")
    return " OR ".join(parts) or "false"


def _within(name: str, found: Range) -> str:
    """Return the condition that a value lies in a range; an end that is not known, or cannot be spelt, is open."""
    kind = found.get("type", "")  # captures of earlier versions did not say
    lower, upper = _literal(kind, found["lower"]), _literal(kind, found["upper"])
    if lower and upper:
        return f"{name} = {lower}" if lower == upper else f"{name} BETWEEN {lower} AND {upper}"
    if lower:
        return f"{name} >= {lower}"
    return f"{name} <= {upper}" if upper else "true"


def _literal(kind: str, value: Any) -> str:
    """Return a value as a literal of its type, so that nothing is compared as text by mistake; empty if there is none.

    Spark has no type for a time of day, for nanoseconds and for uuids.
    """
    if value is None:
        return ""
    match kind:
        case "int" | "long":
            return str(int(value))
        case "boolean":
            return "true" if value else "false"
        case "float" | "double":
            return f"CAST('{float(value)!r}' AS DOUBLE)"
        case "string":
            return _text(value)
        case "date" | "timestamp" | "timestamptz":
            return f"{_TYPED[kind]} '{value}'"
        case "binary":
            return f"X'{value}'"
        case _ if kind.startswith("decimal"):
            return f"CAST('{value}' AS {kind.upper()})"
        case _ if kind.startswith("fixed"):
            return f"X'{value}'"
        case _:
            return ""


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
