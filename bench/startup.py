"""How long does ``calve`` take to start? Prints milliseconds of time and of CPU, and the ratio to a bare interpreter.

``calve lag`` and ``calve captures`` are asked about a project with one table and one capture. The aim for a cold
``calve lag --json`` is 0.45 s of CPU on a machine where ``import sqlalchemy``, which it cannot do without, takes 0.2.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

import click

RUNS = 15
_TABLE = """
import sys
import pyarrow as pa
import calve
with calve.connect(sys.argv[1]) as lake:
    catalog = lake.lake.catalog("lake").pyiceberg()
    catalog.create_namespace("db")
    rows = pa.table({"id": [1]})
    catalog.create_table("db.events", schema=rows.schema).append(rows)
    with lake.capture("db.events", consumer="daily"):
        pass
"""


def commands(project: str) -> dict[str, list[str]]:
    """Return what is started, by what is printed of it."""
    calve = ["-m", "calve", "-C", project]
    return {
        "python -c pass": ["-c", "pass"],
        "import sqlalchemy": ["-c", "import sqlalchemy"],
        "import calve": ["-c", "import calve"],
        "calve --help": ["-m", "calve", "--help"],
        "calve lag --json": [*calve, "lag", "--json"],
        "calve captures --json": [*calve, "captures", "--json"],
    }


def measured(arguments: list[str]) -> tuple[float, float]:
    """Return the medians of some runs, in milliseconds: how long they took, and how much CPU."""
    took, busy = [], []
    for _ in range(RUNS):
        start, before = time.perf_counter(), os.times()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own
        after = os.times()
        took.append((time.perf_counter() - start) * 1000)
        used = after.children_user + after.children_system - before.children_user - before.children_system
        busy.append(used * 1000)
    return statistics.median(took), statistics.median(busy)


def main() -> None:
    with tempfile.TemporaryDirectory() as project:
        subprocess.run([sys.executable, "-c", _TABLE, project], check=True)  # noqa: S603 - our own
        figures = {name: measured(arguments) for name, arguments in commands(project).items()}
    bare, _ = figures["python -c pass"]
    for name, (took, busy) in figures.items():
        click.echo(f"{name:<22}{took:>8.0f} ms{busy:>8.0f} ms of CPU{took / bare:>8.1f} ×")


if __name__ == "__main__":
    main()
