"""``calve demo``: late data, found without looking back."""

import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from calve.cli.output import duration, print_json, print_table, size, working
from calve.cli.state import State, json_option

if TYPE_CHECKING:
    from calve.capture import TableReport

DAYS = 14
ROWS_A_DAY = 20_000
LATE = 400
CONSUMER = "demo"
TABLE = "demo.playback"


@click.command()
@json_option
@click.pass_obj
def demo(state: State) -> None:
    """Build a small lake, make late data, and capture exactly the change.

    Works in a folder of its own, <home>/demo, which every run makes anew; your lake is not touched.
    """
    from calve.app import open_captures
    from calve.lake import spark as lake_spark
    from calve.settings import embedded

    home = state.settings.home / "demo"
    shutil.rmtree(home, ignore_errors=True)
    chosen = embedded(home, state.settings)
    say: Callable[[str], None] = (lambda _: None) if state.json else click.echo
    with working() as tell:
        spark = lake_spark.session(chosen, "calve demo", tell)

    def sql(statement: str) -> list[Any]:
        with working() as tell:
            tell(statement.strip().splitlines()[0][:70])
            return list(spark.sql(statement).collect())

    say(f"A table of {DAYS} days of playback events, {ROWS_A_DAY:,} a day …")
    sql("CREATE NAMESPACE IF NOT EXISTS demo")
    sql(
        f"CREATE TABLE {TABLE} (event BIGINT, day DATE, account BIGINT, watched INT) USING iceberg PARTITIONED BY (day)"
    )
    sql(f"INSERT INTO {TABLE} {_events(DAYS * ROWS_A_DAY, 0, f'id % {DAYS}')}")
    with open_captures(chosen) as captures:
        first = captures.capture([TABLE], CONSUMER)
        captures.commit(str(first.capture_id))
        say(f"  captured and committed: {first.tables[0].records:,} rows are processed.\n")

        say(f"A new day arrives, and with it {LATE} late events of the {DAYS - 1} days before …")
        sql(f"INSERT INTO {TABLE} {_events(ROWS_A_DAY, 1_000_000, str(DAYS))}")
        sql(f"INSERT INTO {TABLE} {_events(LATE, 2_000_000, f'1 + id % {DAYS - 1}')}")
        change, took = _timed(lambda: captures.capture([TABLE], CONSUMER, _wanted()))
        table = change.tables[0]
        captured = sql(
            f"SELECT day, count(*) AS events, sum(watched) AS watched FROM {table.relation} GROUP BY day ORDER BY day"
        )
        (truth,) = sql(f"SELECT count(*), sum(event) FROM {TABLE} WHERE event >= 1000000")
        (seen,) = sql(f"SELECT count(*), sum(event) FROM {table.relation}")
        (window,) = sql(f"SELECT count(*) FROM {TABLE} WHERE day > DATE'2026-01-01'")
        if tuple(truth) != tuple(seen):
            raise click.ClickException("the capture does not hold what changed: this is a bug")
        captures.commit(str(change.capture_id))
        after = captures.plan([TABLE], CONSUMER)
    lookback = int(window[0])
    if state.json:
        print_json({**change.as_json(), "lookback_records": lookback, "capture_ms": round(took * 1000, 1)})
        return
    _show(table, captured, lookback, took, changed_after=after.changed)


def _events(count: int, first: int, day: str) -> str:
    """Return a query for events on days that an expression of ``id`` picks."""
    return (
        f"SELECT {first} + id, date_add(DATE'2026-01-01', CAST({day} AS INT)), id % 1000, CAST(id % 7200 AS INT) "
        f"FROM range({count})"
    )


def _wanted() -> Any:
    from calve.capture import Wanted

    return Wanted(ranges=("day", "event"))


def _timed(action: Callable[[], Any]) -> tuple[Any, float]:
    from time import perf_counter

    start = perf_counter()
    return action(), perf_counter() - start


def _show(table: "TableReport", captured: list[Any], lookback: int, took: float, *, changed_after: bool) -> None:
    print(f"  captured in {duration(took)}, from metadata alone: no data file was opened, none was copied.\n")
    print(f"{table.source_table}: {table.files} files, {table.records:,} rows, {size(table.bytes)}")
    for column, found in table.ranges.items():
        print(f"  {column} changed from {found['lower']} to {found['upper']}")
    print(f"\nSELECT day, count(*), sum(watched) FROM {table.relation} GROUP BY day")
    print_table(("day", "events", "watched"), captured)
    share = 100 * table.records / lookback
    print(
        f"A {DAYS}-day lookback re-reads {lookback:,} rows for these; the change is {table.records:,}: {share:.1f} %."
    )
    print(f"Committed. What the next capture would hold: {'more' if changed_after else 'nothing'}.")
