"""Values for the names in SQL, written as literals where the names stand. Pure.

Spark could be given them apart from the text, but Iceberg's parser loses them on Spark Connect (apache/iceberg#16625).
Only names in code are replaced, and quotes and backslashes in texts are escaped, so a value stays a value.
"""

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from calve.steps.failures import fatal
from calve.steps.sql.statements import Statement

_COLON = re.compile(r"\\:|:(?P<name>[^\W\d]\w*)")
_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"})
_LONG = 2**63


def bound(statement: Statement, values: Mapping[str, Any]) -> str:
    """Return a statement with literals for its names."""
    if not statement.names:
        return statement.sql

    def replaced(match: re.Match[str]) -> str:
        name = match["name"]
        return ":" if name is None else literal(values[name], name)

    return _COLON.sub(replaced, statement.template)


def lengths(statement: Statement, values: Mapping[str, Any]) -> list[int]:
    """Return how long the literals are that stand for a statement's names, in their order."""
    names = (statement.sql[start + 1 : end] for start, end in statement.spots)
    return [len(literal(values[name], name)) for name in names]


def literal(value: Any, name: str) -> str:
    """Return a value as Spark's SQL writes it.

    Raises:
        StepFailed: SQL has no such value.
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case int() if -_LONG <= value < _LONG:
            return f"({value})" if value < 0 else str(value)
        case float():
            return f"{value!r}D" if math.isfinite(value) else f"double('{value}')"
        case Decimal() if value.is_finite():
            return f"({value:f}BD)"
        case str():
            return f"'{value.translate(_ESCAPES)}'"
        case list() | tuple():
            return f"array({', '.join(literal(item, name) for item in value)})"
        case Mapping():
            pairs = [literal(part, name) for pair in value.items() for part in pair]
            return f"map({', '.join(pairs)})"
        case _:
            raise fatal(f"parameters.{name} is a {type(value).__name__}, which SQL has no literal for.")
