"""The protocol by which captures are delivered holds whatever happens, and those that look as good do not."""

import pytest
from tests.model.delivery_model import DeliveryModel
from tests.model.delivery_world import (
    BACKWARDS,
    DUPLICATE,
    LOSS,
    LOST_UPDATE,
    OTHER_CONTENT,
    STALE,
    DeliveryProtocol,
)
from tests.model.exploration import Exploration, Result, TooManyStates, explore

APPENDS = DeliveryProtocol("property", is_expiring=True)
"""How plain inserts are delivered: staged on a branch, appended again where main has moved."""

MERGES = DeliveryProtocol("property", "accumulate", "run again", is_expiring=True)
"""How all other jobs are delivered; they may even add to what they find."""

SOUND = {
    "E: a write id that the commit itself compares": (DeliveryProtocol("write id"), 4_000),
    "H: a marker looked for where the branch begins": (DeliveryProtocol("branch"), 3_000),
    "K: the property in the same commit, for appends": (APPENDS, 10_000),
    "O: as H, for merges": (DeliveryProtocol("branch", "accumulate"), 3_000),
    "P: the property in the same commit, for merges": (MERGES, 8_000),
    "appends, where a delivery without a commit is adopted": (
        DeliveryProtocol("property", superseding="adopt"),
        30_000,
    ),
    "merges, where a delivery without a commit is adopted": (
        DeliveryProtocol("property", "accumulate", "run again", superseding="adopt"),
        20_000,
    ),
    "appends, where an open capture is taken over, and people mend the rest": (
        DeliveryProtocol("property", superseding="take over or mend"),
        30_000,
    ),
    "merges, the same": (
        DeliveryProtocol("property", "accumulate", "run again", superseding="take over or mend"),
        20_000,
    ),
    "appends held for the commit": (DeliveryProtocol("property", publishing="before the checkpoint"), 10_000),
    "merges held for the commit": (
        DeliveryProtocol("property", "accumulate", "run again", publishing="before the checkpoint"),
        8_000,
    ),
}
"""Protocols that hold, and how many states at least it takes to be sure of it."""

UNSOUND = {
    "A: each attempt takes a range of its own": (DeliveryProtocol("none", is_pinned=False), DUPLICATE, 6),
    "B: a plain insert": (DeliveryProtocol("none"), DUPLICATE, 7),
    "C: a marker looked for before the insert": (DeliveryProtocol("marker"), DUPLICATE, 9),
    "D: as C, and a look at the lease": (DeliveryProtocol("marker", checks_lease=True), DUPLICATE, 11),
    "F: as E, and the checkpoint set unasked": (DeliveryProtocol("write id", commits_blindly=True), BACKWARDS, 18),
    "G: as E, and snapshots expire": (DeliveryProtocol("write id", is_expiring=True), DUPLICATE, 9),
    "I: as H, without the marker": (DeliveryProtocol("unchecked branch"), DUPLICATE, 7),
    "J: as H, and snapshots expire": (DeliveryProtocol("branch", is_expiring=True), DUPLICATE, 9),
    "L: as K, and one name for all captured tables": (
        DeliveryProtocol("property", has_shared_name=True),
        OTHER_CONTENT,
        6,
    ),
    "M: a merge that can be repeated": (DeliveryProtocol("none", "upsert"), STALE, 16),
    "N: as M, in serialisable isolation": (DeliveryProtocol("unchecked branch", "upsert"), STALE, 16),
    "as K, the property in a commit of its own": (DeliveryProtocol("property", tells_apart=True), DUPLICATE, 7),
    "as K, appended again without another look": (
        DeliveryProtocol("property", when_moved="append again unasked"),
        DUPLICATE,
        10,
    ),
    "as P, the merge's files put onto a main that has moved": (
        DeliveryProtocol("property", "accumulate", "append again"),
        LOST_UPDATE,
        7,
    ),
    "as K, judged by the number of the capture alone": (
        DeliveryProtocol("property", superseding="by number"),
        DUPLICATE,
        11,
    ),
    "held, and the checkpoint moves first": (
        DeliveryProtocol("property", publishing="after the checkpoint"),
        LOSS,
        6,
    ),
}
"""Protocols that do not, what goes wrong, and in how many steps at least."""


@pytest.mark.parametrize(("protocol", "at_least"), SOUND.values(), ids=SOUND.keys())
def test_a_sound_protocol_delivers_everything_once_and_in_order(protocol: DeliveryProtocol, at_least: int) -> None:
    """Nothing wrong can be reached, the end can be reached from everywhere, and the model was not a trivial one."""
    found = explore(DeliveryModel(protocol))
    assert found == Exploration(Result.HOLDS, found.states)
    assert found.states > at_least


@pytest.mark.parametrize(("protocol", "fault", "steps"), UNSOUND.values(), ids=UNSOUND.keys())
def test_an_unsound_protocol_is_found_out(protocol: DeliveryProtocol, fault: str, steps: int) -> None:
    """What goes wrong is named, with a shortest way to it."""
    found = explore(DeliveryModel(protocol))
    assert (found.result, found.fault) == (Result.VIOLATED, fault)
    assert len(found.trace) == steps, found.trace


def test_to_refuse_what_overlaps_with_a_delivery_is_safe_but_goes_nowhere() -> None:
    """A delivery whose capture was never committed is in the way of all that follow."""
    found = explore(DeliveryModel(DeliveryProtocol("property", superseding="refuse")))
    assert found.result is Result.STUCK
    assert found.states > 20_000


def test_to_take_over_an_open_capture_leaves_one_case_to_people() -> None:
    """A late attempt may deliver just before its capture is given up: refused ever after, until someone mends it."""
    found = explore(DeliveryModel(DeliveryProtocol("property", superseding="take over")))
    assert found.result is Result.STUCK
    assert found.states > 20_000
    assert found.trace == (
        "start an attempt",
        "write the captured table",
        "start the next instance",
        "start an attempt",
        "put the capture on record",
        "write the captured table",  # the second attempt, which has seen nothing delivered
        "run the job on a branch",
        "publish",  # the first attempt
        "put the capture on record",  # the second one gives up what was delivered a moment ago
    )


def test_what_is_held_for_the_commit_is_adopted_as_well() -> None:
    """Also if the next instance starts while a branch waits; nobody else writes here, to keep the model small."""
    held = DeliveryProtocol(
        "property", "accumulate", "run again", superseding="adopt", publishing="before the checkpoint"
    )
    found = explore(DeliveryModel(held, foreign_writes=0))
    assert found == Exploration(Result.HOLDS, found.states)
    assert found.states > 20_000


@pytest.mark.parametrize("protocol", [APPENDS, MERGES], ids=["appends", "merges"])
def test_one_process_at_a_time_is_delivered_the_same_way(protocol: DeliveryProtocol) -> None:
    """Without zombies there is less to explore, and nothing to find."""
    found = explore(DeliveryModel(protocol, processes=1))
    assert found.result is Result.HOLDS
    assert 100 < found.states < explore(DeliveryModel(protocol)).states


def test_a_duplicate_comes_with_the_story_of_it() -> None:
    """The trace tells what happened, in order, to the step that did the harm."""
    found = explore(DeliveryModel(DeliveryProtocol("branch", is_expiring=True)))
    assert found.trace == (
        "start an attempt",
        "write the captured table",
        "put the capture on record",
        "run the job",
        "publish, and the reply is lost",
        "foreign write",
        "expire snapshots of the target",
        "run the job",
        "publish",
    )


def test_a_model_that_never_ends_is_abandoned() -> None:
    """More states than expected are an error, not a result."""
    with pytest.raises(TooManyStates):
        explore(DeliveryModel(APPENDS), limit=1_000)
