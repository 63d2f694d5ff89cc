"""How many bytes does an instance leave behind, and what are they?

A typical workflow of three steps is run some thousand times, by a worker whose steps do nothing but print a line and
give one output, and once more with NoOp steps. What the state database and the folder of the attempts have grown by is
divided by the instances, and multiplied by those of a day at 200 a minute.
"""

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from sqlalchemy import create_engine, text

from calve.app import Project, open_project
from calve.definition import installed, load
from calve.engine import Outcome, State, StepContext, StepRuntime
from calve.settings import load as load_settings
from calve.testing.postgres import throwaway_postgres

A_DAY = 200 * 60 * 24
ALLOWED = 10**9
WARM = 50
"""Instances before the first measurement: what is written once a version is no growth."""


class Prints:
    """Carries out a step that prints a line and gives an output."""

    def execute(self, context: StepContext) -> Outcome:
        """Print, and be done."""
        context.log("42 rows written\n")
        return Outcome(State.DONE, outputs={"rows": 42})

    def terminate(self, context: StepContext) -> None:
        """Have nothing to end."""


RUNTIMES: dict[str, Callable[[], StepRuntime]] = {"Shell": Prints}
STEPS = {
    "no-ops": "type: NoOp",
    "worker": 'type: Shell, rows: 0, shell: {command: "load ${day}"}',
}


def workflow(name: str) -> str:
    jobs = "".join(f"    - job: {{id: {step}, {STEPS[name]}}}\n" for step in ("extract", "transform", "load"))
    return f"Workflow:\n  id: sales.{name}\n  run_strategy: 50\n  day: '20260302'\n  jobs:\n{jobs}  dag: sequential\n"


@contextmanager
def opened(home: Path, url: str) -> Iterator[Project]:
    """Open a store with one worker."""
    with open_project(load_settings(home, {"CALVE_STORE__URL": url})) as place:
        worker = place.worker(runtimes=RUNTIMES)
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            yield place
        finally:
            worker.end()
            thread.join()


def run(place: Project, name: str, count: int) -> None:
    """Run some instances to their end."""
    for _ in range(count):
        place.engine.start(f"sales.{name}", params={"day": f"{time.time_ns() % 100_000_000:08}"})
    while any(place.engine.state.counts().values()):
        time.sleep(0.2)


def sizes(url: str) -> dict[str, int]:
    """Return the bytes of each table and index."""
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("VACUUM ANALYZE"))
            query = (
                "SELECT relname, pg_table_size(oid) FROM pg_class WHERE relkind = 'r' AND relname NOT LIKE 'pg_%'"
                " AND relname NOT LIKE 'sql_%' UNION ALL SELECT relname, pg_relation_size(oid) FROM pg_class"
                " WHERE relkind = 'i' AND relname NOT LIKE 'pg_%'"
            )
        else:
            connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))
            query = "SELECT name, sum(pgsize) FROM dbstat GROUP BY name"
        found = {str(name): int(size) for name, size in connection.execute(text(query))}
    engine.dispose()
    return found


def files(home: Path) -> int:
    """Return the bytes of what attempts have left on the disk."""
    return sum(path.stat().st_blocks * 512 for path in (home / ".calve" / "attempts").rglob("*"))


def measure(kind: str, home: Path, url: str, count: int, *, in_full: bool) -> None:
    """Run both workflows, and say what each instance left."""
    with opened(home, url) as place:
        for name in STEPS:
            place.engine.push(load(workflow(name), name="growth", vocabulary=installed()).required())
            run(place, name, WARM)
            before, began = sizes(url), files(home)
            run(place, name, count)
            grown = {part: size - before.get(part, 0) for part, size in sizes(url).items()}
            grown["(files)"] = files(home) - began
            total = sum(grown.values()) / count
            day = total * A_DAY / ALLOWED
            click.echo(f"{kind:<11}{name:<8}{total:8,.0f} bytes an instance; {day:.2f} GB a day at 200 a minute")
            for part, size in sorted(grown.items(), key=lambda each: -each[1]) if in_full else ():
                if size > 0:
                    click.echo(f"    {part:<28}{size / count:8,.0f}")


@click.command()
@click.option("--instances", default=2_000, show_default=True)
@click.option("--full", "in_full", is_flag=True, help="Say what each table and index takes.")
@click.option("--only", type=click.Choice(["sqlite", "postgresql"]))
def main(instances: int, only: str | None, *, in_full: bool) -> None:
    """Measure how the state grows."""
    if only != "postgresql":
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:///{folder}/state.db"
            measure("SQLite", Path(folder), url, instances, in_full=in_full)
    if only != "sqlite":
        with tempfile.TemporaryDirectory() as folder, throwaway_postgres() as postgres:
            measure("PostgreSQL", Path(folder), postgres.url, instances, in_full=in_full)


if __name__ == "__main__":
    main()
