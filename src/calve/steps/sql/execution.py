"""Runs the statements of a SQL step in a separate process, see ``calve.steps.processes.fork_server``."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from sqlalchemy import Connection, bindparam, create_engine, make_url, text

from calve.engine import Outcome, State
from calve.steps.failures import interrupted
from calve.steps.processes import ForkContext
from calve.steps.sql.connections import connected, translated
from calve.steps.sql.error_positions import SqlText
from calve.steps.sql.results import Rows, check_expectation, result_outputs
from calve.steps.sql.state_database import refuse_content
from calve.steps.sql.statements import Statement, check_values, split

_STREAMED = re.compile(r"\s*(select|values|table)\b", re.IGNORECASE)
_ATTACH = re.compile(r"\battach\b", re.IGNORECASE)
_BATCH = 1000


def prepare() -> None:
    """Import the modules that most databases need before the server forks, so that no fork has to import them."""
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        connection.execute(text("SELECT :value").bindparams(value=1))
    engine.dispose()
    with suppress(ImportError):
        import psycopg  # noqa: F401 - for what it loads
        from sqlalchemy.dialects.postgresql import psycopg as dialect

        dialect.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy does not say


def execute(job: Mapping[str, Any], context: ForkContext) -> Outcome:
    """Run the statements of a job in order, and keep rows of the last one.

    Raises:
        StepFailed: a statement fails, or the step is interrupted.
    """
    os.chdir(job["project"])
    config, values = job["config"], job["values"]
    url = make_url(job["url"])
    source = SqlText(job["name"], job["text"])
    statements = split(source.text, url.get_backend_name())
    check_values(statements, values, "sql.parameters")
    count, rows = 0, None
    with connected(url, context, in_transaction=config["transaction"]) as connection:
        for number, statement in enumerate(statements, start=1):
            context.log(f"-- {number} of {len(statements)}\n{statement.sql}\n")
            keep = config["max_rows"] if number == len(statements) else 0
            which = f"statement {number} of {len(statements)}" if len(statements) > 1 else ""
            with translated(url, context, partial(source.told, statement, which), statement):
                count, rows = _execute(connection, statement, values, context, keep)
                if url.get_backend_name() == "sqlite" and _ATTACH.search(statement.sql):
                    refuse_content(connection)  # its rollback is harmless: SQLite attaches only outside transactions
        check_expectation(config.get("expect"), rows)
        outputs = result_outputs(config["fetch"], rows, config["max_rows"])
    context.log(f"-- {count:,} rows\n")
    return Outcome(State.DONE, {"row_count": count, **outputs})


def _execute(
    connection: Connection, statement: Statement, values: Mapping[str, Any], context: ForkContext, keep: int
) -> tuple[int, Rows | None]:
    """Run a statement; return the number of rows that it returned or changed, and its rows, if it returns any."""
    if context.is_interrupted():
        raise interrupted("The step")
    lists: list[Any] = [bindparam(name, expanding=True) for name in statement.lists]
    prepared = text(statement.template).bindparams(*lists)
    is_streamed = _in_transaction(connection) and _STREAMED.match(statement.sql) is not None
    given = {name: values[name] for name in statement.names}
    with connection.execute(prepared, given, execution_options={"stream_results": is_streamed}) as result:
        if not result.returns_rows:
            return max(result.rowcount, 0), None
        rows = Rows(list(result.keys()), keep)
        for batch in result.partitions(_BATCH):
            rows.take(batch)
            if context.is_interrupted():
                raise interrupted("The step")
        return rows.count, rows


def _in_transaction(connection: Connection) -> bool:
    return connection.get_execution_options().get("isolation_level") != "AUTOCOMMIT"
