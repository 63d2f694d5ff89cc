"""Output: tables for people, JSON for programs."""

import base64
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any


def print_json(value: Any) -> None:
    """Print one line of JSON."""
    print(json.dumps(json_safe(value), ensure_ascii=False))


def json_safe(value: Any) -> Any:
    """Convert a value to JSON's types without loss of precision: decimals become text, bytes become Base64."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Mapping():
            return {str(key): json_safe(item) for key, item in value.items()}
        case datetime() | date() | time():
            return value.isoformat()
        case bytes() | bytearray():
            return base64.b64encode(value).decode()
        case _ if hasattr(value, "asDict"):  # a Row of Spark
            return json_safe(value.asDict())
        case list() | tuple() | set() | frozenset():
            return [json_safe(item) for item in value]
        case _:
            return str(value)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, numbers: bool = True) -> None:
    """Print a table with right-aligned numbers; only a terminal limits its width."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        values = [row[index] for row in rows if row[index] is not None]
        is_number = numbers and bool(values) and all(_is_number(value) for value in values)
        table.add_column(Text(column), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(shown(value), style="dim" if value is None else "") for value in row))
    Console(width=None if sys.stdout.isatty() else 100_000).print(table)


def shown(value: Any) -> str:
    """Format a value for people."""
    match value:
        case None:
            return "NULL"
        case str():
            return value
        case bool():
            return str(value).lower()
        case datetime():
            return value.isoformat(sep=" ")
        case bytes() | bytearray():
            return "0x" + value.hex()
        case Mapping() | list() | tuple():
            return json.dumps(json_safe(value), ensure_ascii=False)
        case _:
            return str(value)


def moment(at: str | int | None) -> str:
    """Format a time, given as ISO text or in milliseconds; None is empty."""
    if at is None:
        return ""
    found = datetime.fromisoformat(at) if isinstance(at, str) else datetime.fromtimestamp(at // 1_000, UTC)
    return f"{found:%Y-%m-%d %H:%M:%SZ}"


def size(count: int) -> str:
    """Format a number of bytes."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            break
        amount /= 1024
    return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"


def duration(span: timedelta | float) -> str:
    """Format a duration; a number is in seconds."""
    seconds = span.total_seconds() if isinstance(span, timedelta) else span
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = ((days, "d"), (hours, "h"), (minutes, "min"), (rest, "s"))
    return " ".join([f"{amount} {unit}" for amount, unit in parts if amount][:2])


@contextmanager
def working() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a message beside a spinner if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("…") as status:
        yield status.update


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)
