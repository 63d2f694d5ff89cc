"""Workflows that start when their tables change, on real tables and both databases; no schedule, no Spark."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
from tests.engines import BUSY, DONE, FATAL_ERROR, Playground
from tests.no_deliveries import NoDeliveries

from calve.app import utc_now
from calve.capture import Captures
from calve.engine import Outcome, Run, RunStatus, Runtimes, StepContext
from calve.lake import Lake
from calve.settings import load
from calve.steps.captures import IpCapture, IpCommit
from calve.store import Store
from calve.testing import PyIcebergWriter
from calve.triggers import Scheduler, Trigger, TriggerType, scheduler as scheduling
from calve.triggers.tables import TableChanges, Watcher, latency_of, latest_latency

COLUMNS = {"id": "long", "day": "int", "n": "long"}
WORKFLOW = """
Trigger: {{incremental: {trigger}}}
Workflow:
  id: {name}
  dag: sequential
  jobs:
    - job: {{id: capture, type: IpCapture, ip_capture: {{source_tables: [{table}]{fields}}}}}
    - job: {{id: job, type: Shell, shell: {{script: "true"}}}}
    - job: {{id: commit, type: IpCommit, ip_commit: {{capture_step: capture}}}}
"""


def workflow(trigger: str = "db.events", *, name: str = "w", table: str = "db.events", fields: str = "") -> str:
    """Return a workflow that captures a table and commits; a job between them does what a test says."""
    return WORKFLOW.format(trigger=trigger, name=name, table=table, fields=fields)


def with_rule(rule: str) -> str:
    """Return a workflow that waits by a rule."""
    return workflow(f"{{source_tables: [db.events], {rule}}}")


class Crash(BaseException):
    """The process is gone."""


@dataclass
class Place:
    """A playground with a lake, a table in it, and what watches it."""

    playground: Playground
    lake: Lake
    writer: PyIcebergWriter
    captures: Captures
    scheduler: Scheduler
    watcher: Watcher
    ids: Iterator[int] = field(default_factory=lambda: count(1))

    def append(self, number: int = 1, table: str = "db.events") -> None:
        """Add rows of one day in one file."""
        self.writer.table = table
        self.writer.append([{"id": next(self.ids), "day": 1, "n": 0} for _ in range(number)])

    def look(self) -> None:
        """See what changed, start what is due, and move nothing."""
        self.watcher.poll()
        self.scheduler.turn()

    def go(self) -> None:
        """Do so until nothing more comes of it, with all that was started."""
        for _ in range(20):
            self.watcher.poll()
            turn = self.scheduler.turn()
            self.playground.settle()
            if not (turn.synced or turn.started or self.watcher.poll() or self.is_due()):
                return
        raise AssertionError("it never comes to rest")

    def is_due(self) -> bool:
        """Tell whether a trigger is due now."""
        return bool(self.playground.store.triggers.due(self.playground.clock()))

    def runs(self, workflow_id: str = "w") -> list[Run]:
        """Return all instances, oldest first."""
        return self.playground.state.instances(workflow_id=workflow_id)[::-1]

    def trigger(self, workflow_id: str = "w") -> Trigger:
        """Return the trigger as it is kept."""
        (found,) = self.playground.store.triggers.triggers(workflow_id=workflow_id)
        return found

    def records(self) -> list[object]:
        """Return how many rows each instance captured."""
        return [self.playground.result(run, "capture", "records") for run in self.runs()]


@pytest.fixture
def place(playground: Playground, store: Store, tmp_path: Path) -> Iterator[Place]:
    """Give a lake with an empty table db.events, and a scheduler for triggers by tables."""
    settings = load(tmp_path, {})
    lake, writer = Lake(settings), PyIcebergWriter(settings)
    numbers = count(1)
    captures = Captures(lake, store.captures, clock=utc_now, new_id=lambda: f"capture{next(numbers)}")
    made: Runtimes = {
        "IpCapture": lambda: IpCapture(captures, NoDeliveries()),
        "IpCommit": lambda: IpCommit(captures, NoDeliveries()),
    }
    playground.executor.runtimes = {**playground.runtimes, **made}
    playground.clock.now = int(utc_now().timestamp() * 1_000)
    writer.create("db.events", COLUMNS, days=True)
    found = Place(
        playground, lake, writer, captures, new_scheduler(playground, captures, lake), new_watcher(playground, lake)
    )
    yield found
    writer.close()
    lake.close()


def new_scheduler(playground: Playground, captures: Captures, lake: Lake) -> Scheduler:
    """Return a scheduler, as another process would have it."""
    kind = TableChanges(playground.tools, playground.store.triggers, captures, lake)
    return Scheduler(playground.tools, playground.store.triggers, {TriggerType.INCREMENTAL: kind})


def new_watcher(playground: Playground, lake: Lake) -> Watcher:
    """Return a watcher, as another process would have it."""
    return Watcher(lake, playground.store.triggers, playground.clock, interval=15)


# What starts a workflow.


def test_each_change_starts_the_workflow_once(place: Place) -> None:
    """A change that is not committed starts an instance, which takes it; nothing else does."""
    place.playground.push(workflow())
    place.go()
    assert place.runs() == []
    for number in (2, 3):
        place.append(number)
        place.go()
        place.go()
    assert [run.status for run in place.runs()] == [RunStatus.SUCCEEDED] * 2
    assert place.records() == [2, 3]


def test_what_is_there_already_starts_it_too(place: Place) -> None:
    """Everything is uncommitted for a workflow that never ran."""
    place.append(5)
    place.playground.push(workflow())
    place.go()
    assert place.records() == [5]


def test_an_instance_is_told_what_started_it(place: Place) -> None:
    """The tables with their snapshots, and when the newest was committed: the latency is known."""
    place.playground.push(workflow())
    place.append()
    place.go()
    place.append(2)
    table = place.lake.catalog("lake").load(place.lake.parse("db.events")).metadata
    newest = table["snapshots"][-1]
    place.playground.clock.now = newest["timestamp-ms"] + 700
    place.go()
    run = place.runs()[-1]
    assert run.initiator.type == "INCREMENTAL"
    told = run.initiator.trigger
    assert (told["trigger_id"], told["committed_at"]) == ("incremental:0", newest["timestamp-ms"])
    (change,) = told["tables"]
    assert (change["table"], change["table_uuid"]) == ("db.events", table["table-uuid"])
    assert (change["from_snapshot_id"], change["to_snapshot_id"]) == (
        newest["parent-snapshot-id"],
        newest["snapshot-id"],
    )
    assert (change["commits"], change["files"]) == (1, 1)
    assert latency_of(run) == latest_latency(place.trigger()) == 700
    assert latency_of(place.playground.start()) is None


def test_compaction_starts_nothing(place: Place) -> None:
    """No row changed, so that there is nothing to do; a later change is seen all the same."""
    place.playground.push(workflow())
    place.append()
    place.append()
    place.go()
    place.writer.compact()
    place.writer.rewrite_manifests()
    place.go()
    assert len(place.runs()) == 1
    place.append()
    place.go()
    assert len(place.runs()) == 2


def test_nothing_is_written_while_nothing_changes(place: Place) -> None:
    """Polls leave the trigger's row alone, also those of a process that has just begun."""
    place.playground.push(workflow())
    place.append()
    place.go()
    before = place.trigger()
    for watcher in (place.watcher, new_watcher(place.playground, place.lake)):
        assert [watcher.poll(), watcher.poll()] == [0, 0]
    assert place.trigger() == before


def test_a_change_while_nobody_looked_is_found(place: Place) -> None:
    """A scheduler that was away finds what came meanwhile."""
    place.playground.push(workflow())
    place.go()
    place.append()
    place.watcher = new_watcher(place.playground, place.lake)
    place.go()
    assert len(place.runs()) == 1


def test_a_table_that_others_say_has_changed_is_examined_at_once(place: Place) -> None:
    """A webhook or an event of the catalog saves the wait for the next poll."""
    place.playground.push(workflow())
    place.go()
    place.append()
    assert place.watcher.changed("lake.db.events") == 1
    assert place.watcher.changed("db.others") == 0
    assert len(place.scheduler.turn().started) == 1


def test_a_limit_starts_it_until_nothing_is_left(place: Place) -> None:
    """What a capture leaves for later is uncommitted, though the table does not move any more."""
    for number in (1, 2, 3):
        place.append(number)
    place.playground.push(workflow(fields=", max_files: 1"))
    place.go()
    assert place.records() == [1, 2, 3]


def test_chosen_operations_start_it(place: Place) -> None:
    """Others wait for one of those, and are captured with it."""
    rule = "{source_tables: [db.events], data_operations: [append]}"
    place.playground.push(workflow(rule, fields=", data_operations: [append, overwrite, delete]"))
    place.append(2)
    place.go()
    place.writer.delete([1, 2])
    place.go()
    assert len(place.runs()) == 1
    place.append()
    place.go()
    assert len(place.runs()) == 2


def test_a_workflow_that_begins_at_latest_is_started_to_set_its_checkpoint(place: Place) -> None:
    """Or it would miss what comes before its first run."""
    place.playground.push(workflow(fields=", initial: latest"))
    place.go()
    place.append(3)
    place.go()
    assert [run.status for run in place.runs()] == [RunStatus.SUCCEEDED] * 2
    assert place.records() == [0, 3]


def test_without_a_capture_the_trigger_keeps_its_own_mark(place: Place) -> None:
    """A workflow that captures nothing is started for what comes after it was activated, once, however it ends."""
    text = (
        "Trigger: {incremental: db.events}\nWorkflow: {id: w, jobs: [{job: {id: a, type: Shell, shell: {script: x}}}]}"
    )
    place.append()
    place.playground.push(text)
    place.go()
    assert place.runs() == []
    place.playground.script.parts["a"] = FATAL_ERROR
    place.append()
    place.go()
    place.append()
    place.go()
    place.writer.compact()
    place.go()
    assert [run.status for run in place.runs()] == [RunStatus.FAILED] * 2


def test_a_disabled_trigger_starts_nothing(place: Place) -> None:
    """Until a version comes that says otherwise."""
    place.playground.push(f"Properties: {{incremental_trigger_disabled: true}}{workflow()}")
    place.append()
    place.go()
    assert place.runs() == []
    place.playground.push(f"Properties: {{incremental_trigger_disabled: false}}{workflow()}")
    place.go()
    assert len(place.runs()) == 1


# When.


def test_too_few_files_wait_for_more(place: Place) -> None:
    """The instance that starts then takes all of them."""
    place.playground.push(with_rule("min_files: 3"))
    for _ in range(2):
        place.append()
        place.go()
    assert place.runs() == []
    assert place.trigger().due_at is None
    place.append()
    place.go()
    assert place.records() == [3]


def test_too_few_bytes_wait_for_more_but_not_for_ever(place: Place) -> None:
    """They start an instance max_delay after the first of them came."""
    place.playground.push(with_rule("min_bytes: 1000000000, max_delay: 10 min"))
    place.append()
    place.playground.clock.now = int(utc_now().timestamp() * 1_000)
    place.go()
    due_at = place.trigger().due_at
    assert due_at is not None
    place.playground.clock.now = due_at - 1
    place.append()
    place.go()
    assert place.runs() == []
    place.playground.clock.now = due_at
    place.go()
    assert place.records() == [2]


def test_debounce_waits_for_quiet(place: Place) -> None:
    """Each change begins the wait anew."""
    place.playground.push(with_rule("debounce: 1 h"))
    place.append()
    place.go()
    first = place.trigger().due_at
    assert first is not None
    place.append()
    place.go()
    second = place.trigger().due_at
    assert second is not None
    assert second >= first
    place.playground.clock.now = second - 1
    place.go()
    assert place.runs() == []
    place.playground.clock.now = second
    place.go()
    assert place.records() == [2]


# Alone, and once.


def test_it_never_overlaps_itself(place: Place) -> None:
    """What comes while an instance is at work starts another when that is over, in the moment it is."""
    place.playground.push(workflow())
    place.playground.script.parts["job"] = [BUSY, DONE]
    place.append(2)
    place.go()
    for number in (3, 4):
        place.append(number)
        place.go()
    assert len(place.runs()) == 1
    assert place.trigger().state["verdict"] == "wait for the end of an instance"
    place.playground.advance(3_600)
    place.go()
    assert place.records() == [2, 7]


def test_an_instance_that_someone_else_started_counts_too(place: Place) -> None:
    """Two instances of one workflow would capture the same change."""
    place.append()
    place.playground.push(workflow())
    place.playground.script.parts["job"] = [BUSY, DONE]
    place.playground.start()
    place.go()
    assert len(place.runs()) == 1
    place.playground.advance(3_600)
    place.go()
    assert len(place.runs()) == 1


def test_a_failed_instance_is_not_started_for_the_same_change_again(place: Place) -> None:
    """But it is for a newer one, which brings the older along; a compaction is none."""
    place.playground.push(workflow())
    place.playground.script.parts["job"] = [FATAL_ERROR, DONE]
    place.append(2)
    place.go()
    place.go()
    place.writer.compact()
    place.go()
    assert [run.status for run in place.runs()] == [RunStatus.FAILED]
    place.append()
    place.go()
    assert [run.status for run in place.runs()] == [RunStatus.FAILED, RunStatus.SUCCEEDED]
    assert place.records()[-1] == 3


def test_a_checkpoint_that_is_set_back_starts_it_again(place: Place) -> None:
    """What it then has before it is uncommitted, be it the same as once before."""
    place.playground.push(workflow())
    place.append(2)
    place.go()
    place.captures.reset_checkpoint("db.events", "w/capture", "again")
    place.watcher.changed("db.events")
    place.go()
    assert place.records() == [2, 2]


@pytest.mark.parametrize(
    "point", ["triggers.read", "triggers.synced", "triggers.looked", "triggers.prepared", "triggers.fired"]
)
def test_a_crash_at_any_point_starts_one_instance(place: Place, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """Whatever the process had done when it died, the next one starts the rest."""

    def crash(name: str) -> None:
        if name == point:
            raise Crash

    place.append()
    place.playground.push(workflow())
    monkeypatch.setattr(scheduling, "reach", crash)
    with pytest.raises(Crash):
        place.look()
    monkeypatch.undo()
    place.scheduler = new_scheduler(place.playground, place.captures, place.lake)
    place.watcher = new_watcher(place.playground, place.lake)
    place.go()
    assert place.records() == [1]


def test_two_schedulers_start_it_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second has looked at the same change, and comes too late with what it decided."""
    place.playground.push(workflow())
    place.go()
    place.append()
    other = new_scheduler(place.playground, place.captures, place.lake)
    started: list[int] = []

    def between(name: str) -> None:
        if name == "triggers.prepared":
            monkeypatch.undo()
            new_watcher(place.playground, place.lake).poll()
            started.append(len(other.turn().started))

    monkeypatch.setattr(scheduling, "reach", between)
    place.watcher.poll()
    turn = place.scheduler.turn()
    assert (started, len(turn.started)) == ([1], 0)
    place.go()
    assert place.records() == [1]


def test_an_end_that_nobody_saw_is_not_lost(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """An instance that ends between the look and its writing leaves the trigger due."""
    place.playground.push(workflow())
    place.playground.script.parts["job"] = [BUSY, DONE]
    place.append()
    place.go()
    place.append()

    def between(name: str) -> None:
        if name == "triggers.prepared":
            monkeypatch.undo()
            place.playground.advance(3_600)

    monkeypatch.setattr(scheduling, "reach", between)
    place.look()
    place.go()
    assert len(place.runs()) == 2


# What is wrong with a table.


def test_a_missing_table_is_reported_and_does_not_stop_others(place: Place) -> None:
    """Its trigger says so, is left alone for longer and longer, and looks again at once when the table comes."""
    place.playground.push(workflow("db.late", name="late", table="db.late"))
    place.playground.push(workflow())
    place.append()
    place.go()
    assert len(place.runs()) == 1
    trigger = place.trigger("late")
    assert trigger.error is not None
    assert "db.late" in trigger.error
    assert trigger.due_at is not None
    assert trigger.due_at > place.playground.clock()
    assert place.watcher.poll() == 0
    place.writer.create("db.late", COLUMNS, days=False)
    place.append(table="db.late")
    place.go()
    assert place.trigger("late").error is None
    assert len(place.runs("late")) == 1


def test_a_table_that_is_created_again_is_reported(place: Place) -> None:
    """What the checkpoint says is of another table: nothing is started until someone mends it."""
    place.playground.push(workflow())
    place.append()
    place.go()
    place.writer.drop()
    place.writer.create("db.events", COLUMNS, days=True)
    place.append()
    place.go()
    error = place.trigger().error
    assert error is not None
    assert "dropped and created again" in error
    assert len(place.runs()) == 1
    place.captures.reset_checkpoint("db.events", "w/capture", "new table")
    place.watcher.changed("db.events")
    place.go()
    assert len(place.runs()) == 2


def test_a_table_that_is_rolled_back_is_reported(place: Place) -> None:
    """And goes on when it is rolled forward again."""
    place.playground.push(workflow())
    place.append()
    first = place.lake.catalog("lake").load(place.lake.parse("db.events")).metadata["current-snapshot-id"]
    place.append()
    last = place.lake.catalog("lake").load(place.lake.parse("db.events")).metadata["current-snapshot-id"]
    place.go()
    place.writer.set_current(first)
    place.go()
    assert "rolled back" in str(place.trigger().error)
    place.writer.set_current(last)
    place.append()
    place.go()
    assert place.trigger().error is None
    assert len(place.runs()) == 2


def test_history_that_has_been_expired_is_reported(place: Place) -> None:
    """Where the capture would be refused, nothing is started."""
    place.playground.push(workflow())
    place.append()
    place.go()
    place.playground.script.parts["job"] = FATAL_ERROR
    for _ in range(3):
        place.append()
    metadata = place.lake.catalog("lake").load(place.lake.parse("db.events")).metadata
    place.writer.expire([each["snapshot-id"] for each in metadata["snapshots"][:-1]])
    place.go()
    assert "expired" in str(place.trigger().error)
    assert len(place.runs()) == 1


def test_an_operation_that_the_capture_does_not_take_is_reported_until_a_version_takes_it(place: Place) -> None:
    """A new version is a reason to look again, though its trigger is the same."""
    place.playground.push(workflow())
    place.append(2)
    place.go()
    place.writer.delete([1])
    place.go()
    assert "not append" in str(place.trigger().error)
    place.playground.push(workflow(fields=", data_operations: [append, overwrite, delete]"))
    place.go()
    assert place.trigger().error is None
    assert len(place.runs()) == 2


def test_an_unavailable_catalog_does_not_count_as_a_change(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tables are looked at when it is back; those of others go on."""
    from calve.errors import LakeError
    from calve.lake import SqlCatalog

    def away(*_: object) -> dict[object, str]:
        raise LakeError("The catalog lake cannot be reached.")

    place.playground.push(workflow())
    place.go()
    place.append()
    with monkeypatch.context() as patch:
        patch.setattr(SqlCatalog, "locations", away)
        assert place.watcher.poll() == 0
    assert place.watcher.poll() == 1


# Together.


def test_a_change_flows_through_three_stages_without_any_schedule(place: Place) -> None:
    """Each stage starts the next by writing its table."""

    def job(context: StepContext) -> Outcome:
        name = context.title.split("/")[0]
        place.append(2, table={"first": "db.middle", "second": "db.last", "third": "db.report"}[name])
        return DONE

    place.playground.script.parts["job"] = job
    stages = {"first": "db.events", "second": "db.middle", "third": "db.last"}
    for table in ("db.middle", "db.last", "db.report"):
        place.writer.create(table, COLUMNS, days=False)
    for name, table in stages.items():
        place.playground.push(workflow(table, name=name, table=table))
    place.go()
    for number in (1, 2):
        place.append()
        place.go()
        assert [len(place.runs(name)) for name in stages] == [number] * 3
    report = place.captures.plan(["db.report"], "reader")
    assert report.tables[0].records == 4
    assert all(latency_of(run) is not None for name in stages for run in place.runs(name))


def test_each_table_is_asked_for_once_however_many_watch_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Polling costs by table, not by trigger."""
    from calve.lake import SqlCatalog, TableName

    for number in range(3):
        place.playground.push(workflow(name=f"w{number}"))
    place.go()
    asked: list[list[TableName]] = []
    real = SqlCatalog.locations

    def spied(catalog: SqlCatalog, tables: list[TableName]) -> dict[TableName, str]:
        asked.append(tables)
        return real(catalog, tables)

    monkeypatch.setattr(SqlCatalog, "locations", spied)
    place.append()
    assert place.watcher.poll() == 3
    assert asked == [[place.lake.parse("db.events")]]


def test_a_name_that_is_none_is_reported(place: Place) -> None:
    """The trigger says so; the others are watched."""
    place.playground.push(workflow("'db..events'", name="odd"))
    place.playground.push(workflow())
    place.append()
    place.go()
    assert "does not name a table" in str(place.trigger("odd").error)
    assert len(place.runs()) == 1
