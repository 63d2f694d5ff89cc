"""Whether uncommitted changes start a workflow, decided on a clock of the test's own."""

from dataclasses import replace

import pytest

from calve.capture import Checkpoint, Commit, Operation, Pending, PendingOf, Uncommitted
from calve.triggers.tables import (
    ChangeRules,
    Decision,
    Memory,
    Reaction,
    UncommittedChange,
    counted,
    decide,
    identity_of,
)

NOW = 1_000_000
CHANGE = UncommittedChange("db.t", "u", 1, None, 2, commits=1, files=3, bytes=300, first_at=NOW - 10, last_at=NOW - 10)
START = Checkpoint("u", 1, 1, None, 0, NOW - 100)
V = Reaction


def _decide(
    *changes: UncommittedChange,
    memory: Memory | None = None,
    rules: ChangeRules | None = None,
    now: int = NOW,
    is_busy: bool = False,
) -> Decision:
    return decide(changes, memory or Memory(), rules or ChangeRules(), now, is_busy=is_busy)


def _found(*commits: Commit, start: Checkpoint | None = START) -> Uncommitted:
    return Uncommitted("db.t", "u", "here", start, START, commits)


def test_without_rules_a_change_fires_at_once() -> None:
    """Fire, and remember for what."""
    decision = _decide(CHANGE)
    assert (decision.reaction, decision.due_at) == (V.FIRE, None)
    assert decision.memory == Memory(fired=identity_of([CHANGE]))


def test_no_change_is_nothing() -> None:
    """Forget what was waited with and fired for: should it be there again, it is to be done again."""
    decision = _decide(memory=Memory("before", "waiting", "there", 1, 2))
    assert decision == Decision(V.NOTHING, Memory())


def test_the_same_change_never_fires_twice() -> None:
    """Leave a failed instance alone until something newer comes."""
    memory = _decide(CHANGE).memory
    assert _decide(CHANGE, memory=memory).reaction is V.NOTHING
    newer = replace(CHANGE, to_snapshot_id=3, commits=2)
    assert _decide(newer, memory=memory).reaction is V.FIRE


def test_what_a_limit_left_fires_again() -> None:
    """Take the rest of the same snapshot for another change, once a part of it is committed."""
    memory = _decide(CHANGE).memory
    assert _decide(replace(CHANGE, from_snapshot_id=2, taken=1), memory=memory).reaction is V.FIRE


def test_a_workflow_never_overlaps_itself() -> None:
    """Wait for the end of an instance that is not over, without any time."""
    decision = _decide(CHANGE, is_busy=True)
    assert (decision.reaction, decision.due_at) == (V.WAIT_FOR_END, None)
    assert _decide(CHANGE, memory=decision.memory).reaction is V.FIRE


@pytest.mark.parametrize(
    "rules", [ChangeRules(min_files=4), ChangeRules(min_bytes=301), ChangeRules(min_files=1, min_bytes=301)]
)
def test_too_little_waits_for_more(rules: ChangeRules) -> None:
    """Wait without any time until both least sizes are reached."""
    decision = _decide(CHANGE, rules=rules)
    assert (decision.reaction, decision.due_at) == (V.WAIT, None)
    more = replace(CHANGE, to_snapshot_id=3, files=9, bytes=900)
    assert _decide(more, memory=decision.memory, rules=rules).reaction is V.FIRE


def test_too_little_waits_at_most_so_long() -> None:
    """Fire at max_delay after the first uncommitted change, however little there is."""
    rules = ChangeRules(min_files=100, max_delay=1_000)
    decision = _decide(CHANGE, rules=rules)
    assert (decision.reaction, decision.due_at) == (V.WAIT, NOW - 10 + 1_000)
    assert _decide(CHANGE, memory=decision.memory, rules=rules, now=NOW + 989).reaction is V.WAIT
    assert _decide(CHANGE, memory=decision.memory, rules=rules, now=NOW + 990).reaction is V.FIRE


def test_a_later_change_does_not_put_max_delay_off() -> None:
    """Count from the first change, not from the last."""
    rules = ChangeRules(min_files=100, max_delay=1_000)
    memory = _decide(CHANGE, rules=rules).memory
    more = replace(CHANGE, to_snapshot_id=3, last_at=NOW + 500)
    assert _decide(more, memory=memory, rules=rules, now=NOW + 600).due_at == NOW + 990


def test_debounce_waits_until_nothing_comes() -> None:
    """Begin to wait anew with each change, but not beyond max_delay."""
    rules = ChangeRules(debounce=100)
    first = _decide(CHANGE, rules=rules)
    assert (first.reaction, first.due_at) == (V.WAIT, NOW + 90)
    more = replace(CHANGE, to_snapshot_id=3, last_at=NOW + 80)
    second = _decide(more, memory=first.memory, rules=rules, now=NOW + 90)
    assert (second.reaction, second.due_at) == (V.WAIT, NOW + 180)
    assert _decide(more, memory=second.memory, rules=rules, now=NOW + 180).reaction is V.FIRE
    capped = replace(rules, max_delay=150)
    assert _decide(more, memory=first.memory, rules=capped, now=NOW + 90).due_at == NOW + 140


def test_a_writer_whose_clock_is_ahead_does_not_hold_anything_up() -> None:
    """Count from when the change was noticed, where it says that it comes from the future."""
    ahead = replace(CHANGE, first_at=NOW + 3_600_000, last_at=NOW + 3_600_000)
    rules = ChangeRules(debounce=100)
    decision = _decide(ahead, rules=rules)
    assert decision.due_at == NOW + 100
    assert _decide(ahead, memory=decision.memory, rules=rules, now=NOW + 100).reaction is V.FIRE
    least = ChangeRules(min_files=100, max_delay=1_000)
    assert _decide(ahead, rules=least).due_at == NOW + 1_000


def test_all_tables_count_together() -> None:
    """Add up what came into each table."""
    other = replace(CHANGE, table="db.o", table_uuid="o")
    assert _decide(CHANGE, other, rules=ChangeRules(min_files=6)).reaction is V.FIRE
    assert identity_of([CHANGE, other]) == identity_of([other, CHANGE])


def test_only_chosen_operations_count() -> None:
    """Leave out snapshots of other kinds; one whose writer named none counts always."""
    append = Commit(2, Operation.APPEND, NOW, 1, 10)
    delete = Commit(3, Operation.DELETE, NOW + 5, 2, 20)
    unnamed = Commit(4, None, NOW + 9, 4, 40)
    rules = ChangeRules(operations=frozenset({Operation.APPEND}))
    change = counted(_found(append, delete), rules, is_first=False, now=NOW)
    assert change is not None
    assert (change.to_snapshot_id, change.files, change.bytes, change.last_at) == (2, 1, 10, NOW)
    assert counted(_found(delete), rules, is_first=False, now=NOW) is None
    assert counted(_found(unnamed), rules, is_first=False, now=NOW) is not None


def test_a_first_capture_that_sets_a_checkpoint_is_a_change() -> None:
    """Start a workflow that begins at `latest` before anything comes, or it would miss it."""
    change = counted(_found(start=None), ChangeRules(), is_first=True, now=NOW)
    assert change is not None
    assert (change.from_snapshot_id, change.to_snapshot_id, change.last_at) == (None, None, NOW)
    assert counted(_found(start=None), ChangeRules(), is_first=False, now=NOW) is None
    assert counted(_found(), ChangeRules(), is_first=True, now=NOW) is None


def test_what_is_pending_is_part_of_the_identity() -> None:
    """Tell two parts of one snapshot apart."""
    start = replace(START, pending=Pending(PendingOf.ADDED, 7))
    change = counted(_found(Commit(1, None, NOW, 1, 1), start=start), ChangeRules(), is_first=False, now=NOW)
    assert change is not None
    assert change.taken == 7


def test_memory_is_what_was_written() -> None:
    """Read back what was kept, among other things."""
    memory = Memory("a", "b", "c", 1, 2)
    assert Memory.from_json({**memory.as_json(), "seen": {}}) == memory
    assert Memory.from_json({}) == Memory()
