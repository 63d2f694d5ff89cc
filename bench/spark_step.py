"""What does an empty SQL step cost on a worker's warm Spark, and what does a spark-submit of the same statement?

Whole instances are measured, from the request to the recorded end. The first one starts the server and is left out.
"""

import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from calve.app import Project, open_project
from calve.definition import installed, load
from calve.engine import RunStatus
from calve.settings import embedded, load as load_settings

WARM = """
Workflow:
  id: warm
  jobs:
    - job: {id: ask, type: Spark, spark: {script: SELECT 1}}
"""
COLD = """
Workflow:
  id: cold
  jobs:
    - job: {id: ask, type: Spark, spark: {application: ask.py}}
"""
PROGRAM = """
from pyspark.sql import SparkSession
SparkSession.builder.getOrCreate().sql("SELECT 1").collect()
"""
LOOK_SECONDS = 0.005


@contextmanager
def project() -> Iterator[Project]:
    """Open a project of its own, with one worker."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "ask.py").write_text(PROGRAM)
        with open_project(embedded(Path(folder), load_settings())) as place:
            worker = place.worker()
            thread = threading.Thread(target=worker.run)
            thread.start()
            try:
                yield place
            finally:
                worker.end()
                thread.join()


def seconds(place: Project, workflow_id: str) -> float:
    """Return how long an instance took; fail if it did not end well."""
    began = time.perf_counter()
    started = place.engine.start(workflow_id)
    while True:
        run = place.engine.state.run(workflow_id, started.run.instance_id)
        if run is not None and run.status.is_terminal:
            break
        time.sleep(LOOK_SECONDS)
    took = time.perf_counter() - began
    if run.status is not RunStatus.SUCCEEDED:
        raise click.ClickException(f"The instance of {workflow_id} ended as {run.status}.")
    return took


@click.command()
@click.option("--runs", default=20, show_default=True, help="How many warm steps to measure.")
@click.option("--cold", default=3, show_default=True, help="How many spark-submits to measure.")
def main(runs: int, cold: int) -> None:
    with project() as place:
        for text in (WARM, COLD):
            place.engine.push(load(text, name="bench", vocabulary=installed()).required())
        first = seconds(place, "warm")
        for _ in range(5):
            seconds(place, "warm")  # Java compiles what it runs often
        warm = statistics.median(seconds(place, "warm") for _ in range(runs))
        submitted = statistics.median(seconds(place, "cold") for _ in range(cold))
    click.echo(f"the first step, which starts Spark   {first * 1000:>9,.0f} ms")
    click.echo(f"an empty step on the warm server     {warm * 1000:>9,.0f} ms   median of {runs}")
    click.echo(
        f"a spark-submit of the same statement {submitted * 1000:>9,.0f} ms   {submitted / warm:,.0f} times as long"
    )


if __name__ == "__main__":
    main()
