"""Twenty runs after each other while rows come in all the time: nothing is lost, nothing comes twice."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.faults.pipeline import Pipeline, pipeline_on
from tests.faults.worker_pool import wait_until

from calve.capture import Status
from calve.engine import RunStatus

RUNS = 20


@contextmanager
def appending(pipeline: Pipeline, pause: float) -> Iterator[None]:
    """Append to the source again and again, until the block ends; what goes wrong there is raised here."""
    is_over = threading.Event()
    failed: list[BaseException] = []

    def append() -> None:
        try:
            while not is_over.wait(pause):
                pipeline.append(1)
        except BaseException as error:  # noqa: BLE001 - it is raised in the test's own thread
            failed.append(error)

    thread = threading.Thread(target=append)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
    assert not failed, failed


def test_twenty_runs_while_rows_come_in_lose_none_and_double_none(connect_url: str) -> None:
    """Each run's capture goes on where the last one ended, and a last run brings in what is left."""
    with pipeline_on(connect_url) as pipeline:
        pipeline.build(version=3)
        worker = pipeline.start_worker(is_leaving=False)
        with appending(pipeline, 0.1):
            for _ in range(RUNS):
                one_run(pipeline)
        one_run(pipeline)
        worker.terminate()
        assert not pipeline.ended(worker)
        pipeline.check()
        check_order(pipeline)
        pipeline.check_clean()


def one_run(pipeline: Pipeline) -> None:
    """Start an instance as soon as something has come in, and wait for its end."""
    run = pipeline.start()
    wait_until(lambda: pipeline.fresh(run).status.is_terminal)
    assert pipeline.fresh(run).status is RunStatus.SUCCEEDED, pipeline.said()


def check_order(pipeline: Pipeline) -> None:
    """Fail unless the captures follow each other without a gap, from the beginning of the source to its end."""
    captures = [stored for stored in reversed(pipeline.listed()) if stored.status is Status.COMMITTED]
    ends: list[int | None] = [None]
    for stored in captures:
        (table,) = stored.document["tables"]
        assert table["from_snapshot_id"] == ends[-1]
        ends.append(table["to_snapshot_id"])
    assert len(captures) > RUNS // 2
    assert ends[-1] == pipeline.head("db.source")
