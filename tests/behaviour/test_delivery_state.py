"""What keeping branches and targets means, over every database."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update
from tests.engines import Playground

from calve.delivery import BranchStatus, Delivery, DeliveryState, StagedTarget, Staging
from calve.lake import TableName
from calve.store import Store
from calve.store.tables import run as run_table

pytestmark = pytest.mark.each_store

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(days=1)
DAILY = TableName("lake", ("db",), "daily")
TOTALS = TableName("lake", ("db", "deep"), "totals")
DELIVERY = Delivery("w/merge", "c1", "w/1/1/merge", "2")
STAGING = Staging(
    DELIVERY,
    "a1",
    "calve_1",
    (StagedTarget(DAILY, "u1", 2**62, 2**62 + 1), StagedTarget(TOTALS, "u2", None, 5)),
)


@pytest.fixture
def deliveries(store: Store) -> DeliveryState:
    """Give the state of deliveries of an open store."""
    return store.deliveries


def _stage(state: DeliveryState, staging: Staging = STAGING) -> None:
    names = [target.name for target in staging.targets]
    state.stage(staging.branch, staging.delivery, staging.attempt, names, NOW)


def test_what_was_written_of_a_capture_is_found(deliveries: DeliveryState, store: Store) -> None:
    """Each attempt at each table, and what became of it."""
    _stage(deliveries)
    found = store.deliveries.of_capture("c1")
    assert [(one.stream, one.attempt, one.status) for one in found] == [(DELIVERY.stream, "a1", "staged")] * 2
    assert len({one.table for one in found}) == 2
    assert store.deliveries.of_capture("c2") == []


def test_a_branch_is_recorded_before_it_is_created(deliveries: DeliveryState) -> None:
    """Everything about the delivery comes back; where the branch begins is not known yet."""
    _stage(deliveries)
    daily, totals = deliveries.branches("c1")
    assert (daily.staging, daily.delivery, daily.attempt) == ("calve_1", DELIVERY, "a1")
    assert (daily.target.name, totals.target.name) == (DAILY, TOTALS)
    assert (daily.status, daily.changed_at) == (BranchStatus.STAGED, NOW)
    assert deliveries.held("c1") == []
    assert deliveries.branches("c2") == []


def test_what_is_held_comes_back_as_it_was_staged(deliveries: DeliveryState) -> None:
    """Snapshot ids of 63 bits, and the absent one of an empty table, too."""
    _stage(deliveries)
    deliveries.hold(STAGING, LATER)
    held = deliveries.held("c1")
    assert tuple(branch.target for branch in held) == STAGING.targets
    assert {branch.status for branch in held} == {BranchStatus.HELD}
    assert {branch.changed_at for branch in held} == {LATER}


def test_what_is_held_needs_a_person_once_its_instance_has_ended(playground: Playground) -> None:
    """It says since when, and of which step; what was published waits for nobody."""
    playground.push("Workflow: {id: sales.w, jobs: [{job: {id: merge, type: Sleep}}]}")
    run = playground.begin("sales.w").run
    playground.settle()
    run = playground.fresh(run)
    attempt = playground.attempt(run, "merge")
    staging = replace(STAGING, attempt=attempt.uuid)
    state = playground.store.deliveries
    _stage(state, staging)
    assert playground.state.held_work() == []
    state.hold(staging, LATER)
    (held,) = playground.state.held_work()
    assert (held.run.workflow_id, held.step_id, held.capture_id) == ("sales.w", "merge", "c1")
    assert held.since == int(LATER.timestamp() * 1_000)
    assert playground.state.held_work(namespaces=("ops",)) == []
    with playground.state._transactions._database.write("test") as connection:
        connection.execute(update(run_table).where(run_table.c.uuid == run.uuid).values(status="IN_PROGRESS"))
    assert playground.state.held_work() == []


def test_holding_again_replaces_what_was_held_for_the_same_part(deliveries: DeliveryState) -> None:
    """Other parts and other captures are left alone."""
    again = replace(STAGING, branch="calve_2")
    part = replace(STAGING, branch="calve_3", delivery=replace(DELIVERY, part="3"))
    other = replace(STAGING, branch="calve_4", delivery=replace(DELIVERY, capture_id="c2"))
    for staging in (STAGING, part, other, again):
        _stage(deliveries, staging)
        deliveries.hold(staging, NOW)
    assert {branch.staging for branch in deliveries.held("c1")} == {"calve_2", "calve_3"}
    assert {branch.staging for branch in deliveries.held("c2")} == {"calve_4"}
    given_up = [branch for branch in deliveries.branches("c1") if branch.status is BranchStatus.DISCARDED]
    assert {branch.staging for branch in given_up} == {"calve_1"}


def test_a_target_is_known_by_its_identity(deliveries: DeliveryState) -> None:
    """The last delivery counts, of each stream and each name."""
    _stage(deliveries)
    assert deliveries.delivered_uuid("w/merge", DAILY) is None
    for uuid in ("u0", "u1", "u1"):
        deliveries.note(STAGING, DAILY, uuid, LATER)
    assert deliveries.delivered_uuid("w/merge", DAILY) == "u1"
    assert deliveries.delivered_uuid("w/merge", TOTALS) is None
    assert deliveries.delivered_uuid("w/other", DAILY) is None
    assert [branch.status for branch in deliveries.branches("c1")] == [BranchStatus.PUBLISHED, BranchStatus.STAGED]


def test_what_is_published_is_not_discarded(deliveries: DeliveryState) -> None:
    """Only the rest of the staging is."""
    _stage(deliveries)
    deliveries.note(STAGING, DAILY, "u1", NOW)
    deliveries.discard("calve_1", LATER)
    assert [branch.status for branch in deliveries.branches("c1")] == [BranchStatus.PUBLISHED, BranchStatus.DISCARDED]


def test_leftovers_are_those_that_nobody_touched_lately(deliveries: DeliveryState) -> None:
    """Until they are forgotten, one by one."""
    _stage(deliveries)
    deliveries.note(STAGING, DAILY, "u1", LATER)
    assert deliveries.leftovers(NOW) == []
    assert [branch.target.name for branch in deliveries.leftovers(LATER)] == [TOTALS]
    deliveries.forget("calve_1", TOTALS)
    assert [branch.target.name for branch in deliveries.leftovers(LATER + timedelta(days=1))] == [DAILY]
