"""``calve sql``: statements on the lake."""

import re
from typing import IO, TYPE_CHECKING, Any

import click

from calve.cli.output import print_json, print_table, working
from calve.cli.state import State, json_option
from calve.errors import RequestInvalid, SqlFailed

_DOLLAR = re.compile(r"\$(?:(?P<escaped>\$)|\{)")

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from calve.lake import SparkProgress
    from calve.settings import Settings
    from calve.steps.sql import SqlText, Statement


@click.command()
@click.argument("statements", required=False)
@click.option(
    "-f", "--file", type=click.File(encoding="utf-8"), help="Read the statements from FILE; - is standard input."
)
@click.option("--limit", default=1000, show_default=True, help="Maximum number of rows to show; --json prints all.")
@json_option
@click.pass_obj
def sql(state: State, statements: str | None, file: IO[str] | None, limit: int) -> None:
    """Run SQL on the lake, with Spark on this machine.

    Separate STATEMENTS with semicolons. With --json, each one prints a line: the array of its rows.
    References such as ${day} are for steps of workflows, and an error here; write $${ for the characters ${.
    """
    if (statements is None) == (file is None):
        raise click.UsageError("Give either the statements or --file.")
    from calve.steps.sql import SqlText, split

    name = file.name if file else "STATEMENTS"
    text = _without_references(statements or (file.read() if file else ""), name)
    source = SqlText(name, text)
    parts = split(text, "spark")
    if not parts:
        raise click.UsageError("There is no statement.")
    state.check_here()
    from calve.lake import spark as lake_spark

    with working() as say:
        spark = lake_spark.session(state.settings, "calve sql", say)
    for number, statement in enumerate(parts, start=1):
        head = f"{statement.sql.splitlines()[0][:60]}" if len(parts) == 1 else f"{number}/{len(parts)}"
        which = f"statement {number} of {len(parts)}" if len(parts) > 1 else ""
        with working() as say:
            say(head)
            with lake_spark.watched(spark, _shown(say, head)):
                try:
                    columns, rows = _run(spark, statement.sql, None if state.json else limit + 1)
                except _spark_errors() as error:
                    message = _told(error, source, statement, which, state.settings)
                    raise SqlFailed(message, statement=number, sql=statement.sql) from error
        _print(columns, rows, None if state.json else limit)


def _without_references(text: str, name: str) -> str:
    """Return the text to run; refuse references, since there are no params here."""
    index = next((found.start() for found in _DOLLAR.finditer(text) if not found["escaped"]), None)
    if index is None:
        return text.replace("$${", "${")
    from calve.definition.params import braced_text, line_and_column

    line, column = line_and_column(text, index)
    raise RequestInvalid(
        f"{name}:{line}:{column}: {braced_text(text, index)} is a reference, and there are no params here.",
        remedy="Run it in a step of a workflow, or write the value. For the characters ${ write $${.",
    )


def _run(spark: "SparkSession", statement: str, limit: int | None) -> tuple[list[str], list[Any]]:
    """Run one statement and return its columns and rows."""
    result = spark.sql(statement)
    return result.columns, result.collect() if limit is None else result.take(limit)


def _spark_errors() -> tuple[type[Exception], ...]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return Py4JError, PySparkException


def _told(error: Exception, source: "SqlText", statement: "Statement", which: str, settings: "Settings") -> str:
    """Return the error message of Spark: the cause in one line, and the position; no plans and no stack traces."""
    from contextlib import closing

    from calve.lake import Lake
    from calve.steps.spark import brief, cause, name_hint, position

    java = getattr(error, "java_exception", None)
    message = cause(error) if java is None else brief(str(java.getMessage() or java.toString()))
    with closing(Lake(settings)) as lake:
        meant = name_hint(error, lake)
    return source.told(statement, which, f"{message} {meant}".rstrip(), position(error, statement.sql))


def _print(columns: list[str], rows: list[Any], limit: int | None) -> None:
    if limit is None:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    elif columns:
        print_table(columns, rows[:limit])
        if len(rows) > limit:
            click.echo(f"Only the first {limit} rows are shown: see --limit.", err=True)


def _shown(say: "Callable[[str], None]", head: str) -> "Callable[[SparkProgress], None]":
    def show(progress: "SparkProgress") -> None:
        if progress.tasks:
            say(f"{head}  {progress.tasks_done}/{progress.tasks} tasks, {progress.stages} stages")

    return show
