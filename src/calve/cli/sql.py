"""``calve sql``: statements on the lake."""

from typing import IO, TYPE_CHECKING, Any

import click

from calve.cli.output import print_json, print_table, working
from calve.cli.state import State, json_option
from calve.cli.statements import reference_index, split, unescaped
from calve.errors import RequestInvalid, SqlFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from calve.lake.spark import Progress


@click.command()
@click.argument("statements", required=False)
@click.option("-f", "--file", type=click.File(encoding="utf-8"), help="Read the statements from FILE, or from - .")
@click.option("--limit", default=1000, show_default=True, help="How many rows to show of a result; --json prints all.")
@json_option
@click.pass_obj
def sql(state: State, statements: str | None, file: IO[str] | None, limit: int) -> None:
    """Run SQL on the lake, with Spark.

    STATEMENTS are separated by semicolons. With --json, each one prints a line: the array of its rows.
    References such as ${day} are for the steps of workflows, and an error here; write $${ for the characters ${.
    """
    if (statements is None) == (file is None):
        raise click.UsageError("Give either the statements or --file.")
    parts = split(_without_references(statements or (file.read() if file else ""), file.name if file else "STATEMENTS"))
    if not parts:
        raise click.UsageError("There is no statement.")
    state.check_here()
    from calve.lake import spark as lake_spark

    with working() as say:
        spark = lake_spark.session(state.settings, "calve sql", say)
    for number, statement in enumerate(parts, start=1):
        head = f"{statement.splitlines()[0][:60]}" if len(parts) == 1 else f"{number}/{len(parts)}"
        with working() as say:
            say(head)
            with lake_spark.watched(spark, _shown(say, head)):
                columns, rows = _run(spark, statement, number, None if state.json else limit + 1)
        _print(columns, rows, None if state.json else limit)


def _without_references(text: str, name: str) -> str:
    """Return the text to run; refuse references, for which there are no params here."""
    index = reference_index(text)
    if index is None:
        return unescaped(text)
    from calve.definition.params import braced_text, line_and_column

    line, column = line_and_column(text, index)
    raise RequestInvalid(
        f"{name}:{line}:{column}: {braced_text(text, index)} is a reference, and there are no params here.",
        remedy="Run it in a step of a workflow, or write the value. For the characters ${ write $${.",
    )


def _run(spark: "SparkSession", statement: str, number: int, limit: int | None) -> tuple[list[str], list[Any]]:
    """Run one statement and return its columns and rows."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        result = spark.sql(statement)
        return result.columns, result.collect() if limit is None else result.take(limit)
    except (PySparkException, Py4JError) as error:
        first = statement.splitlines()[0]
        raise SqlFailed(
            f"Statement {number} ({first[:80]}) failed: {reason(error)}", statement=number, sql=statement
        ) from error


def reason(error: Exception) -> str:
    """Return what Spark says, without plans and stacks."""
    java = getattr(error, "java_exception", None)
    text = str(java.getMessage() or java.toString()) if java is not None else str(error)
    for mark in (
        "JVM stacktrace",
        "Driver stacktrace",
        "\n\tat ",
        "\n\nSQLSTATE",
        ";\n'",
        ";\n+-",
        "\n== SQL",
    ):
        text = text.partition(mark)[0]
    return " ".join(line.strip() for line in text.splitlines() if line.strip()).rstrip(";: ")


def _print(columns: list[str], rows: list[Any], limit: int | None) -> None:
    if limit is None:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    elif columns:
        print_table(columns, rows[:limit])
        if len(rows) > limit:
            click.echo(f"There are more than {limit} rows: see --limit.", err=True)


def _shown(say: "Callable[[str], None]", head: str) -> "Callable[[Progress], None]":
    def show(progress: "Progress") -> None:
        if progress.tasks:
            say(f"{head}  {progress.tasks_done}/{progress.tasks} tasks, {progress.stages} stages")

    return show
