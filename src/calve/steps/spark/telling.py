"""What a step read and wrote, for its log and its artifacts. Pure."""

from collections.abc import Sequence
from typing import Any

from calve.steps.spark.events import Usage
from calve.steps.spark.progress import size
from calve.steps.spark.scripts import Done

_KEPT_STATEMENTS = 100


def artifact(usage: Usage | None, done: Sequence[Done] = ()) -> dict[str, Any]:
    """Return what is kept about a step's work; what nobody tells is left out."""
    totals: dict[str, Any] = {} if usage is None else dict(usage.as_artifact())
    return totals | {"statements": [_statement(one) for one in done[:_KEPT_STATEMENTS]]} if done else totals


def _statement(one: Done) -> dict[str, Any]:
    told = {} if one.usage is None else one.usage.as_artifact()
    counted = {} if one.count is None else {"rows": one.count}
    return {"statement": one.title, "seconds": round(one.seconds, 3), **counted, **told}


def told_usage(usage: Usage | None, done: Sequence[Done] = ()) -> str:
    """Return the last line of a step's log."""
    rows = [f"{done[-1].count:,} rows"] if done and done[-1].count is not None else []
    if usage is None:
        return f"-- {', '.join(rows)}\n" if rows else ""
    read = f"{usage.rows_read:,} rows, {size(usage.bytes_read)} read"
    written = f"{usage.rows_written:,} rows, {size(usage.bytes_written)} written"
    return f"-- {'; '.join([*rows, read, written, f'{size(usage.shuffle_bytes)} shuffled'])}\n"
