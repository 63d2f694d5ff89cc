"""IpCapture, IpCommit and ICDC in workflows, on real tables; other steps do what a script says."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.engines import DONE, FATAL_ERROR, Playground
from tests.no_deliveries import NoDeliveries

from calve import failpoints
from calve.app import utc_now
from calve.capture import CaptureReport, Captures, Status
from calve.delivery import Published
from calve.engine import Outcome, Run, RunPolicy, RunStatus, Runtimes, StepContext, StepStatus
from calve.errors import ActionRefused
from calve.lake import Lake
from calve.settings import load
from calve.steps.captures import ICDC, IpCapture, IpCommit
from calve.store import Store
from calve.testing import PyIcebergWriter

S = StepStatus


@dataclass
class Held(NoDeliveries):
    """Deliveries that a test decides on."""

    delivered_of: set[str] = field(default_factory=set)
    published: list[str] = field(default_factory=list)

    def delivered(self, capture_id: str) -> bool:
        """Tell what the test said."""
        return capture_id in self.delivered_of

    def publish_held(self, capture_id: str) -> list[Published]:
        """Remember it."""
        self.published.append(capture_id)
        return []


@dataclass
class Place:
    """A playground with a lake, and one table in it."""

    playground: Playground
    lake: Lake
    captures: Captures
    writer: PyIcebergWriter
    deliveries: Held = field(default_factory=Held)
    ids: Iterator[int] = field(default_factory=lambda: count(1))

    def append(self, number: int = 2) -> None:
        """Add rows."""
        self.writer.append([{"id": next(self.ids), "day": 1, "n": 0} for _ in range(number)])

    def output(self, run: Run, name: str, step: str = "capture") -> Any:
        """Return an output of a step."""
        return self.playground.result(run, step, name)

    def capture_of(self, run: Run, step: str = "capture") -> CaptureReport:
        """Return the capture that a step took."""
        return self.captures.show(str(self.output(run, "capture_id", step)))


@pytest.fixture
def place(playground: Playground, store: Store, tmp_path: Path) -> Iterator[Place]:
    """Give a lake with a table db.events of two rows."""
    settings = load(tmp_path, {})
    lake, writer = Lake(settings), PyIcebergWriter(settings)
    numbers = count(1)
    captures = Captures(lake, store.captures, clock=utc_now, new_id=lambda: f"capture{next(numbers)}")
    found = Place(playground, lake, captures, writer)
    made: Runtimes = {
        "IpCapture": lambda: IpCapture(captures, found.deliveries),
        "IpCommit": lambda: IpCommit(captures, found.deliveries),
        "ICDC": lambda: ICDC(captures, found.deliveries, lake),
    }
    playground.executor.runtimes = {**playground.runtimes, **made}
    writer.create("db.events", {"id": "long", "day": "int", "n": "long"}, days=True)
    found.append()
    yield found
    writer.close()
    lake.close()


PIPELINE = """
Workflow:
  id: w
  dag: sequential
  jobs:
    - job: {id: capture, type: IpCapture, ip_capture: {source_tables: [db.events], range_columns: [id]}}
    - job: {id: job, type: Spark, targets: [db.daily], spark: {script: "SELECT * FROM ${capture.relation}"}}
    - job: {id: commit, type: IpCommit, ip_commit: {capture_step: capture}}
"""


def test_a_pipeline_takes_each_change_once(place: Place) -> None:
    """The second run begins where the first one ended."""
    place.playground.push(PIPELINE)
    run = place.playground.start()
    assert run.status is RunStatus.SUCCEEDED
    assert (place.output(run, "records"), place.output(run, "changed")) == (2, True)
    assert place.output(run, "range_predicate") == "`id` BETWEEN 1 AND 2"
    assert (place.output(run, "id_lower"), place.output(run, "id_upper")) == ("1", "2")
    assert place.output(run, "deletes_relation") == "(SELECT * FROM db.events WHERE false)"
    assert place.output(run, "from_snapshot_id") == -1
    spark = place.output(run, "spark", "job")
    assert spark["capture"] == place.output(run, "capture_id")
    assert place.output(run, "committed", "commit") is True
    assert place.deliveries.published == [place.output(run, "capture_id")]
    assert place.capture_of(run).consumer == "w/capture"
    place.append(3)
    assert place.output(place.playground.start(), "records") == 3


def test_nothing_changed_means_nothing_to_do(place: Place) -> None:
    """What comes after the capture is skipped, the run has succeeded, and the checkpoint passes compactions."""
    place.playground.push(PIPELINE)
    place.playground.start()
    place.writer.append([{"id": 9, "day": 1, "n": 0}])
    place.playground.start()
    place.writer.compact()
    run = place.playground.start()
    assert run.status is RunStatus.SUCCEEDED
    assert place.playground.statuses(run) == {"capture": S.SUCCEEDED, "job": S.UNSATISFIED, "commit": S.UNSATISFIED}
    assert place.capture_of(run).status == Status.COMMITTED
    (checkpoint,) = place.captures.checkpoints("w/capture")
    assert checkpoint.checkpoint.snapshot_id == place.output(run, "to_snapshot_id")


def test_what_found_nothing_says_since_when(place: Place) -> None:
    """The capture, and every step that did not run because of it."""
    place.playground.push(PIPELINE)
    first = place.playground.start()
    run = place.playground.start()
    (checkpoint,) = place.captures.checkpoints("w/capture")
    at = datetime.fromtimestamp(checkpoint.checkpoint.timestamp_ms / 1_000, UTC)
    snapshot = f"snapshot {place.output(first, 'to_snapshot_id')} ({at:%Y-%m-%d %H:%M:%S} UTC)"
    said = f"Nothing changed in db.events since {snapshot}."
    assert place.playground.told(run, "capture") == said
    assert said in place.playground.log(place.playground.attempt(run, "capture"))
    assert place.playground.told(run, "job") == f"Not run: capture: {said}"
    assert place.playground.told(run, "commit") == f"Not run: capture: {said}"
    place.append(1)
    place.playground.start()
    place.writer.compact()
    assert ", though 1 newer (replace)." in place.playground.told(place.playground.start(), "job")


def test_an_empty_table_reports_it(place: Place) -> None:
    """Beside another one in which nothing changed."""
    place.writer.create("db.none", {"id": "long"}, days=False)
    place.playground.push(
        PIPELINE.replace("[db.events]", "[db.events, db.none]").replace("${capture.", "${capture.events.")
    )
    place.playground.start()
    told = place.playground.told(place.playground.start(), "capture")
    assert told.startswith("Nothing changed in db.events since snapshot ")
    assert told.endswith("; db.none is empty.")
    place.playground.push(PIPELINE.replace("db.events", "db.none").replace("id: w", "id: other"))
    assert place.playground.told(place.playground.start("other"), "job") == "Not run: capture: db.none is empty."


def test_a_capture_that_found_something_says_nothing(place: Place) -> None:
    """What there is stands in its outputs."""
    place.playground.push(PIPELINE)
    assert place.playground.told(place.playground.start(), "capture") == ""


def test_a_run_may_continue_without_a_change(place: Place) -> None:
    """Where the workflow says so; the queries find no row."""
    place.playground.push(PIPELINE.replace("range_columns: [id]", "range_columns: [id], when_unchanged: run"))
    place.playground.start()
    run = place.playground.start()
    assert set(place.playground.statuses(run).values()) == {S.SUCCEEDED}
    assert place.output(run, "range_predicate") == "false"
    assert place.output(run, "committed", "commit") is False


def test_a_restart_works_on_the_same_capture(place: Place) -> None:
    """However much has changed since; the rest is for the next instance."""
    place.playground.push(PIPELINE)
    place.playground.script.parts["job"] = [FATAL_ERROR, FATAL_ERROR, DONE]
    run = place.playground.start()
    assert run.status is RunStatus.FAILED
    place.append(5)
    again = place.playground.restart(run, policy=RunPolicy.RESTART_FROM_BEGINNING)
    assert place.output(again, "capture_id") == place.output(run, "capture_id")
    assert "and used again" in place.playground.log(place.playground.attempt(again, "capture"))
    last = place.playground.restart(again)
    assert last.status is RunStatus.SUCCEEDED
    assert place.output(last, "committed", "commit") is True
    assert place.output(place.playground.start(), "records") == 5


def test_a_capture_that_was_left_open_is_abandoned(place: Place) -> None:
    """The next instance takes all of it."""
    place.playground.push(PIPELINE)
    place.playground.script.parts["job"] = [FATAL_ERROR, DONE]
    first = place.playground.start()
    place.append(3)
    second = place.playground.start()
    assert second.status is RunStatus.SUCCEEDED
    assert place.output(second, "records") == 5
    assert place.capture_of(first).status == Status.ABANDONED
    assert "is abandoned" in place.playground.log(place.playground.attempt(second, "capture"))


@pytest.mark.parametrize("options", [{}, {"is_latest": True}])
def test_a_restart_whose_capture_was_abandoned_reports_it(place: Place, options: dict[str, Any]) -> None:
    """And which one holds its rows; the commands that it offers work."""
    place.playground.push(PIPELINE)
    place.playground.script.parts["job"] = [FATAL_ERROR, FATAL_ERROR, DONE]
    first, second = place.playground.start(), place.playground.start()
    old, new = (str(place.output(run, "capture_id")) for run in (first, second))
    with pytest.raises(ActionRefused) as refused:
        place.playground.restart(first, **options)
    told = f"w instance 1 cannot continue where it stopped: capture {old} was abandoned for the newer capture {new}, "
    assert refused.value.message == f"{told}taken by w instance 2, which contains the same changes."
    assert "calve status w 2" in refused.value.remedy
    latest = "--latest " if options else ""
    assert refused.value.remedy.endswith(f"calve restart w 1 {latest}--step capture")
    place.append(1)
    again = place.playground.restart(first, "capture", **options)
    assert again.status is RunStatus.SUCCEEDED
    assert place.output(again, "records") == 3
    with pytest.raises(ActionRefused, match="taken by w instance 1, which contains the same changes and is committed"):
        place.playground.restart(second, **options)


def test_a_capture_that_was_abandoned_by_hand_is_not_gone_on_with(place: Place) -> None:
    """There is no newer one yet."""
    place.playground.push(PIPELINE)
    place.playground.script.parts["job"] = [FATAL_ERROR, DONE]
    run = place.playground.start()
    place.captures.abandon(str(place.output(run, "capture_id")))
    with pytest.raises(ActionRefused, match="was abandoned, so that it can no longer be delivered") as refused:
        place.playground.restart(run)
    assert refused.value.remedy.endswith("calve restart w 1 --step capture")
    assert place.playground.restart(run, "capture").status is RunStatus.SUCCEEDED


def test_a_commit_says_which_capture_took_the_place_of_its_own(place: Place) -> None:
    """Where another instance took one meanwhile, in parallel."""
    place.playground.push(PIPELINE)

    def meanwhile(_: StepContext) -> Outcome:
        place.captures.capture(["db.events"], "w/capture", key="w/7/capture", supersede=True)
        return DONE

    place.playground.script.parts["job"] = meanwhile
    run = place.playground.start()
    told = place.playground.told(run, "commit")
    assert "was abandoned for the newer capture capture2, taken by w instance 7" in told
    assert "calve status w 7" in told
    assert told.endswith("calve restart w 1 --step capture")
    place.playground.script.parts["job"] = DONE
    assert place.playground.restart(run, "capture").status is RunStatus.SUCCEEDED


def test_a_changed_capture_is_taken_again(place: Place) -> None:
    """With the newest version: the old one is given up, and no row is lost or comes twice."""
    place.playground.push(PIPELINE)
    place.playground.script.parts["job"] = [FATAL_ERROR, DONE]
    run = place.playground.start()
    place.append(1)
    place.playground.push(
        PIPELINE.replace("range_columns: [id]", "range_columns: [id], data_operations: [append, delete]")
    )
    again = place.playground.restart(run, is_latest=True)
    assert again.status is RunStatus.SUCCEEDED
    assert place.output(again, "records") == 3
    assert place.capture_of(run).status == Status.ABANDONED
    assert "the step now asks for something else" in place.playground.log(place.playground.attempt(again, "capture"))
    assert place.capture_of(again).asked["operations"] == ["append", "delete"]
    place.append(4)
    assert place.output(place.playground.start(), "records") == 4


def test_a_capture_of_which_something_was_delivered_is_finished_though_the_step_changed(place: Place) -> None:
    """It cannot be given up any more; but other tables are not taken for those that were asked for."""
    place.playground.push(PIPELINE)
    place.playground.script.parts["job"] = FATAL_ERROR
    run = place.playground.start()
    capture_id = str(place.output(run, "capture_id"))
    place.deliveries.delivered_of.add(capture_id)
    place.playground.push(PIPELINE.replace("range_columns: [id]", "range_columns: [id, day]"))
    again = place.playground.restart(run, is_latest=True)
    assert place.output(again, "capture_id") == capture_id
    place.writer.create("db.others", {"id": "long"}, days=False)
    place.playground.push(PIPELINE.replace("db.events", "db.others"))
    last = place.playground.restart(again, is_latest=True)
    assert f"`calve commit {capture_id}`, then start a new instance" in place.playground.told(last, "capture")
    place.captures.commit(capture_id)
    last = place.playground.restart(last, is_latest=True)
    assert place.playground.told(last, "capture").endswith("Start a new instance.")


def test_an_unchanged_capture_is_kept(place: Place) -> None:
    """The fix of a step after it works on the same rows; what came since is for the next instance."""
    place.playground.push(PIPELINE)
    place.playground.script.parts["job"] = [FATAL_ERROR, DONE]
    run = place.playground.start()
    place.append(5)
    place.playground.push(PIPELINE.replace("SELECT *", "SELECT 1"))
    again = place.playground.restart(run, is_latest=True)
    assert (again.status, set(again.carried)) == (RunStatus.SUCCEEDED, {"capture"})
    assert place.output(place.playground.start(), "records") == 5


def test_a_capture_of_which_something_was_delivered_is_finished(place: Place) -> None:
    """By the next instance, which leaves what is newer to the one after it."""
    place.playground.push(PIPELINE)
    place.playground.script.parts["job"] = [FATAL_ERROR, DONE]
    first = place.playground.start()
    place.deliveries.delivered_of.add(str(place.output(first, "capture_id")))
    place.append(3)
    second = place.playground.start()
    assert second.status is RunStatus.SUCCEEDED
    assert place.output(second, "capture_id") == place.output(first, "capture_id")
    assert "continues with it" in place.playground.log(place.playground.attempt(second, "capture"))
    assert place.capture_of(first).status == Status.COMMITTED
    assert place.output(place.playground.start(), "records") == 3


def test_a_capture_that_was_cleaned_up_cannot_be_used_again(place: Place) -> None:
    """The step says so, and what to do."""
    place.playground.push(PIPELINE)
    run = place.playground.start()
    assert [found.capture_id for found in place.captures.collect_garbage()] == [place.output(run, "capture_id")]
    again = place.playground.restart(run, policy=RunPolicy.RESTART_FROM_BEGINNING)
    assert again.status is RunStatus.FAILED
    assert "its tables were cleaned up" in place.playground.told(again, "capture")
    assert "Start a new instance" in place.playground.told(again, "capture")


def test_an_open_capture_of_other_tables_is_not_taken_for_ours(place: Place) -> None:
    """Someone has to decide what becomes of it."""
    place.playground.push(PIPELINE)
    place.playground.script.parts["job"] = [FATAL_ERROR]
    first = place.playground.start()
    capture_id = str(place.output(first, "capture_id"))
    place.deliveries.delivered_of.add(capture_id)
    place.playground.push(
        PIPELINE.replace("[db.events]", "{a: db.events, b: db.others}").replace("capture.r", "capture.a.r")
    )
    second = place.playground.start()
    assert second.status is RunStatus.FAILED
    assert f"`calve commit {capture_id}`" in place.playground.told(second, "capture")


def test_what_a_retry_may_cure_is_tried_again(place: Place) -> None:
    """A table that is not there is not among it."""
    place.playground.push(PIPELINE.replace("source_tables: [db.events]", "source_tables: [db.none]"))
    run = place.playground.start()
    assert run.status is RunStatus.FAILED
    assert "There is no table" in place.playground.told(run, "capture")
    assert place.playground.attempt(run, "capture").attempt_id == 1


@contextmanager
def failing_at(point: str) -> Iterator[None]:
    """Fail at a failpoint, once."""
    failpoints.arm(f"{point}:1:error")
    try:
        yield
    finally:
        failpoints.arm(None)


@pytest.mark.parametrize("point", ["capture.registered", "step.captured", "step.published", "step.committed"])
def test_a_step_that_dies_is_carried_out_again(place: Place, point: str) -> None:
    """At whatever boundary it was: one capture is committed, and it holds everything once."""
    place.playground.push(PIPELINE)
    with failing_at(point):
        run = place.playground.start()
        place.playground.advance(3_600)
    assert place.playground.fresh(run).status is RunStatus.SUCCEEDED
    committed = [stored for stored in place.captures.captures("w/capture") if stored.status is Status.COMMITTED]
    assert [stored.capture_id for stored in committed] == [place.output(run, "capture_id")]
    assert place.output(run, "records") == 2
    place.append(1)
    assert place.output(place.playground.start(), "records") == 1


def test_iterations_of_a_foreach_have_checkpoints_of_their_own(place: Place) -> None:
    """By what it goes over, whatever the order."""
    place.writer.create("db.others", {"id": "long", "day": "int", "n": "long"}, days=True)
    place.append(4)
    place.playground.push("""
Workflow:
  id: w
  jobs:
    - foreach:
        id: each
        loop_params: {table: [db.events, db.others]}
        dag: sequential
        jobs:
          - job: {id: capture, type: IpCapture, ip_capture: {source_tables: ["${table}"]}}
          - job: {id: commit, type: IpCommit, ip_commit: {capture_step: capture}}
""")
    assert place.playground.start().status is RunStatus.SUCCEEDED
    consumers = {checkpoint.consumer for checkpoint in place.captures.checkpoints()}
    assert consumers == {"w/capture[table=db.events]", "w/capture[table=db.others]"}


OLDER = """
Workflow:
  id: w
  jobs:
    - job: {id: icdc, type: ICDC, icdc: {source_table: db.events, target_table: db.change}, transition: [job]}
    - job: {id: job, type: Sleep}
    - job: {id: other, type: Sleep}
"""


def test_the_older_form_names_the_change_and_commits_at_the_end(place: Place) -> None:
    """The table of that name is replaced in each run."""
    place.playground.push(OLDER)
    for number in (2, 5):
        run = place.playground.start()
        assert set(place.playground.statuses(run)) == {"icdc", "job", "other", "icdc_commit"}
        assert run.status is RunStatus.SUCCEEDED
        assert place.output(run, "icdc_table", "icdc") == "db.change"
        assert place.output(run, "records", "icdc") == number
        table = place.lake.catalog("lake").load(place.lake.parse("db.change"))
        assert table.metadata["properties"]["calve.capture-id"] == place.output(run, "capture_id", "icdc")
        assert place.capture_of(run, "icdc").status == Status.COMMITTED
        place.append(5)
    place.captures.collect_garbage()
    assert place.playground.start().status is RunStatus.SUCCEEDED


def test_the_older_form_commits_nothing_where_a_step_failed(place: Place) -> None:
    """Whichever it was; the restart names the same table again."""
    place.playground.push(OLDER)
    place.playground.script.parts["other"] = [FATAL_ERROR, DONE]
    run = place.playground.start()
    assert run.status is RunStatus.FAILED
    assert not place.captures.checkpoints()
    again = place.playground.restart(run, policy=RunPolicy.RESTART_FROM_BEGINNING)
    assert again.status is RunStatus.SUCCEEDED
    assert place.output(again, "capture_id", "icdc") == place.output(run, "capture_id", "icdc")


def test_a_table_of_someone_else_is_not_replaced(place: Place) -> None:
    """Whatever the name was meant for."""
    place.playground.push(OLDER.replace("db.change", "db.events"))
    run = place.playground.start()
    assert run.status is RunStatus.FAILED
    assert "a table that no capture created" in place.playground.told(run, "icdc")


IGNORING = PIPELINE.replace("id: job,", "id: job, failure_mode: IGNORE_FAILURE,")


def test_a_commit_after_a_use_that_failed_is_refused(place: Place) -> None:
    """At once, with what to do; the capture stays open, and the restart that it names delivers it."""
    place.playground.push(IGNORING)
    place.playground.script.parts["job"] = [FATAL_ERROR, DONE]
    run = place.playground.start()
    assert place.playground.statuses(run)["commit"] is S.FATALLY_FAILED
    assert place.playground.attempt(run, "commit").attempt_id == 1
    capture_id, told = place.output(run, "capture_id"), place.playground.told(run, "commit")
    assert told == (
        f"Capture {capture_id} is not committed, because steps that use what capture captured did not succeed: "
        "job (COMPLETED_WITH_ERROR). Run it again with `calve restart w 1 --step job`. To skip these rows for good, "
        f"run `calve commit {capture_id}`, then `calve restart w 1`."
    )
    assert (place.capture_of(run).status, place.deliveries.published) == (Status.OPEN, [])
    again = place.playground.restart(run, "job")
    assert (again.status, place.capture_of(run).status) == (RunStatus.SUCCEEDED, Status.COMMITTED)


def test_a_person_may_decide_to_skip_the_rows(place: Place) -> None:
    """By a commit of their own, as the refusal says; then the step has nothing to object to."""
    place.playground.push(IGNORING)
    place.playground.script.parts["job"] = FATAL_ERROR
    run = place.playground.start()
    assert run.status is RunStatus.FAILED
    place.captures.commit(str(place.output(run, "capture_id")))
    assert place.playground.restart(run).status is RunStatus.SUCCEEDED


def test_a_refusal_names_some_of_many_steps(place: Place) -> None:
    """And how many more there are."""
    loop = """foreach:
        id: days
        loop_params: {day: [a, b, c, d, e, f, g]}
        jobs: [job: {id: job, type: Shell, failure_mode: IGNORE_FAILURE, shell: {script: "x ${capture.relation}"}}]"""
    start = PIPELINE.index("job: {id: job,")
    text = PIPELINE[:start] + loop + PIPELINE[PIPELINE.index("\n", start) :]
    place.playground.push(text)
    place.playground.script.parts["job"] = FATAL_ERROR
    told = place.playground.told(place.playground.start(), "commit")
    assert "days/1/job (COMPLETED_WITH_ERROR)" in told
    assert "days/5/job (COMPLETED_WITH_ERROR) and 2 more." in told
    assert "--step days/1/job" in told


def test_a_commit_of_no_change_has_nothing_to_lose(place: Place) -> None:
    """Whatever the steps did that would have used it."""
    place.playground.push(IGNORING.replace("range_columns: [id]", "when_unchanged: run"))
    place.playground.start()
    place.playground.script.parts["job"] = FATAL_ERROR
    run = place.playground.start()
    assert (run.status, place.output(run, "committed", "commit")) == (RunStatus.SUCCEEDED, False)


def test_a_use_that_the_definition_omits_is_not_restarted(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be left out again: the definition is to change, which an older version of calve let pass."""
    monkeypatch.setattr("calve.definition.loader.check_capture_order", lambda *_: None)
    around = PIPELINE.replace("dag: sequential", "dag: [capture: [IF records > 9 THEN job, commit], job -> commit]")
    place.playground.push(around)
    run = place.playground.start()
    told = place.playground.told(run, "commit")
    assert "did not succeed: job (UNSATISFIED)." in told
    assert "Change the workflow so that job always runs before commit, push it, and start a new instance." in told
    assert place.capture_of(run).status == Status.OPEN
    place.playground.push(PIPELINE)
    assert place.playground.start().status is RunStatus.SUCCEEDED
