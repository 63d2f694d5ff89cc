"""What is delivered arrives once, in order, or not at all; over tables that PyIceberg writes."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from tests.deliveries import SOURCE, STREAM, TARGET, Ground

from calve.delivery import BranchStatus, Delivery
from calve.errors import (
    BranchLost,
    CaptureClosed,
    DeliveryError,
    DeliverySuperseded,
    LakeError,
    RequestInvalid,
    TargetAhead,
    TargetMoved,
    TargetRecreated,
    TargetRolledBack,
)
from calve.lake import TableName

PROPERTY = f"calve.delivered.{STREAM}"


def test_main_moves_to_what_the_job_wrote(ground: Ground) -> None:
    """Before, nobody sees it; afterwards everybody does, and the branch is gone."""
    ground.create(1)
    staging = ground.stage(ground.capture())
    ground.append(2, branch=staging.branch)
    ground.append(3, branch=staging.branch)
    assert ground.rows() == Counter([1])
    (published,) = ground.deliveries.publish(staging)
    assert ground.rows() == Counter([1, 2, 3])
    assert ground.branches() == set()
    metadata = ground.metadata()
    assert metadata["current-snapshot-id"] == published.snapshot_id == metadata["snapshot-log"][-1]["snapshot-id"]
    assert not published.is_repeated
    assert not published.is_reappended
    assert metadata["properties"]["write.wap.enabled"] == "true"
    ground.append(4)
    assert ground.rows() == Counter([1, 2, 3, 4])


@pytest.mark.parametrize("version", [1, 2])
def test_an_empty_table_is_delivered_to(ground: Ground, version: int) -> None:
    """It has no main before, and one afterwards."""
    ground.create(version=version)
    staging = ground.stage(ground.capture())
    assert staging.targets[0].base_snapshot_id is None
    assert "main" not in ground.metadata()["refs"]
    ground.append(1, branch=staging.branch)
    assert ground.rows() == Counter()
    ground.deliveries.publish(staging)
    assert ground.rows() == Counter([1])


@pytest.mark.parametrize("ids", [(), (1, 2)])
def test_a_job_that_writes_nothing_moves_main_all_the_same(ground: Ground, ids: tuple[int, ...]) -> None:
    """Otherwise nobody could tell that it was delivered."""
    ground.create(*ids)
    before = ground.metadata().get("current-snapshot-id")
    capture = ground.capture()
    ground.deliveries.publish(ground.stage(capture))
    assert ground.metadata()["current-snapshot-id"] != before
    assert ground.rows() == Counter(ids)
    assert ground.stage(capture).is_delivered
    ground.append(3)
    assert ground.rows() == Counter([*ids, 3])


def test_what_has_been_delivered_is_not_delivered_again(ground: Ground) -> None:
    """A second attempt need not run, and one that ran already changes nothing."""
    ground.create(1)
    capture = ground.capture()
    slow = ground.stage(capture)
    ground.append(2, branch=slow.branch)
    ground.deliver(capture, 2)
    (published,) = ground.deliveries.publish(slow)
    assert published.is_repeated
    assert published.snapshot_id == ground.metadata()["current-snapshot-id"]
    assert ground.rows() == Counter([1, 2])
    again = ground.stage(capture)
    assert again.is_delivered
    assert ground.deliveries.publish(again)[0].is_repeated
    ground.deliveries.discard(again)
    assert ground.branches() == set()


def test_captures_are_delivered_in_order(ground: Ground) -> None:
    """A zombie of an older capture is refused before it runs, and when it publishes."""
    ground.create()
    first = ground.capture()
    zombie = ground.stage(first, part="late")
    ground.append(9, branch=zombie.branch)
    ground.deliver(first, 1)
    ground.commit(first)
    second = ground.capture()
    ground.deliver(second, 2)
    for late in (lambda: ground.stage(first, part="later"), lambda: ground.deliveries.publish(zombie)):
        with pytest.raises(DeliverySuperseded, match="later than"):
            late()
    assert ground.rows() == Counter([1, 2])


def test_a_target_that_is_ahead_of_the_checkpoint_is_found_out(ground: Ground) -> None:
    """A capture was delivered and superseded instead of committed: its rows are in the target, and come again."""
    ground.create()
    first = ground.capture()
    ground.deliver(first, 1)
    second = ground.capture(supersede=True)
    with pytest.raises(TargetAhead, match="never committed") as error:
        ground.stage(second)
    assert f"calve commit {first}" in error.value.remedy
    assert "calve checkpoint set lake.db.source --consumer daily --to" in error.value.remedy
    ground.set_properties(**{PROPERTY: "accept"})
    ground.deliver(second, 2)
    assert ground.rows() == Counter([1, 2])


def test_it_is_known_whether_anything_of_a_capture_was_delivered(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where whoever delivered died before noting it, and for as long as the capture is open."""
    ground.create()
    ground.create(target="db.second")
    capture = ground.capture()
    staging = ground.stage(capture, TARGET, "db.second")
    assert not ground.deliveries.delivered(capture)
    ground.append(1, branch=staging.branch)
    with monkeypatch.context() as patch:
        patch.setattr(ground.store.deliveries, "note", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            ground.deliveries.publish(staging)
    ground.sleep(timedelta(days=8))
    ground.deliveries.collect()
    ground.catalog.drop(ground.lake.parse("db.second"))
    assert ground.deliveries.delivered(capture)
    assert ground.stage(capture).is_delivered
    assert ground.deliveries.delivered(capture)


def test_a_checkpoint_that_was_reset_starts_over(ground: Ground) -> None:
    """Someone moved it on purpose: what comes then comes."""
    ground.create()
    first = ground.capture()
    ground.deliver(first, 1)
    ground.commit(first)
    ground.store.captures.reset_checkpoint("daily", SOURCE, reason="again", now=ground.now)
    ground.deliver(ground.capture(), 1)
    assert ground.rows() == Counter([1, 1])


def test_a_capture_that_was_abandoned_is_refused(ground: Ground) -> None:
    """Before the job runs, and where it is given up meanwhile."""
    ground.create()
    capture = ground.capture()
    staging = ground.stage(capture)
    ground.append(1, branch=staging.branch)
    ground.store.captures.abandon(capture, ground.now)
    with pytest.raises(CaptureClosed):
        ground.stage(capture)
    with pytest.raises(CaptureClosed):
        ground.deliveries.publish(staging)
    assert ground.rows() == Counter()


def test_the_parts_of_a_capture_arrive_once_each(ground: Ground) -> None:
    """Iterations of a loop share a capture; each part counts for itself."""
    ground.create()
    capture = ground.capture()
    one, two = ground.stage(capture, part="1"), ground.stage(capture, part="2")
    ground.append(1, branch=one.branch)
    ground.append(2, branch=two.branch)
    ground.deliveries.publish(one)
    (published,) = ground.deliveries.publish(two)
    assert published.is_reappended
    assert ground.rows() == Counter([1, 2])
    assert ground.stage(capture, part="1").is_delivered
    assert ground.stage(capture, part="2").is_delivered
    assert not ground.stage(capture, part="3").is_delivered


def test_without_a_capture_the_run_counts(ground: Ground) -> None:
    """The same run delivers once, another run again."""
    ground.create()
    ground.deliver(None, 1, run="r1")
    ground.deliver(None, 1, run="r1")
    ground.deliver(None, 1, run="r2")
    assert ground.rows() == Counter([1, 1])


def test_two_streams_do_not_mind_each_other(ground: Ground) -> None:
    """Each has a property of its own, and appends of both arrive."""
    ground.create()
    capture = ground.capture()
    ours = ground.stage(capture)
    ground.append(1, branch=ours.branch)
    theirs = ground.deliveries.stage([TARGET], Delivery("hourly/load", None, "r"), "a")
    ground.append(2, branch=theirs.branch)
    ground.deliveries.publish(theirs)
    ground.deliveries.publish(ours)
    assert ground.rows() == Counter([1, 2])


@pytest.mark.parametrize("base", [(), (7, 8)])
def test_appends_are_put_on_top_of_what_others_wrote(ground: Ground, base: tuple[int, ...]) -> None:
    """Nothing is computed again, and nothing of theirs is lost; the totals are right."""
    ground.create(*base)
    staging = ground.stage(ground.capture())
    ground.append(1, 2, branch=staging.branch)
    ground.append(3, branch=staging.branch)
    ground.append(4)
    (published,) = ground.deliveries.publish(staging)
    assert published.is_reappended
    assert ground.rows() == Counter([*base, 1, 2, 3, 4])
    snapshot = ground.table().current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    said = {"added-records": "3", "added-data-files": "2", "total-records": str(4 + len(base))}
    assert said.items() <= snapshot.summary.additional_properties.items()
    ground.append(5)
    assert ground.rows() == Counter([*base, 1, 2, 3, 4, 5])


def test_more_than_appends_have_to_run_again(ground: Ground) -> None:
    """Whatever read the table has to read what others wrote; a new staging does."""
    ground.create(1)
    capture = ground.capture()
    staging = ground.stage(capture)
    ground.overwrite(2, branch=staging.branch)
    ground.append(3)
    with pytest.raises(TargetMoved):
        ground.deliveries.publish(staging)
    ground.deliveries.discard(staging)
    assert ground.branches() == set()
    assert ground.rows() == Counter([1, 3])
    again = ground.stage(capture)
    ground.overwrite(2, branch=again.branch)
    ground.deliveries.publish(again)
    assert ground.rows() == Counter([2])


def test_a_branch_that_is_gone_is_not_taken_for_an_unwritten_one(ground: Ground) -> None:
    """Otherwise its rows would count as delivered."""
    ground.create()
    staging = ground.stage(ground.capture())
    ground.append(1, branch=staging.branch)
    ground.deliveries.discard(staging)
    with pytest.raises(BranchLost):
        ground.deliveries.publish(staging)


def test_a_target_that_was_rolled_back_is_found_out(ground: Ground) -> None:
    """The property says that rows are there which are not; unless the user says that it is meant."""
    ground.create(1)
    before = ground.metadata()["current-snapshot-id"]
    first = ground.capture()
    ground.deliver(first, 2)
    ground.commit(first)
    ground.table().manage_snapshots().set_current_snapshot(before).commit()
    second = ground.capture()
    for capture in (first, second):
        with pytest.raises(TargetRolledBack) as error:
            ground.stage(capture)
    assert f"'{PROPERTY}'='accept'" in error.value.remedy
    ground.set_properties(**{PROPERTY: "accept"})
    ground.deliver(second, 3)
    assert ground.rows() == Counter([1, 3])


def test_expired_snapshots_are_no_rollback(ground: Ground) -> None:
    """The property outlives the snapshot that it names."""
    ground.create(1)
    first = ground.capture()
    ground.deliver(first, 2)
    published = ground.metadata()["current-snapshot-id"]
    ground.append(3)
    ground.table().maintenance.expire_snapshots().by_ids([published]).commit()
    assert ground.stage(first).is_delivered
    ground.commit(first)
    ground.deliver(ground.capture(), 4)
    assert ground.rows() == Counter([1, 2, 3, 4])


def test_a_target_that_was_created_again_is_found_out(ground: Ground) -> None:
    """All that was delivered before is gone from it; unless the user says that it is meant."""
    ground.create()
    first = ground.capture()
    ground.deliver(first, 1)
    ground.commit(first)
    ground.catalog.drop(ground.lake.parse(TARGET))
    ground.create()
    second = ground.capture()
    with pytest.raises(TargetRecreated):
        ground.stage(second)
    ground.set_properties(**{PROPERTY: "accept"})
    ground.deliver(second, 2)
    ground.commit(second)
    ground.deliver(ground.capture(), 3)
    assert ground.rows() == Counter([2, 3])


def test_a_property_that_is_not_ours_is_named(ground: Ground) -> None:
    """It is neither trusted nor overwritten."""
    ground.create()
    ground.set_properties(**{PROPERTY: "yes"})
    with pytest.raises(DeliveryError, match="not what calve wrote"):
        ground.stage(ground.capture())


def test_several_targets_each_arrive_once(ground: Ground) -> None:
    """Where one was delivered and another was not, the job runs for the other; the first is not written to again."""
    ground.create()
    ground.create(target="db.second")
    capture = ground.capture()
    died = ground.stage(capture, TARGET, "db.second")
    for target in (TARGET, "db.second"):
        ground.append(1, branch=died.branch, target=target)
    ground.deliveries._published(died, died.targets[0])
    again = ground.stage(capture, TARGET, "db.second")
    assert [target.is_delivered for target in again.targets] == [True, False]
    assert not again.is_delivered
    for target in (TARGET, "db.second"):
        ground.append(1, branch=again.branch, target=target)
    first, second = ground.deliveries.publish(again)
    assert (first.is_repeated, second.is_repeated) == (True, False)
    assert ground.rows(TARGET) == ground.rows("db.second") == Counter([1])
    assert again.branch not in ground.branches(TARGET) | ground.branches("db.second")


def test_a_delivery_needs_targets_once_each(ground: Ground) -> None:
    """No target, or one twice, is a mistake."""
    targets: list[str]
    for targets in ([], ["db.t", "lake.db.t"]):
        with pytest.raises(RequestInvalid):
            ground.deliveries.stage(targets, Delivery(STREAM, None, "r"), "a")


# Replies that are lost.


def _cut(ground: Ground, monkeypatch: pytest.MonkeyPatch, *, does_it: bool) -> None:
    """Let the next commit fail: after it was done, or instead."""
    real = ground.catalog._replace

    def replace(*args: Any) -> bool:
        monkeypatch.setattr(ground.catalog, "_replace", real)
        if does_it:
            real(*args)
        raise LakeError("The catalog lake cannot be reached: gone")

    monkeypatch.setattr(ground.catalog, "_replace", replace)


def test_a_lost_reply_is_settled_by_the_property(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was done is not done again."""
    ground.create(1)
    staging = ground.stage(ground.capture())
    ground.append(2, branch=staging.branch)
    _cut(ground, monkeypatch, does_it=True)
    (published,) = ground.deliveries.publish(staging)
    assert published.snapshot_id == ground.metadata()["current-snapshot-id"]
    assert ground.rows() == Counter([1, 2])


def test_a_commit_that_failed_is_not_tried_again(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever called decides; commits once more then works."""
    ground.create(1)
    staging = ground.stage(ground.capture())
    ground.append(2, branch=staging.branch)
    _cut(ground, monkeypatch, does_it=False)
    with pytest.raises(LakeError, match="gone"):
        ground.deliveries.publish(staging)
    assert ground.rows() == Counter([1])
    ground.deliveries.publish(staging)
    assert ground.rows() == Counter([1, 2])


# Held ones.


def test_what_is_held_is_published_with_the_commit(ground: Ground) -> None:
    """Until then it stays on its branch; repeating it changes nothing."""
    ground.create(1)
    capture = ground.capture()
    staging = ground.stage(capture)
    ground.append(2, branch=staging.branch)
    ground.deliveries.hold(staging)
    assert ground.rows() == Counter([1])
    (published,) = ground.deliveries.publish_held(capture)
    assert published.target == ground.lake.parse(TARGET)
    assert ground.deliveries.publish_held(capture) == []
    assert ground.rows() == Counter([1, 2])


def test_the_last_attempt_is_the_one_that_is_held(ground: Ground) -> None:
    """What an earlier one kept is not published."""
    ground.create()
    capture = ground.capture()
    for row in (1, 2):
        staging = ground.stage(capture)
        ground.append(row, branch=staging.branch)
        ground.deliveries.hold(staging)
    ground.deliveries.publish_held(capture)
    assert ground.rows() == Counter([2])


def test_a_held_one_that_cannot_be_published_names_the_step_to_restart(ground: Ground) -> None:
    """Others wrote meanwhile, and it is more than appends."""
    ground.create(1)
    capture = ground.capture()
    staging = ground.stage(capture)
    ground.overwrite(2, branch=staging.branch)
    ground.deliveries.hold(staging)
    ground.append(3)
    with pytest.raises(TargetMoved) as error:
        ground.deliveries.publish_held(capture)
    assert f"Restart the step that writes ({STREAM})" in error.value.remedy


# Cleaning up.


def test_the_branches_of_closed_captures_are_collected(ground: Ground) -> None:
    """Nothing can come of them any more; those of open ones, and held ones, are kept."""
    ground.create(1)
    dead = ground.stage(ground.capture())
    held = ground.stage(capture := ground.capture(supersede=True))
    ground.deliveries.hold(held)
    alive = ground.stage(capture)
    assert ground.deliveries.collect() == []
    ground.sleep(timedelta(hours=2))
    assert ground.deliveries.collect() == [f"lake.{TARGET} {dead.branch}"]
    assert ground.branches() == {held.branch, alive.branch}
    ground.sleep(timedelta(days=8))
    assert ground.deliveries.collect() == [f"lake.{TARGET} {alive.branch}"]
    assert {left.staging for left in ground.store.deliveries.leftovers(ground.now)} == {held.branch, alive.branch}
    ground.commit(capture)
    assert ground.deliveries.collect() == [f"lake.{TARGET} {held.branch}"]
    assert ground.store.deliveries.leftovers(ground.now) == []


def test_the_branches_of_runs_without_a_capture_have_a_week(ground: Ground) -> None:
    """Nobody knows whether the job still runs; a table that is gone needs no clean-up."""
    ground.create(target="db.second")
    ground.create()
    ground.stage(None, "db.second", run="r1")
    staging = ground.stage(None, run="r2")
    ground.catalog.drop(ground.lake.parse("db.second"))
    ground.sleep(timedelta(days=6))
    assert ground.deliveries.collect() == []
    ground.sleep(timedelta(days=2))
    assert ground.deliveries.collect() == [f"lake.{TARGET} {staging.branch}"]
    assert ground.store.deliveries.leftovers(ground.now) == []


def test_a_branch_that_cannot_be_dropped_is_left_for_later(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Discarding never fails for it, and says so in the log."""
    ground.create(1)
    staging = ground.stage(ground.capture())
    _cut(ground, monkeypatch, does_it=False)
    ground.deliveries.discard(staging)
    assert "is left behind" in caplog.text
    (left,) = ground.store.deliveries.leftovers(ground.now + timedelta(days=1))
    assert left.status is BranchStatus.DISCARDED
    assert left.target.name == TableName("lake", ("db",), "target")
