"""The faults of capture, job and commit by the numbers of the fault matrix, on real Iceberg tables and a real Spark.

B.1 (crash points, 1 to 15) and B.3 (the data side, 28 to 37), and 24 of B.2. Whatever happens to the workers, the
source or the target: each row of the source is in the target once, and the checkpoint and the target agree.

CI kills one way of writing at every boundary, and the others at every second one where they differ; elsewhere it runs
each way of writing, each table format and each boundary at least once. ``make test-all`` runs all combinations.
"""

import os
import shutil
import signal
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.faults.pipeline import INSERT, JOBS, MERGE, OVERWRITE, SOURCE, TARGET, Job, Pipeline, pipeline_on
from tests.faults.pipeline_worker import QUICK
from tests.faults.worker_pool import send, wait_until
from tests.scope import ALL, in_ci

from calve.capture import Status
from calve.engine import Address, RunStatus, StepStatus
from calve.errors import ActionRefused, LakeError


def named(value: object) -> str:
    """Return what a value of a parameter is called in the name of a test."""
    match value:
        case Job():
            return value.name
        case int():
            return f"v{value}"
        case slice():
            return "every boundary" if value == slice(None) else "every second boundary"
    return str(value)


V2 = pytest.mark.parametrize("version", in_ci([2], otherwise=[2, 3]), ids=named)
V3 = pytest.mark.parametrize("version", in_ci([3], otherwise=[2, 3]), ids=named)
"""Both formats; in CI one, in turn."""
JOB = pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
BOOKKEEPING = (
    "store.append_log",
    "store.claim",
    "store.heartbeat",
    "store.reap",
    "store.register",
    "store.release",
    "store.retire",
)
"""What workers do at any time: killed there, they are nowhere in the delivery. tests/behaviour kills them there."""


@pytest.fixture
def pipeline(connect_url: str) -> Iterator[Pipeline]:
    """Give a project of its own."""
    with pipeline_on(connect_url) as made:
        yield made


@pytest.fixture
def shared_pipeline(connect_url: str, postgres_state: str) -> Iterator[Pipeline]:
    """Give a project whose state is in PostgreSQL, so that several workers may be at it."""
    with pipeline_on(connect_url, postgres_state) as made:
        yield made


def points_of(pipeline: Pipeline) -> list[str]:
    """Return the durable boundaries that an instance passes: name and how often it was passed by then."""
    pipeline.append()
    pipeline.start()
    assert not pipeline.work("*:1:count")
    passed: Counter[str] = Counter()
    found = []
    for point in pipeline.points():
        passed[point] += 1
        if not point.startswith(BOOKKEEPING):
            found.append(f"{point}:{passed[point]}")
    return found


def is_of_delivery(point: str) -> bool:
    """Tell whether a point lies where ways of writing differ: from the branch to the publishing commit."""
    return point.startswith("delivery.") or point.partition(":")[0].endswith((".stage", ".publish", ".swap"))


# The whole way, killed everywhere.


KILLED = [(INSERT, 3, slice(None)), (MERGE, 3, slice(0, None, 2)), (OVERWRITE, 2, slice(1, None, 2))]
"""What is killed in CI: a way of writing, a table format, and at which of the boundaries."""
KILLED_EVERYWHERE = [(job, version, slice(None)) for job in JOBS.values() for version in (2, 3)]


@pytest.mark.parametrize(
    ("job", "version", "places"),
    in_ci(KILLED, otherwise=KILLED_EVERYWHERE),
    ids=named,
)
def test_a_kill_at_any_boundary_delivers_each_row_once(
    pipeline: Pipeline, job: Job, version: int, places: slice
) -> None:
    """From the capture to the commit, whatever was the last thing that lasted: the next worker goes on from there."""
    pipeline.build(job, version=version)
    points = points_of(pipeline)
    is_whole = places == slice(None)
    for point in points if is_whole else list(filter(is_of_delivery, points))[places]:
        pipeline.append()
        pipeline.run(f"{point}:kill")
        pipeline.check()
    assert pipeline.kills > (20 if is_whole else 2)
    pipeline.check_clean()


@pytest.mark.parametrize("job", [INSERT, MERGE] if ALL else [INSERT], ids=lambda job: job.name)
def test_a_second_kill_during_the_recovery_is_survived_too(pipeline: Pipeline, job: Job) -> None:
    """The one who takes over dies as well, a third of the way further on, and the third one brings it to its end."""
    pipeline.build(job, version=3)
    points = [point for point in points_of(pipeline) if is_of_delivery(point)]
    for place, point in list(enumerate(points))[:: in_ci(2, otherwise=1)]:
        for again in points[place::3] if ALL else [points[(place + 3) % len(points)]]:
            pipeline.append()
            run = pipeline.start()
            assert pipeline.work(f"{point}:kill")
            pipeline.work(f"{again}:kill")
            pipeline.work()
            assert pipeline.fresh(run).status is RunStatus.SUCCEEDED
            pipeline.check()
    assert pipeline.kills > in_ci(len(points) // 2, otherwise=len(points))
    pipeline.check_clean()


def test_a_kill_at_any_boundary_of_a_held_delivery_delivers_each_row_once(pipeline: Pipeline) -> None:
    """With ``publish: commit`` the job leaves its result on a branch, and IpCommit publishes it."""
    pipeline.build(OVERWRITE, version=3)
    pipeline.push(spark={"publish": "commit"})
    for point in filter(is_of_delivery, points_of(pipeline)):
        pipeline.append()
        pipeline.run(f"{point}:kill")
        pipeline.check()
    assert pipeline.kills > 4
    pipeline.check_clean()


def test_an_instance_that_was_abandoned_after_the_publish_is_finished_by_the_next(pipeline: Pipeline) -> None:
    """Its rows are in the target, but the checkpoint has not moved: the next instance takes over its capture."""
    pipeline.build(MERGE).append()
    run = pipeline.start()
    assert pipeline.work("after.publish:1:kill")
    pipeline.project.engine.kill(Address("pipe", run.instance_id))
    pipeline.work()
    assert pipeline.fresh(run).status is RunStatus.FAILED
    seen = dict(pipeline.rows)
    pipeline.append()
    assert pipeline.run().status is RunStatus.SUCCEEDED
    pipeline.check(seen)
    assert pipeline.run().status is RunStatus.SUCCEEDED
    pipeline.check()
    pipeline.check_clean()


def test_an_instance_that_was_abandoned_before_the_publish_leaves_its_rows_to_the_next(pipeline: Pipeline) -> None:
    """Nobody has seen them; the next one captures them with its own, and the older one cannot come back with them."""
    pipeline.build(MERGE).append()
    run = pipeline.start()
    assert pipeline.work("before.publish:1:kill")
    pipeline.project.engine.kill(Address("pipe", run.instance_id))
    pipeline.work()
    pipeline.append()
    assert pipeline.run().status is RunStatus.SUCCEEDED
    pipeline.check()
    with pytest.raises(ActionRefused, match="was abandoned for the newer capture"):
        pipeline.restart(run)
    pipeline.append()
    assert pipeline.run().status is RunStatus.SUCCEEDED
    pipeline.check()
    pipeline.check_clean()


# B.1: crash points, by number.


def test_b01_killed_before_the_capture_nothing_is_left(pipeline: Pipeline) -> None:
    """Nothing lasted, so the next worker captures as if for the first time."""
    pipeline.build().append()
    run = pipeline.start()
    assert pipeline.work("before.capture:1:kill")
    assert pipeline.listed() == []
    assert pipeline.refs(SOURCE) == set()
    assert pipeline.files("icdc", ending="") == set()
    pipeline.append()
    pipeline.work()
    assert pipeline.fresh(run).status is RunStatus.SUCCEEDED
    pipeline.check()
    pipeline.check_clean()


def test_b02_killed_after_the_tag_the_tag_goes_with_the_garbage(pipeline: Pipeline) -> None:
    """The tag that pins the snapshot is left without a capture: it ages out by itself, and gc removes it."""
    pipeline.build().append()
    pipeline.start()
    assert pipeline.work("capture.tagged:1:kill")
    (tag,) = pipeline.refs(SOURCE)
    assert pipeline.metadata(SOURCE)["refs"][tag]["max-ref-age-ms"] > 0
    assert pipeline.listed() == []
    pipeline.work()
    pipeline.check()
    assert pipeline.refs(SOURCE) == {tag}
    pipeline.check_clean()


def test_b03_killed_before_the_icdc_table_is_registered_only_our_own_files_are_left(pipeline: Pipeline) -> None:
    """The orphans lie where captures have their files, none of them in the folder of the source."""
    pipeline.build().append()
    before = pipeline.files(SOURCE, ending="")
    pipeline.start()
    assert pipeline.work("capture.written:1:kill")
    assert pipeline.files("icdc", ending=".avro")
    new = pipeline.files(SOURCE, ending="") - before
    assert all(path.name.endswith(".metadata.json") for path in new), "more than the commit that tagged"
    pipeline.work()
    pipeline.check()
    pipeline.check_clean()


def test_b04_killed_after_the_icdc_table_is_registered_another_one_is_made(pipeline: Pipeline) -> None:
    """Nobody knows of the first table, whose name is its own; the second is captured and read, gc drops the first."""
    pipeline.build().append()
    pipeline.start()
    assert pipeline.work("capture.registered:1:kill")
    (orphan,) = icdc_tables(pipeline)
    assert pipeline.listed() == []
    pipeline.append()
    pipeline.work()
    pipeline.check()
    (capture,) = pipeline.listed()
    assert capture.document["tables"][0]["icdc_table"] != orphan
    pipeline.check_clean()


def test_b05_killed_after_the_capture_is_recorded_it_is_used_again_and_never_widened(pipeline: Pipeline) -> None:
    """What came in between the kill and the recovery is left to the next instance."""
    pipeline.build().append()
    run = pipeline.start()
    assert pipeline.work("store.open.after_commit:1:kill")
    (capture,) = pipeline.listed()
    seen = dict(pipeline.rows)
    pipeline.append()
    pipeline.work()
    assert pipeline.fresh(run).status is RunStatus.SUCCEEDED
    (again,) = pipeline.listed()
    assert (again.capture_id, again.document["tables"]) == (capture.capture_id, capture.document["tables"])
    pipeline.check(seen)
    pipeline.run()
    pipeline.check()


@V3
def test_b06_killed_during_the_job_what_it_still_writes_is_seen_by_nobody(pipeline: Pipeline, version: int) -> None:
    """Spark goes on with the job of a dead worker, and commits it to a branch that nobody will publish."""
    pipeline.build(version=version)
    pipeline.append()
    pipeline.run()
    begin_slowly(pipeline)
    run = pipeline.start()
    worker = pipeline.start_worker()
    wait_until(lambda: has_begun(pipeline))
    (left,) = pipeline.refs(TARGET)
    at = pipeline.metadata(TARGET)["refs"][left]["snapshot-id"]
    send(worker, signal.SIGKILL)
    assert pipeline.ended(worker)
    pipeline.work()
    assert pipeline.fresh(run).status is RunStatus.SUCCEEDED
    pipeline.check()
    wait_until(lambda: pipeline.metadata(TARGET)["refs"][left]["snapshot-id"] != at)
    pipeline.check()
    pipeline.push()
    pipeline.append()
    pipeline.run()
    pipeline.check()
    pipeline.check_clean()


@JOB
def test_b07_killed_after_the_publish_the_job_is_not_run_again(pipeline: Pipeline, job: Job) -> None:
    """The next worker finds the property on the target: the step has succeeded, and Spark has nothing to do."""
    pipeline.build(job, version=3)
    pipeline.append()
    run = pipeline.start()
    assert pipeline.work("after.publish:1:kill")
    head, files = pipeline.head(TARGET), pipeline.files(TARGET)
    assert pipeline.status(run, "write") is StepStatus.RUNNING
    pipeline.work()
    assert pipeline.status(run, "write") is StepStatus.SUCCEEDED
    assert (pipeline.head(TARGET), pipeline.files(TARGET)) == (head, files)
    pipeline.check()
    pipeline.check_clean()


LOST = [(INSERT, "reply"), (MERGE, "request"), (OVERWRITE, "reply")]
LOST_IN_ALL = [(job, lost) for job in JOBS.values() for lost in ("reply", "request")]


@pytest.mark.parametrize(("job", "lost"), in_ci(LOST, otherwise=LOST_IN_ALL), ids=named)
def test_b08_an_error_of_the_publish_is_looked_into(pipeline: Pipeline, job: Job, lost: str) -> None:
    """The commit was made and the answer lost, or it was not made: the table is read again, and tells."""
    pipeline.build(job, version=3)
    pipeline.append()
    run = pipeline.start()
    assert not pipeline.work(lost=lost)
    assert pipeline.fresh(run).status is RunStatus.SUCCEEDED, pipeline.told(run, "write")
    pipeline.check()
    pipeline.append()
    pipeline.run()
    pipeline.check()
    pipeline.check_clean()


@pytest.mark.parametrize(
    "point", ["before.commit", "store.commit.before_commit", "store.commit.after_commit", "after.commit"]
)
def test_b09_killed_during_the_commit_the_checkpoint_moves_once(pipeline: Pipeline, point: str) -> None:
    """Before the transaction nothing has moved, after it there is nothing to do."""
    pipeline.build().append()
    run = pipeline.start()
    assert pipeline.work(f"{point}:1:kill")
    (capture,) = pipeline.listed()
    is_moved = point in {"store.commit.after_commit", "after.commit"}
    assert capture.status is (Status.COMMITTED if is_moved else Status.OPEN)
    pipeline.work()
    assert pipeline.fresh(run).status is RunStatus.SUCCEEDED
    pipeline.check()
    assert len(pipeline.captures.checkpoint_log()) == 1
    pipeline.append()
    pipeline.run()
    pipeline.check()


LATE = [
    (INSERT, "before.capture"),
    (INSERT, "capture.registered"),
    (OVERWRITE, "after.stage"),
    (INSERT, "before.publish"),
    (MERGE, "before.swap"),
    (OVERWRITE, "after.swap"),
    (INSERT, "before.commit"),
]
"""Where workers are stopped, by what they write: in CI each point once, otherwise with every way of writing."""
LATE_IN_ALL = [(job, point) for job in JOBS.values() for _, point in LATE]


@pytest.mark.parametrize(("job", "point"), in_ci(LATE, otherwise=LATE_IN_ALL), ids=named)
def test_b10_a_worker_that_wakes_late_delivers_nothing_twice(shared_pipeline: Pipeline, job: Job, point: str) -> None:
    """Stopped past its lease, another one does its work, then it goes on from where it was: nothing is left to do."""
    pipeline = shared_pipeline.build(job, version=3)
    pipeline.append()
    run = pipeline.start()
    late = pipeline.stopped(point, **shared())
    pipeline.work(**shared())
    assert pipeline.fresh(run).status is RunStatus.SUCCEEDED
    pipeline.check()
    pipeline.let_go(late)
    pipeline.check()
    pipeline.append()
    pipeline.start()
    pipeline.work(**shared())
    pipeline.check()
    pipeline.check_clean()


OLDER = [
    (job, point)
    for job, point in in_ci(LATE, otherwise=LATE_IN_ALL)
    if point in {"capture.registered", "before.swap", "before.commit"}
]


@pytest.mark.parametrize(("job", "point"), OLDER, ids=named)
def test_b11_a_worker_of_an_older_instance_that_wakes_late_is_refused(
    shared_pipeline: Pipeline, job: Job, point: str
) -> None:
    """Its capture is in the target already, with a later one on top; neither the table nor the checkpoint goes back."""
    pipeline = shared_pipeline.build(job, version=3)
    pipeline.append()
    pipeline.start()
    late = pipeline.stopped(point, **shared())
    for _ in range(2):
        pipeline.work(**shared())
        pipeline.append()
        pipeline.start()
    pipeline.work(**shared())
    pipeline.check()
    moves = len(pipeline.captures.checkpoint_log())
    pipeline.let_go(late)
    pipeline.check()
    assert len(pipeline.captures.checkpoint_log()) == moves
    pipeline.append()
    pipeline.start()
    pipeline.work(**shared())
    pipeline.check()
    pipeline.check_clean()


def test_b11_a_capture_of_a_killed_instance_that_wakes_late_takes_nothing_from_the_next(
    shared_pipeline: Pipeline,
) -> None:
    """A worker stopped in the capture of an instance that was killed gives up no capture but the one it has seen."""
    pipeline = shared_pipeline.build(MERGE, version=3)
    pipeline.append()
    first = pipeline.start()
    late = pipeline.stopped("capture.registered", **shared())
    pipeline.project.engine.kill(Address("pipe", first.instance_id))
    pipeline.work(**shared())
    assert pipeline.fresh(first).status is RunStatus.FAILED
    pipeline.append()
    second = pipeline.start()
    published = pipeline.stopped("before.commit", **shared())
    send(late, signal.SIGCONT)
    wait_until(pipeline.is_over)
    send(published, signal.SIGCONT)
    pipeline.dismiss()
    assert pipeline.fresh(second).status is RunStatus.SUCCEEDED, pipeline.told(second, "commit")
    pipeline.check()
    pipeline.check_clean()


def test_b12_a_capture_of_nothing_runs_no_job_and_passes_compactions_only(pipeline: Pipeline) -> None:
    """The instance succeeds without Spark; the checkpoint moves over a compaction, and no further."""
    pipeline.build().append()
    pipeline.append()
    pipeline.run()
    before, staged = pipeline.head(TARGET), pipeline.calls("stage")
    run = pipeline.run()
    assert run.status is RunStatus.SUCCEEDED
    pipeline.source.compact()
    compacted = pipeline.head(SOURCE)
    run = pipeline.run()
    assert run.status is RunStatus.SUCCEEDED
    assert (pipeline.head(TARGET), pipeline.calls("stage")) == (before, staged)
    (checkpoint,) = pipeline.captures.checkpoints()
    assert checkpoint.checkpoint.snapshot_id == compacted
    pipeline.append()
    pipeline.run()
    pipeline.check()


@pytest.mark.parametrize(
    ("script", "version"),
    [
        (f"INSERT INTO {TARGET} SELECT id, k, n FROM ${{capture.icdc_table}} WHERE false", 2),
        (f"INSERT OVERWRITE {TARGET} SELECT id, k, n FROM ${{capture.icdc_table}} WHERE false", 3),
        ("SELECT count(*) FROM ${capture.icdc_table}", 3),
    ],
    ids=["insert-v2", "overwrite-v3", "select-v3"],
)
def test_b13_a_job_that_writes_nothing_is_published_all_the_same(pipeline: Pipeline, script: str, version: int) -> None:
    """The property moves together with main, by a snapshot of no rows, so that whoever comes late is refused."""
    pipeline.build(version=version)
    pipeline.append()
    pipeline.run()
    before, head = dict(pipeline.rows), pipeline.head(TARGET)
    pipeline.push(script, {"conf": {"spark.sql.sources.partitionOverwriteMode": "dynamic"}})
    pipeline.append()
    run = pipeline.run("after.publish:1:kill")
    assert run.status is RunStatus.SUCCEEDED
    assert pipeline.head(TARGET) != head
    pipeline.check(before)
    pipeline.check_clean()


def test_b14_a_spark_that_was_killed_during_the_job_is_restarted(connect_url: str) -> None:
    """The worker's own JVM dies: a failure of the platform, tried again on another one, and nothing of it is seen."""
    own = 'master = "local[1]"\ndriver_memory = "512m"'
    with pipeline_on(connect_url, spark_of_workers=own) as pipeline:
        pipeline.build(version=3)
        begin_slowly(pipeline)
        run = pipeline.start()
        worker = pipeline.start_worker()
        wait_until(lambda: has_begun(pipeline))
        (jvm,) = pipeline.descendants(worker, "SparkConnectServer")
        os.kill(jvm, signal.SIGKILL)
        assert not pipeline.ended(worker)
        assert pipeline.fresh(run).status is RunStatus.SUCCEEDED
        attempts = pipeline.project.store.engine.attempts(run.uuid, "write")
        assert [attempt.status for attempt in attempts] == [StepStatus.PLATFORM_FAILED, StepStatus.SUCCEEDED]
        pipeline.check()
        pipeline.check_clean()


def test_b15_dropping_or_purging_the_icdc_table_leaves_the_source_whole(pipeline: Pipeline) -> None:
    """Someone drops it before the job reads it: no file of the source is touched, and the job tells what is wrong."""
    pipeline.build().append()
    run = pipeline.start()
    worker = pipeline.stopped("before.stage")
    (name,) = icdc_tables(pipeline)
    before = pipeline.files(SOURCE)
    with pytest.raises(LakeError):
        pipeline.lake.catalog("lake").pyiceberg().purge_table(name)
    with pytest.raises(Exception, match=r"(?i)gc is disabled|gc\.enabled"):
        pipeline.sql(f"DROP TABLE {name} PURGE")
    pipeline.sql(f"DROP TABLE {name}")
    assert pipeline.files(SOURCE) == before
    pipeline.let_go(worker)
    assert pipeline.fresh(run).status is RunStatus.FAILED
    assert name in pipeline.told(run, "write")
    assert pipeline.captures.checkpoints() == []
    (capture,) = pipeline.listed()
    pipeline.captures.abandon(capture.capture_id)
    pipeline.append()
    pipeline.run()
    pipeline.check()
    pipeline.check_clean()


# B.2, as far as it is about delivery.


def test_b24_an_old_backup_of_the_state_continues_from_what_the_target_holds(pipeline: Pipeline) -> None:
    """A restored checkpoint lies before what the target holds: the capture step moves it there, and adds nothing."""
    pipeline.build().append()
    pipeline.run()
    state = Path(pipeline.settings.home, "state.db")
    backup = pipeline.folder / "backup.db"
    back_up(state, backup)
    pipeline.append()
    pipeline.run()
    pipeline.check()
    back_up(backup, state)
    pipeline.run()
    assert pipeline.delivered() == INSERT.expected(pipeline.rows)
    pipeline.append()
    pipeline.run()
    pipeline.check()


# B.3: the data side.


def test_b28_what_comes_into_the_source_after_the_capture_is_left_to_the_next(pipeline: Pipeline) -> None:
    """The end of a capture is set once, whatever is appended while its job runs."""
    pipeline.build().append()
    seen = dict(pipeline.rows)
    pipeline.start()
    worker = pipeline.stopped("after.capture")
    pipeline.append()
    pipeline.append()
    pipeline.let_go(worker)
    pipeline.check(seen)
    pipeline.run()
    pipeline.check()
    first, second = reversed(pipeline.listed())
    assert second.document["tables"][0]["from_snapshot_id"] == first.document["tables"][0]["to_snapshot_id"]


@V2
def test_b29_a_foreign_append_to_the_target_costs_no_second_run(pipeline: Pipeline, version: int) -> None:
    """An INSERT whose files are appended on the new head, with their rows and no others."""
    pipeline.build(version=version)
    pipeline.append()
    run = pipeline.start()
    worker = pipeline.stopped("before.publish")
    files = pipeline.files(TARGET)
    pipeline.sql(f"INSERT INTO {TARGET} VALUES (-1, 0, 5)")
    foreign = pipeline.files(TARGET) - files
    pipeline.let_go(worker)
    assert pipeline.fresh(run).status is RunStatus.SUCCEEDED
    assert pipeline.delivered() == INSERT.expected(pipeline.rows) + Counter([(-1, 0, 5)])
    assert pipeline.files(TARGET) == files | foreign, "the job has written again"
    assert pipeline.calls("stage") == 1
    pipeline.sql(f"DELETE FROM {TARGET} WHERE id = -1")
    pipeline.check()
    pipeline.append()
    pipeline.run()
    pipeline.check()
    pipeline.check_clean()


@pytest.mark.parametrize(
    ("job", "version"),
    in_ci([(MERGE, 2), (OVERWRITE, 3)], otherwise=[(job, version) for job in (MERGE, OVERWRITE) for version in (2, 3)]),
    ids=named,
)
def test_b29_a_foreign_write_to_the_target_makes_other_jobs_run_again(
    pipeline: Pipeline, job: Job, version: int
) -> None:
    """What they compute depends on what is there, so they compute it from the new head."""
    pipeline.build(job, version=version)
    pipeline.append(3)
    pipeline.run()
    pipeline.append(3)
    run = pipeline.start()
    worker = pipeline.stopped("before.publish")
    pipeline.sql(f"UPDATE {TARGET} SET n = n + 1000 WHERE k = 1")
    pipeline.let_go(worker)
    assert pipeline.fresh(run).status is RunStatus.SUCCEEDED, pipeline.told(run, "write")
    assert pipeline.calls("stage") == 3, "one for the first instance, two for the second"
    pipeline.sql(f"UPDATE {TARGET} SET n = n - 1000 WHERE k = 1")
    pipeline.check()
    pipeline.check_clean()


def test_b30_expiry_of_the_source_between_capture_and_job_takes_nothing_away(pipeline: Pipeline) -> None:
    """The tag keeps the files; after the commit they may go."""
    pipeline.build().append()
    pipeline.run()
    pipeline.append()
    pipeline.start()
    worker = pipeline.stopped("before.stage")
    pipeline.source.compact()
    expire(pipeline)
    pipeline.let_go(worker)
    pipeline.check()
    expire(pipeline)
    pipeline.append()
    pipeline.run()
    pipeline.check()


def test_b30_a_checkpoint_older_than_the_history_is_reported_and_nothing_is_scanned(pipeline: Pipeline) -> None:
    """The capture fails and says so, instead of taking the whole table; target and checkpoint stay."""
    pipeline.build().append()
    pipeline.run()
    seen = dict(pipeline.rows)
    pipeline.append()
    pipeline.append()
    expire(pipeline)
    run = pipeline.run()
    assert run.status is RunStatus.FAILED
    assert "expired" in pipeline.told(run, "capture")
    pipeline.check(seen)


def test_b31_a_compaction_of_the_source_between_capture_and_job_changes_nothing(pipeline: Pipeline) -> None:
    """The files of before are read, and those that the compaction wrote are no change."""
    pipeline.build().append()
    pipeline.append()
    pipeline.start()
    worker = pipeline.stopped("before.stage")
    pipeline.source.compact()
    pipeline.let_go(worker)
    pipeline.check()
    run = pipeline.run()
    assert run.status is RunStatus.SUCCEEDED
    pipeline.check()


@pytest.mark.parametrize("change", ["update", "delete"])
def test_b32_an_overwrite_or_delete_that_was_not_asked_for_is_an_error(pipeline: Pipeline, change: str) -> None:
    """The capture names the snapshot and fails; whoever asks for such changes gets them exactly."""
    pipeline.build().append()
    pipeline.run()
    seen = dict(pipeline.rows)
    if change == "update":
        pipeline.source.update([1], "n", 77)
    else:
        pipeline.source.delete([1])
    run = pipeline.run()
    assert run.status is RunStatus.FAILED
    assert str(pipeline.head(SOURCE)) in pipeline.told(run, "capture")
    pipeline.check(seen)
    pipeline.push(
        f"MERGE INTO {TARGET} t USING ${{capture.relation}} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT *",
        data_operations=["append", "overwrite", "delete"],
    )
    assert pipeline.run().status is RunStatus.SUCCEEDED
    pipeline.check(seen | ({1: 77} if change == "update" else {}))


def test_b33_a_source_that_was_re_created_is_not_taken_for_the_old_one(pipeline: Pipeline) -> None:
    """The same name, another table: the capture fails, and nothing is delivered twice."""
    pipeline.build().append()
    pipeline.run()
    seen = dict(pipeline.rows)
    pipeline.source.drop()
    pipeline.source.create(SOURCE, {"id": "long", "k": "long", "n": "long"}, days=False)
    pipeline.append()
    run = pipeline.run()
    assert run.status is RunStatus.FAILED
    assert "created again" in pipeline.told(run, "capture")
    pipeline.check(seen)


def test_b33_a_target_that_was_re_created_is_not_taken_for_the_old_one(pipeline: Pipeline) -> None:
    """What was delivered is not there any more, and only its owner knows what should happen."""
    pipeline.build(version=3)
    pipeline.append()
    pipeline.run()
    pipeline.sql(f"DROP TABLE {TARGET} PURGE")
    pipeline.create_target(3)
    pipeline.append()
    run = pipeline.run()
    assert run.status is RunStatus.FAILED
    assert "dropped and created again" in pipeline.told(run, "write")
    assert pipeline.delivered() == Counter()


def test_b33_a_target_re_created_during_the_first_job_gets_all_of_it(pipeline: Pipeline) -> None:
    """The branch is gone with the old table, so the job runs again, on the new one."""
    pipeline.build().append()
    run = pipeline.start()
    worker = pipeline.stopped("before.publish")
    pipeline.sql(f"DROP TABLE {TARGET}")
    pipeline.create_target()
    pipeline.let_go(worker)
    assert pipeline.calls("stage") == 2, "the first branch is gone with the first table"
    assert pipeline.fresh(run).status is RunStatus.SUCCEEDED
    pipeline.check()


EVOLUTIONS = {
    "rename": ("ALTER TABLE {t} RENAME COLUMN n TO number", "number"),
    "drop and add": ("ALTER TABLE {t} DROP COLUMN n; ALTER TABLE {t} ADD COLUMN n BIGINT", "n"),
    "promote": ("ALTER TABLE {t} ADD COLUMN small INT; ALTER TABLE {t} ALTER COLUMN small TYPE BIGINT", "n"),
    "partition": ("ALTER TABLE {t} ADD PARTITION FIELD bucket(2, id)", "n"),
}


@pytest.mark.parametrize("evolution", EVOLUTIONS)
def test_b34_a_schema_that_evolves_between_capture_and_job_reads_right(pipeline: Pipeline, evolution: str) -> None:
    """A captured change reads with the columns that it had, by their ids; the next one with those of then."""
    statements, column = EVOLUTIONS[evolution]
    pipeline.build().append()
    pipeline.start()
    worker = pipeline.stopped("before.stage")
    for statement in statements.replace("{t}", SOURCE).split("; "):
        pipeline.sql(statement)
    pipeline.let_go(worker)
    pipeline.check()
    delivered = pipeline.delivered()
    pipeline.push(INSERT.script.replace("id, k, n", f"id, k, {column}"))
    pipeline.sql(f"INSERT INTO {SOURCE} (id, k, {column}) VALUES (100, 1, 7)")
    assert pipeline.run().status is RunStatus.SUCCEEDED
    assert pipeline.delivered() == delivered + Counter([(100, 1, 7)])
    pipeline.check_clean()


def test_b35_a_source_that_was_rolled_back_is_not_rewound(pipeline: Pipeline) -> None:
    """What was delivered cannot be called back: the capture fails, and stays where it was."""
    pipeline.build().append()
    pipeline.run()
    old = pipeline.head(SOURCE)
    assert old is not None
    pipeline.append()
    pipeline.run()
    seen = dict(pipeline.rows)
    pipeline.source.set_current(old)
    pipeline.append()
    run = pipeline.run()
    assert run.status is RunStatus.FAILED
    assert "rolled back" in pipeline.told(run, "capture")
    pipeline.check(seen)


def test_b36_a_data_file_that_is_missing_fails_the_job_by_name(pipeline: Pipeline) -> None:
    """Neither the target nor the checkpoint moves; once the file is back, the instance goes on."""
    pipeline.build().append()
    pipeline.run()
    seen, old = dict(pipeline.rows), pipeline.files(SOURCE)
    pipeline.append()
    (lost,) = pipeline.files(SOURCE) - old
    shutil.move(lost, pipeline.folder / lost.name)
    run = pipeline.run()
    assert run.status is RunStatus.FAILED
    assert lost.name in pipeline.told(run, "write")
    assert pipeline.delivered() == INSERT.expected(seen)
    shutil.move(pipeline.folder / lost.name, lost)
    pipeline.restart(run)
    pipeline.work()
    assert pipeline.fresh(run).status is RunStatus.SUCCEEDED
    pipeline.check()


@V3
def test_b37_expiry_of_the_target_forgets_no_delivery(pipeline: Pipeline, version: int) -> None:
    """The property is the table's, not a snapshot's: a replay after all snapshots but one are gone does nothing."""
    pipeline.build(MERGE, version=version)
    pipeline.append()
    pipeline.run()
    pipeline.append()
    pipeline.start()
    assert pipeline.work("after.publish:1:kill")
    pipeline.sql(f"INSERT INTO {TARGET} VALUES (9, 9)")
    expire(pipeline, TARGET)
    pipeline.work()
    pipeline.sql(f"DELETE FROM {TARGET} WHERE k = 9")
    assert pipeline.delivered() == MERGE.expected(pipeline.rows)
    pipeline.append()
    pipeline.run()
    assert pipeline.delivered() == MERGE.expected(pipeline.rows)


@V2
def test_b37_a_target_that_was_rolled_back_is_refused(pipeline: Pipeline, version: int) -> None:
    """Rows that were delivered are gone from main: neither skipped nor delivered again without a word."""
    pipeline.build(version=version)
    pipeline.append()
    pipeline.run()
    first = pipeline.head(TARGET)
    seen = dict(pipeline.rows)
    pipeline.append()
    pipeline.run()
    pipeline.sql(f"CALL lake.system.rollback_to_snapshot('{TARGET}', {first})")
    pipeline.append()
    run = pipeline.run()
    assert run.status is RunStatus.FAILED
    assert "rolled back" in pipeline.told(run, "write")
    assert pipeline.delivered() == INSERT.expected(seen)


def begin_slowly(pipeline: Pipeline) -> None:
    """Let a row come in for a job that takes two seconds; ``has_begun`` tells that it is at it."""
    begin = f"reflect('org.apache.spark.util.Utils', 'createTempDir', '{pipeline.folder}', 'begun')"
    slowly = f"n + 0 * length(concat({begin}, reflect('java.lang.Thread', 'sleep', 2000L))) FROM"
    pipeline.push(INSERT.script.replace("n FROM", slowly))
    pipeline.append(1)


def has_begun(pipeline: Pipeline) -> bool:
    """Tell whether Spark is in the midst of a slow job."""
    return any(pipeline.folder.glob("begun-*"))


def icdc_tables(pipeline: Pipeline) -> list[str]:
    """Return the ICDC tables that there are."""
    return [name for name in pipeline.lake.catalog("lake").tables(("icdc",)) if name.startswith("icdc.")]


def expire(pipeline: Pipeline, table: str = SOURCE) -> None:
    """Expire all snapshots but the current one, and delete the files that nothing else needs."""
    pipeline.sql(f"CALL lake.system.expire_snapshots('{table}', TIMESTAMP '2100-01-01', 1)")


def shared() -> dict[str, Any]:
    """Return the plan of a worker that is not alone, and that others take for dead after a while.

    So long that on a busy machine it is not taken for dead while it works.
    """
    return {"is_alone": False, "options": replace(QUICK, lease=3.0)}


def back_up(state: Path, to: Path) -> None:
    """Copy a database of SQLite, as its own backup does."""
    with closing(sqlite3.connect(state)) as before, closing(sqlite3.connect(to)) as after:
        before.backup(after)
