"""Times the same flow as ``prefect``, until the server has recorded that every task completed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from peers.prefect import flow_of, settings, settle
from peers.timing import Round, report, timed


@contextmanager
def chain(home: Path, steps: int) -> Iterator[Round]:
    """Yield a round that is timed until all of it is in the server's database."""
    run = flow_of(steps)
    yield lambda: timed(run) + timed(lambda: settle(home, steps))


if __name__ == "__main__":
    report("prefect-recorded", "prefect", settings, chain)
