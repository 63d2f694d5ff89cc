"""Runs SQL in a session, statement by statement, and counts what each gave, read and wrote."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calve.engine.ports import StepContext
from calve.steps.failures import fatal, of_user, stopped
from calve.steps.spark.events import Usage
from calve.steps.spark.failing import Hint, LastWords, translated
from calve.steps.spark.literals import bound, lengths
from calve.steps.sql.positions import Source, written_at
from calve.steps.sql.results import Rows
from calve.steps.sql.statements import Statement, check, split

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.connect.session import SparkSession

_TITLE = 80


@dataclass(frozen=True, slots=True)
class Done:
    """A statement that was run."""

    title: str
    seconds: float
    rows: Rows | None
    """What it gave, if it gives rows."""
    usage: Usage | None
    """What it read and wrote, if that is known."""

    @property
    def count(self) -> int | None:
        """How many rows it gave or wrote; None where nobody tells."""
        if self.rows is not None:
            return self.rows.count
        return None if self.usage is None else self.usage.rows_written


@dataclass(frozen=True, slots=True)
class Script:
    """SQL, and what it takes to run it."""

    session: "SparkSession"
    context: StepContext
    used: Callable[[], Usage | None]
    """Returns what the session has read and written so far, if that is known."""
    last_words: LastWords = lambda _: None
    """Tells whether the server is gone."""
    hint: Hint = lambda _: ""
    """Knows more of an error."""
    begin: Callable[[str], None] = lambda _: None
    """Is told which of several statements comes next."""

    def run(self, source: Source, values: Mapping[str, Any], *, keep: int) -> list[Done]:
        """Run all statements of a text, and keep so many rows of the last one.

        Raises:
            StepFailed: one of them failed, or there is none.
        """
        statements = split(source.text, "spark")
        check(statements, values, "spark.parameters")
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
        self, source: Source, statement: Statement, which: str, values: Mapping[str, Any]
    ) -> AbstractContextManager[None]:
        """Word errors of a statement as ones of a place in the text."""

        def told(message: str, at: int | None) -> str:
            place = None if at is None else written_at(statement, at, lengths(statement, values))
            return source.told(statement, which, message, place)

        sent = bound(statement, values)
        return translated(self.context, "The statement", self.last_words, told=told, sent=sent, hint=self.hint)

    def audit(self, source: Source, values: Mapping[str, Any]) -> None:
        """Run statements that look at what was written; every value of every row must be true.

        Raises:
            StepFailed: one is not, or a statement gives no rows.
        """
        for one in self.run(source, values, keep=0):
            if one.rows is None:
                raise fatal(f"Audit ({one.title}) gives no rows, and its values were to be looked at.")
            if one.rows.false:
                raise of_user(f"Audit ({one.title}): {one.rows.false} is not true; nothing is published.")

    def _execute(self, statement: Statement, values: Mapping[str, Any], keep: int) -> Rows | None:
        if self.context.is_interrupted():
            raise stopped("The step")
        frame: Any = self.session.sql(bound(statement, values))
        rows: Rows | None = None
        for table in _tables(self.session, frame):
            rows = rows or Rows(table.column_names, keep)
            _take(rows, table)
            if self.context.is_interrupted():
                raise stopped("The step")
        return rows


def _tables(session: "SparkSession", frame: Any) -> Iterator["pa.Table"]:
    """Yield what a statement gives; that of a command came with its answer, and is not asked for again."""
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
    """Count rows, and keep what is asked for, a few at a time."""
    for batch in table.to_batches(max_chunksize=1_000):
        columns = [column.to_pylist() for column in batch.columns]
        rows.take(zip(*columns, strict=True) if columns else ())


def _title(sql: str) -> str:
    lines = [line.strip() for line in sql.splitlines()]
    return next((line for line in lines if line and not line.startswith("--")), lines[0])[:_TITLE]
