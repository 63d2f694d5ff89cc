"""Times a job of chained ops that do nothing in Dagster, in one process, with its runs and events in SQLite."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from peers.timing import Round, report, require, timed

QUIET = {"loggers": {"console": {"config": {"log_level": "ERROR"}}}}


def settings(home: Path) -> dict[str, str]:
    """Return what keeps Dagster in its home, after writing the file that turns telemetry off."""
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    return {"DAGSTER_HOME": str(home)}


def nothing() -> None:
    """Do nothing."""


def job_of(steps: int) -> Any:
    """Return a job of ops that only wait for each other: no value is stored between them."""
    from dagster import In, Nothing, Out, job, op  # type: ignore[import-not-found]

    first = op(name="first", out=Out(Nothing))(nothing)
    step = op(name="step", ins={"after": In(Nothing)}, out=Out(Nothing))(nothing)

    def chain() -> None:
        done = first()
        for number in range(1, steps):
            done = step.alias(f"step_{number}")(done)

    return job(chain)


@contextmanager
def chain(home: Path, steps: int) -> Iterator[Round]:
    """Yield a round that runs the job in this process."""
    from dagster import DagsterInstance

    job = job_of(steps)
    with DagsterInstance.from_config(str(home)) as instance:

        def run() -> None:
            result = job.execute_in_process(run_config=QUIET, instance=instance)
            done = sum(event.is_step_success for event in result.all_events)
            require(done == steps, "the job did not run every op")

        yield lambda: timed(run)


if __name__ == "__main__":
    report("dagster", "dagster", settings, chain)
