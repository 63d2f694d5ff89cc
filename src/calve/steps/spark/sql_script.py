"""Runs SQL in a session, statement by statement, with values as literals; counts rows and usage of each."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calve.engine import StepContext
from calve.steps.failures import fatal, interrupted, user_error
from calve.steps.spark.errors import Hint, LastOutput, translated
from calve.steps.spark.event_log import Usage
from calve.steps.sql import Rows, SqlText, Statement, check_values, split, written_at

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.connect.session import SparkSession
import math
import re
from decimal import Decimal

_TITLE = 80


@dataclass(frozen=True, slots=True)
class Done:
    """A statement that has run."""

    title: str
    seconds: float
    rows: Rows | None
    """The rows that it returned; None if it returns none."""
    usage: Usage | None
    """What it read and wrote, if known."""

    @property
    def count(self) -> int | None:
        """How many rows it returned or wrote; None if unknown."""
        if self.rows is not None:
            return self.rows.count
        return None if self.usage is None else self.usage.rows_written


@dataclass(frozen=True, slots=True)
class Script:
    """Runs SQL scripts in one session."""

    session: "SparkSession"
    context: StepContext
    used: Callable[[], Usage | None]
    """Returns what the session has read and written so far, if known."""
    last_output: LastOutput = lambda _: None
    """Shows whether the server has ended."""
    hint: Hint = lambda _: ""
    """Adds a hint about the cause of an error."""
    begin: Callable[[str], None] = lambda _: None
    """Called with the number of each statement, if there are several."""

    def run(self, source: SqlText, values: Mapping[str, Any], *, keep: int) -> list[Done]:
        """Run all statements of a text, and keep up to ``keep`` rows of the last one.

        Raises:
            StepFailed: a statement failed, or there is none.
        """
        statements = split(source.text, "spark")
        check_values(statements, values, "spark.parameters")
        done: list[Done] = []
        before = self.used()
        for number, statement in enumerate(statements, start=1):
            self.context.log(f"-- {number} of {len(statements)}\n{statement.sql}\n")
            which = f"statement {number} of {len(statements)}" if len(statements) > 1 else ""
            self.begin(which)
            began = time.monotonic()
            with self._translated(source, statement, which, values):
                rows = self._execute(statement, values, keep if number == len(statements) else 0)
            after = self.used()
            usage = None if before is None or after is None else after.minus(before)
            done.append(Done(_title(statement.sql), time.monotonic() - began, rows, usage))
            before = after
        return done

    def _translated(
        self, source: SqlText, statement: Statement, which: str, values: Mapping[str, Any]
    ) -> AbstractContextManager[None]:
        """Show errors of a statement with their line in the text."""

        def told(message: str, at: int | None) -> str:
            place = None if at is None else written_at(statement, at, lengths(statement, values))
            return source.told(statement, which, message, place)

        sent = bound(statement, values)
        return translated(self.context, "The statement", self.last_output, told=told, sent=sent, hint=self.hint)

    def audit(self, source: SqlText, values: Mapping[str, Any]) -> None:
        """Run audit queries; every value of every row must be true.

        Raises:
            StepFailed: a value is not true, or a statement returns no rows.
        """
        for one in self.run(source, values, keep=0):
            if one.rows is None:
                raise fatal(f"Audit ({one.title}) returns no rows, so there is nothing to check.")
            if one.rows.false:
                raise user_error(f"Audit ({one.title}): {one.rows.false} is not true; nothing is published.")

    def _execute(self, statement: Statement, values: Mapping[str, Any], keep: int) -> Rows | None:
        if self.context.is_interrupted():
            raise interrupted("The step")
        frame: Any = self.session.sql(bound(statement, values))
        rows: Rows | None = None
        for table in _tables(self.session, frame):
            rows = rows or Rows(table.column_names, keep)
            _take(rows, table)
            if self.context.is_interrupted():
                raise interrupted("The step")
        return rows


def _tables(session: "SparkSession", frame: Any) -> Iterator["pa.Table"]:
    """Yield the rows that a statement returns; those of a command came with its response."""
    import pyarrow as pa
    from pyspark.sql.connect.plan import CachedRelation

    plan = frame._plan  # noqa: SLF001 - a DataFrame would make rows of everything
    if isinstance(plan, CachedRelation):
        relation = plan.plan(session.client)
        if relation.HasField("local_relation"):
            data = relation.local_relation.data
            table = pa.ipc.open_stream(data).read_all() if data else pa.table({})
            yield from [table] if table.column_names else []
            return
    request = plan.to_proto(session.client)
    schema: Any = None
    is_empty = True
    for piece in session.client.to_table_as_iterator(request, plan.observations):
        if isinstance(piece, pa.Table):
            is_empty = False
            yield piece
        else:
            schema = piece
    if is_empty and schema is not None:
        yield pa.table({name: [] for name in schema.names})


def _take(rows: Rows, table: "pa.Table") -> None:
    """Count rows, in small batches, and keep the first ones."""
    for batch in table.to_batches(max_chunksize=1_000):
        columns = [column.to_pylist() for column in batch.columns]
        rows.take(zip(*columns, strict=True) if columns else ())


def _title(sql: str) -> str:
    lines = [line.strip() for line in sql.splitlines()]
    return next((line for line in lines if line and not line.startswith("--")), lines[0])[:_TITLE]


_COLON = re.compile(r"\\:|:(?P<name>[^\W\d]\w*)")
_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"})
_LONG = 2**63


def bound(statement: Statement, values: Mapping[str, Any]) -> str:
    """Replace the names in a statement by literals.

    Spark could bind them, but Iceberg's parser loses them on Spark Connect (apache/iceberg#16625). Only names in code
    are replaced, and quotes and backslashes in texts are escaped, so a value stays a value.
    """
    if not statement.names:
        return statement.sql

    def replaced(match: re.Match[str]) -> str:
        name = match["name"]
        return ":" if name is None else literal(values[name], name)

    return _COLON.sub(replaced, statement.template)


def lengths(statement: Statement, values: Mapping[str, Any]) -> list[int]:
    """Return the lengths of the literals for a statement's names, in order."""
    names = (statement.sql[start + 1 : end] for start, end in statement.spots)
    return [len(literal(values[name], name)) for name in names]


def literal(value: Any, name: str) -> str:
    """Return a value as a literal of Spark SQL.

    Raises:
        StepFailed: Spark SQL has no literal for it.
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
