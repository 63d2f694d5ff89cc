"""Times a chain of tasks that do nothing in Prefect, on the server that it starts by itself, with SQLite.

The figure is how long the flow takes to return. Prefect sends what became of its tasks to the server without waiting,
so each round first lets the server catch up with the one before; ``prefect_recorded`` times that as well.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from peers.timing import Round, report, require, timed, wait_until

IS_RECORDED = """
SELECT (SELECT count(*) FROM task_run WHERE state_type = 'COMPLETED') = ? * (SELECT count(*) FROM flow_run)
"""


def settings(home: Path) -> dict[str, str]:
    """Return what keeps Prefect in its home and quiet."""
    return {
        "PREFECT_HOME": str(home),
        "PREFECT_LOGGING_LEVEL": "ERROR",
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "true",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    }


def nothing(before: int) -> int:
    """Do nothing, after the step before."""
    return before + 1


def flow_of(steps: int) -> Callable[[], None]:
    """Return a call that runs a flow of chained tasks and sees that all of them ran."""
    from prefect import flow, task  # type: ignore[import-not-found]

    step = task(nothing)

    def chain() -> int:
        done = 0
        for _ in range(steps):
            done = step(done)
        return done

    run = flow(chain)
    return lambda: require(run() == steps, "the flow did not run every task")


def settle(home: Path, steps: int) -> None:
    """Wait until the server has recorded that every task of every flow completed."""
    with closing(sqlite3.connect(home / "prefect.db")) as database:
        wait_until(
            lambda: bool(database.execute(IS_RECORDED, (steps,)).fetchone()[0]),
            "Prefect's server has recorded every task",
        )


@contextmanager
def chain(home: Path, steps: int) -> Iterator[Round]:
    """Yield a round that is timed until the flow returns."""
    run = flow_of(steps)

    def once() -> float:
        took = timed(run)
        settle(home, steps)
        return took

    yield once


if __name__ == "__main__":
    report("prefect", "prefect", settings, chain)
