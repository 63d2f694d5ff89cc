"""Runs statements on a database, and gives what the last one gave."""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, bindparam, text

from calve.definition.step_types.queries import SQL
from calve.engine.ports import Outcome, State, StepContext
from calve.steps.configs import fields
from calve.steps.failures import fatal, settled, stopped
from calve.steps.sql import results
from calve.steps.sql.connecting import connected, parse, translated
from calve.steps.sql.positions import Source
from calve.steps.sql.results import Rows
from calve.steps.sql.statements import Statement, check, split
from calve.steps.surroundings import resolved_file

_STREAMED = re.compile(r"\s*(select|values|table)\b", re.IGNORECASE)
_BATCH = 1000


class Sql:
    """Runs the statements of a step in order, and keeps rows of the last one.

    After a crash the statements may run again: within one transaction all of them or none were done, and nothing
    tells which. Write them so that they bear repetition.
    """

    def __init__(self, connections: Mapping[str, str], project: Path) -> None:
        self._connections = connections
        self._project = project

    def execute(self, context: StepContext) -> Outcome:
        """Run the statements."""
        return settled(self._run, context)

    def terminate(self, context: StepContext) -> None:
        """Do nothing: an interruption cancels the statement, and a lost connection ends its transaction."""

    def _run(self, context: StepContext) -> Outcome:
        config = fields(context, SQL)
        url = parse(self._url(config), self._project)
        source = Source(str(config.get("file", "sql.query")), self._text(config, context))
        statements = split(source.text, url.get_backend_name())
        values = config.get("parameters", {})
        check(statements, values, "sql.parameters")
        count, rows = 0, None
        with connected(url, context, in_transaction=config["transaction"]) as connection:
            for number, statement in enumerate(statements, start=1):
                context.log(f"-- {number} of {len(statements)}\n{statement.sql}\n")
                keep = config["max_rows"] if number == len(statements) else 0
                which = f"statement {number} of {len(statements)}" if len(statements) > 1 else ""
                with translated(url, context, partial(source.told, statement, which), statement):
                    count, rows = _execute(connection, statement, values, context, keep)
            results.check(config.get("expect"), rows)
            outputs = results.outputs(config["fetch"], rows, config["max_rows"])
        context.log(f"-- {count:,} rows\n")
        return Outcome(State.DONE, {"row_count": count, **outputs})

    def _url(self, config: Mapping[str, Any]) -> str:
        name = config.get("connection")
        if name is None:
            return str(config["url"])
        if name not in self._connections:
            known = ", ".join(self._connections) or "none"
            raise fatal(f"There is no connection {name} in the settings.", remedy=f"[connections] has: {known}.")
        return self._connections[name]

    def _text(self, config: Mapping[str, Any], context: StepContext) -> str:
        if "query" in config:
            return str(config["query"])
        path = str(config["file"])
        return resolved_file(self._project / Path(path).expanduser(), path, "sql.file", context)


def _execute(
    connection: Connection, statement: Statement, values: Mapping[str, Any], context: StepContext, keep: int
) -> tuple[int, Rows | None]:
    """Run a statement; return how many rows it gave or changed, and the rows, if it gives any."""
    if context.is_interrupted():
        raise stopped("The step")
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
                raise stopped("The step")
        return rows.count, rows


def _in_transaction(connection: Connection) -> bool:
    return connection.get_execution_options().get("isolation_level") != "AUTOCOMMIT"
