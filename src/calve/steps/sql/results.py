"""The rows that a statement returns: counts them, checks an expectation, and turns them into outputs."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time
from decimal import Decimal
from typing import Any

from calve.steps.failures import fatal, user_error

_TRUE = frozenset({"true", "t", "yes", "y", "1"})


@dataclass(slots=True)
class Rows:
    """The rows of a statement, counted and checked as they arrive; only the first ones are kept."""

    columns: Sequence[str]
    limit: int
    """The maximum number of rows to keep."""
    count: int = 0
    kept: list[Sequence[Any]] = field(default_factory=list)
    false: str = ""
    """The first value that is not true, described for an error message."""

    def take(self, rows: Iterable[Sequence[Any]]) -> None:
        """Count rows, and keep the first ones."""
        for row in rows:
            self.count += 1
            if len(self.kept) < self.limit:
                self.kept.append(row)
            if not self.false and (wrong := [name for name, value in self._named(row) if not _is_true(value)]):
                self.false = f"{wrong[0]} of row {self.count}"

    def row(self, number: int) -> dict[str, Any]:
        """Return a kept row as a map from column to value, in JSON's types."""
        return {name: plain(value) for name, value in self._named(self.kept[number])}

    def _named(self, row: Sequence[Any]) -> Iterable[tuple[str, Any]]:
        return zip(self.columns, row, strict=True)


def check_expectation(expect: str | None, rows: Rows | None) -> None:
    """Check that the rows meet the expectation of the step, if it has one.

    Raises:
        StepFailed: they do not.
    """
    if expect is None:
        return
    if rows is None:
        raise fatal(f"expect is {expect}, but the last statement returns no rows.")
    if expect == "any_row" and not rows.count:
        raise user_error("The last statement returned no row, but at least one was expected.")
    if expect == "no_row" and rows.count:
        raise user_error(
            f"The last statement gave {rows.count:,} rows, and none was expected: the first is {shown(rows)}."
        )
    if expect == "all_true" and rows.false:
        raise user_error(f"{rows.false} is not true, and every value was expected to be.")


def result_outputs(fetch: str, rows: Rows | None, max_rows: int) -> dict[str, Any]:
    """Return the outputs that ``fetch`` asks for; NULL becomes an empty text, because params have no null.

    Raises:
        StepFailed: there are more rows than ``max_rows``, or the statement does not return rows.
    """
    if fetch == "none":
        return {}
    if rows is None:
        raise fatal(f"fetch is {fetch}, but the last statement returns no rows.")
    if fetch == "rows":
        if rows.count > max_rows:
            raise fatal(
                f"The last statement gave {rows.count:,} rows, and max_rows is {max_rows:,}.",
                remedy="Select fewer, or raise max_rows.",
            )
        return {"rows": json.dumps([rows.row(number) for number in range(rows.count)], ensure_ascii=False)}
    first = rows.row(0) if rows.count else {}
    if fetch == "row":
        return {"row": {name: "" if value is None else value for name, value in first.items()}}
    return {"value": _text(next(iter(first.values()), None))}


def shown(rows: Rows) -> str:
    """Return a short form of the first row for messages."""
    return ", ".join(f"{name} = {_text(value)}"[:80] for name, value in list(rows.row(0).items())[:5])


def plain(value: Any) -> Any:
    """Convert a database value to a JSON type.

    A decimal becomes a number if a double holds it exactly, else text; dates and times become ISO 8601 text; bytes
    become hexadecimal text.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal():
            return _number(value)
        case date() | time():
            return value.isoformat()
        case bytes() | bytearray() | memoryview():
            return bytes(value).hex()
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple() | set():
            return [plain(item) for item in value]
        case _:
            return str(value)


def _number(value: Decimal) -> int | float | str:
    if not value.is_finite():
        return str(value)
    if value == value.to_integral_value() and value.as_tuple().exponent == 0:
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else str(value)


def _text(value: Any) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case _:
            return json.dumps(value, ensure_ascii=False)


def _is_true(value: Any) -> bool:
    return value.lower() in _TRUE if isinstance(value, str) else bool(value)
