"""A checkpoint that lies behind what was delivered is moved there; nothing is delivered twice, nothing is left out."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, delete, insert, select
from tests.engines import DONE, FATAL_ERROR, Playground

from calve.app import utc_now
from calve.capture import Captures
from calve.delivery import Deliveries, Delivery
from calve.engine import Outcome, RunStatus, Runtimes, State, StepContext
from calve.errors import TargetAhead
from calve.lake import Lake
from calve.settings import load
from calve.steps.captures import IpCapture, IpCommit, declared_in
from calve.store import Store, tables
from calve.testing import PyIcebergWriter

pytestmark = pytest.mark.each_store

COLUMNS = {"id": "long", "day": "int", "n": "long"}
KEPT = (tables.checkpoint, tables.checkpoint_log, tables.capture, tables.delivery_branch, tables.delivery_target)
WORKFLOW = """
Workflow:
  id: w
  dag: sequential
  jobs:
    - job: {id: capture, type: IpCapture, ip_capture: {source_tables: [db.events]}}
    - job: {id: write, type: Spark, targets: [TARGETS], spark: {script: "SELECT * FROM ${capture.relation}"}}
    - job: {id: commit, type: IpCommit, ip_commit: {capture_step: capture}}
"""


@dataclass
class Place:
    """A source, a target, and a step that delivers as Spark steps do, by PyIceberg."""

    playground: Playground
    lake: Lake
    writer: PyIcebergWriter
    captures: Captures
    deliveries: Deliveries
    url: str
    after: list[Any] = field(default_factory=list)
    """What happens after each delivery: called with the capture, or the outcome of the step."""
    ids: Iterator[int] = field(default_factory=lambda: count(1))

    def append(self, number: int = 1) -> None:
        """Add rows to the source."""
        self.writer.table = "db.events"
        self.writer.append([{"id": next(self.ids), "day": 1, "n": 0} for _ in range(number)])

    def deliver(self, context: StepContext) -> Outcome:
        """Copy what was captured to the targets of the step, exactly once."""
        capture_id = str(context.params["spark"]["capture"])
        delivery = Delivery(context.place.stream, capture_id, "run", context.place.part)
        try:
            staging = self.deliveries.stage(context.targets, delivery, context.key)
        except TargetAhead as error:
            return Outcome(State.FATAL_ERROR, message=error.message)
        report = self.captures.show(capture_id)
        rows = self._rows(self.lake.parse(str(report.tables[0].icdc_table)).identifier)
        for target in context.targets if not staging.is_delivered else ():
            self._table(target).append(rows, branch=staging.branch)
        self.deliveries.publish(staging)
        return self.after.pop(0)(capture_id) if self.after else DONE

    def delivered(self, target: str = "db.daily") -> list[int]:
        """Return the ids in a target, in order."""
        found = Counter(self._rows(self.lake.parse(target).identifier)["id"].to_pylist())
        return sorted(found.elements())

    def back_up(self) -> dict[Any, list[dict[str, Any]]]:
        """Return what the state knows of captures and deliveries."""
        engine = create_engine(self.url)
        with engine.begin() as connection:
            found = {table: [dict(row) for row in connection.execute(select(table)).mappings()] for table in KEPT}
        engine.dispose()
        return found

    def restore(self, backup: dict[Any, list[dict[str, Any]]]) -> None:
        """Make the state know that again, and no more."""
        engine = create_engine(self.url)
        with engine.begin() as connection:
            for table, rows in backup.items():
                connection.execute(delete(table))
                if rows:
                    connection.execute(insert(table), rows)
        engine.dispose()

    def _table(self, name: str) -> Any:
        return self.lake.catalog("lake").pyiceberg().load_table(self.lake.parse(name).identifier)

    def _rows(self, identifier: tuple[str, ...]) -> Any:
        return self.lake.catalog("lake").pyiceberg().load_table(identifier).scan().to_arrow()


@pytest.fixture
def place(playground: Playground, store: Store, store_url: str, tmp_path: Path) -> Iterator[Place]:
    """Give a lake with db.events, db.daily and db.other, and a step that delivers."""
    settings = load(tmp_path, {})
    lake, writer = Lake(settings), PyIcebergWriter(settings)
    numbers = count(1)

    def new_id() -> str:
        return f"id{next(numbers)}"

    captures = Captures(lake, store.captures, clock=utc_now, new_id=new_id)
    deliveries = Deliveries(lake, store.deliveries, store.captures, clock=utc_now, new_id=new_id)
    found = Place(playground, lake, writer, captures, deliveries, store_url)

    def declared(step: Any) -> list[tuple[str, str]]:
        return declared_in(playground.tools.blueprints.get(step.workflow_id, 1).workflow)

    made: Runtimes = {
        "IpCapture": lambda: IpCapture(captures, deliveries, declared),
        "IpCommit": lambda: IpCommit(captures, deliveries),
    }
    playground.executor.runtimes = {**playground.runtimes, **made}
    playground.script.parts["write"] = found.deliver
    for table in ("db.events", "db.daily", "db.other"):
        writer.create(table, COLUMNS, days=False)
    yield found
    writer.close()
    lake.close()


def push(place: Place, targets: str = "db.daily") -> None:
    """Push the workflow."""
    place.playground.push(WORKFLOW.replace("TARGETS", targets))


@pytest.mark.parametrize("lost", [1, 3])
def test_after_an_old_backup_captures_continue_from_the_target(place: Place, lost: int) -> None:
    """However many commits were lost with the state, what was delivered is not captured again, nor is more left out."""
    push(place)
    place.append()
    place.playground.start()
    backup = place.back_up()
    for _ in range(lost):
        place.append(2)
        assert place.playground.start().status is RunStatus.SUCCEEDED
    place.restore(backup)
    place.append()
    run = place.playground.start()
    assert run.status is RunStatus.SUCCEEDED
    assert place.playground.result(run, "capture", "records") == 1
    assert "was behind" in place.playground.log(place.playground.attempt(run, "capture"))
    assert place.delivered() == list(range(1, 2 * lost + 3))
    place.append()
    assert place.playground.start().status is RunStatus.SUCCEEDED
    assert place.delivered() == list(range(1, 2 * lost + 4))
    reasons = [entry["reason"] for entry in place.captures.checkpoint_log("w/capture")]
    assert "its commit was not recorded" in reasons[1]


def test_a_backup_of_before_the_first_delivery_is_no_other_case(place: Place) -> None:
    """Where the state knows of no delivery at all, the target does."""
    push(place)
    backup = place.back_up()
    place.append(2)
    place.playground.start()
    place.restore(backup)
    place.append()
    run = place.playground.start()
    assert (run.status, place.delivered()) == (RunStatus.SUCCEEDED, [1, 2, 3])


def test_a_capture_that_was_abandoned_while_someone_delivered_it_is_not_delivered_again(place: Place) -> None:
    """The next instance goes on from where that capture ended."""

    def give_up(capture_id: str) -> Outcome:
        place.captures.abandon(capture_id)
        return FATAL_ERROR

    push(place)
    place.append(2)
    place.after = [give_up]
    assert place.playground.start().status is RunStatus.FAILED
    place.append()
    run = place.playground.start()
    assert (run.status, place.delivered()) == (RunStatus.SUCCEEDED, [1, 2, 3])
    assert place.playground.result(run, "capture", "records") == 1


def test_targets_that_do_not_hold_the_same_are_left_to_people(place: Place) -> None:
    """One of two has it, so that going on would leave it out of the other: the delivery is refused."""

    def give_up(capture_id: str) -> Outcome:
        place.captures.abandon(capture_id)
        return FATAL_ERROR

    push(place, "db.daily, db.other")
    place.append()
    place.playground.start()
    place.append()
    place.after = [give_up]
    place.playground.start()
    other = place._table("db.other")
    before = other.metadata.properties["calve.delivered.w/write"]
    with other.transaction() as transaction:
        transaction.set_properties({"calve.delivered.w/write": before.replace('"capture":"', '"capture":"another-')})
    assert place.playground.start().status is RunStatus.FAILED
    assert place.delivered() == [1, 2]


def test_nothing_is_adopted_where_nothing_is_behind(place: Place) -> None:
    """Every move of the checkpoint is a commit."""
    push(place)
    for _ in range(3):
        place.append()
        place.playground.start()
    reasons = [entry["reason"] for entry in place.captures.checkpoint_log("w/capture")]
    assert len(reasons) == 3
    assert not [reason for reason in reasons if "not recorded" in reason]
