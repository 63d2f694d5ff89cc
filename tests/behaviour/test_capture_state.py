"""What keeping checkpoints and captures means, over every database."""

import itertools
import multiprocessing
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text

from calve import failpoints
from calve.capture import (
    Adoption,
    Artifacts,
    CaptureState,
    Checkpoint,
    Move,
    Pending,
    PendingOf,
    Status,
    StoredCapture,
    StoredCheckpoint,
)
from calve.errors import (
    CalveError,
    CaptureClosed,
    CaptureMissing,
    CheckpointMissing,
    ConcurrentCapture,
    ConcurrentCommit,
    RequestInvalid,
    StoreSchemaUnknown,
)
from calve.lake import TableName
from calve.store import SqlCaptureState, Store, open_store, schema, tables
from calve.store.database import database

pytestmark = pytest.mark.each_store

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
LATER = NOW + timedelta(hours=3)
PLAYS = TableName("lake", ("db", "raw"), "plays")
USERS = TableName("lake", ("db",), "users")
READER = "daily/merge"


def place(snapshot_id: int = 7, pending: Pending | None = None) -> Checkpoint:
    """Make a checkpoint."""
    return Checkpoint("9c12d441-03fe-4693-9a96-a0705ddf69c1", snapshot_id, 3, None, 0, 1700000000000, pending)


def opened(
    state: CaptureState,
    capture_id: str,
    *moves: Move,
    consumer: str = READER,
    key: str | None = None,
    supersede: bool | str = False,
    now: datetime = NOW,
) -> StoredCapture:
    """Begin a capture and open it."""
    state.begin(capture_id, consumer, key, Artifacts(), now)
    return state.open(capture_id, moves, {"capture_id": capture_id}, supersede=supersede)


def committed(state: CaptureState, capture_id: str, *moves: Move, consumer: str = READER) -> StoredCapture:
    """Begin a capture, open it and commit it."""
    opened(state, capture_id, *moves, consumer=consumer)
    return state.commit(capture_id, NOW)


def test_it_is_the_port_that_capture_declares(state: SqlCaptureState) -> None:
    """The type checker accepts the store where capture asks for its port."""
    port: CaptureState = state
    assert port.checkpoints() == []


def test_there_is_no_checkpoint_at_first(state: SqlCaptureState) -> None:
    """A consumer that never committed has no checkpoint."""
    assert state.checkpoint(READER, PLAYS) is None
    assert state.checkpoints() == []
    assert state.checkpoint_log() == []


def test_a_checkpoint_set_by_hand_comes_back(state: SqlCaptureState) -> None:
    """All of a checkpoint is kept, the pending part and 64-bit ids too."""
    to = place(2**63 - 1, Pending(PendingOf.ADDED, 40))
    stored = state.set_checkpoint(READER, Move(PLAYS, 0, to), reason="start here", now=NOW)
    assert stored == StoredCheckpoint(READER, PLAYS, to, 1, NOW, "start here")
    assert state.checkpoint(READER, PLAYS) == stored


def test_a_checkpoint_without_a_snapshot_comes_back(state: SqlCaptureState) -> None:
    """A table that had no snapshot yet has a checkpoint all the same."""
    to = Checkpoint("u", None, 0, None, 0, 0)
    state.set_checkpoint(READER, Move(PLAYS, 0, to), reason="empty", now=NOW)
    stored = state.checkpoint(READER, PLAYS)
    assert stored is not None
    assert stored.checkpoint == to


@pytest.mark.parametrize("expected", [0, 1, 3])
def test_setting_a_checkpoint_that_moved_is_refused(state: SqlCaptureState, expected: int) -> None:
    """Who sets a checkpoint by hand must know where it is."""
    state.set_checkpoint(READER, Move(PLAYS, 0, place(1)), reason="a", now=NOW)
    state.set_checkpoint(READER, Move(PLAYS, 1, place(2)), reason="b", now=NOW)
    with pytest.raises(ConcurrentCommit, match=f"at version 2, not {expected}") as caught:
        state.set_checkpoint(READER, Move(PLAYS, expected, place(3)), reason="c", now=NOW)
    assert caught.value.context == {
        "consumer": READER,
        "table": "lake.db.raw.plays",
        "expected": expected,
        "actual": 2,
    }
    assert [stored.checkpoint.snapshot_id for stored in state.checkpoints()] == [2]


def test_setting_a_checkpoint_that_should_be_there_is_refused(state: SqlCaptureState) -> None:
    """A version is expected, and there is no checkpoint at all."""
    with pytest.raises(ConcurrentCommit, match="at version 0, not 4"):
        state.set_checkpoint(READER, Move(PLAYS, 4, place()), reason="c", now=NOW)


def test_checkpoints_are_ordered_by_consumer_and_table(state: SqlCaptureState) -> None:
    """The order does not depend on the database or on who came first."""
    names = [USERS, PLAYS, TableName("other", (), "a"), TableName("Lake", ("z",), "a")]
    for consumer in ("b", "B", "a_", "a"):
        for table in names:
            state.set_checkpoint(consumer, Move(table, 0, place()), reason="r", now=NOW)
    found = [(stored.consumer, stored.table) for stored in state.checkpoints()]
    assert found == sorted((consumer, table) for consumer in ("b", "B", "a_", "a") for table in names)
    assert [(stored.consumer, stored.table) for stored in state.checkpoints("B")] == [
        ("B", table) for table in sorted(names)
    ]


def test_consumers_and_tables_do_not_mix(state: SqlCaptureState) -> None:
    """Every consumer has its own checkpoint in every table, catalogs told apart."""
    elsewhere = TableName("other", PLAYS.namespace, PLAYS.name)
    state.set_checkpoint(READER, Move(PLAYS, 0, place(1)), reason="r", now=NOW)
    assert state.checkpoint(READER, elsewhere) is None
    assert state.checkpoint(READER, USERS) is None
    assert state.checkpoint("weekly/merge", PLAYS) is None


@pytest.mark.parametrize(
    "table", [TableName("lake", ("a.b",), "t"), TableName("lake", ("a",), "b.t")], ids=["namespace", "name"]
)
def test_a_dot_inside_a_name_is_refused(state: SqlCaptureState, table: TableName) -> None:
    """Dotted names would be confused with deeper namespaces."""
    with pytest.raises(RequestInvalid, match="contains a dot"):
        state.checkpoint(READER, table)
    with pytest.raises(RequestInvalid, match="contains a dot"):
        state.set_checkpoint(READER, Move(table, 0, place()), reason="r", now=NOW)


def test_a_reset_forgets_the_checkpoint(state: SqlCaptureState) -> None:
    """After a reset the consumer starts anew, and only in that table."""
    state.set_checkpoint(READER, Move(PLAYS, 0, place(1)), reason="r", now=NOW)
    state.set_checkpoint(READER, Move(USERS, 0, place(1)), reason="r", now=NOW)
    state.reset_checkpoint(READER, PLAYS, reason="again", now=LATER)
    assert state.checkpoint(READER, PLAYS) is None
    assert [stored.table for stored in state.checkpoints()] == [USERS]


def test_nothing_cannot_be_reset(state: SqlCaptureState) -> None:
    """A reset says so when there is no checkpoint, or none any more."""
    with pytest.raises(CheckpointMissing, match=r"daily/merge has no checkpoint in lake\.db\.raw\.plays"):
        state.reset_checkpoint(READER, PLAYS, reason="r", now=NOW)
    state.set_checkpoint(READER, Move(PLAYS, 0, place()), reason="r", now=NOW)
    state.reset_checkpoint(READER, PLAYS, reason="r", now=NOW)
    with pytest.raises(CheckpointMissing):
        state.reset_checkpoint(READER, PLAYS, reason="r", now=NOW)
    assert len(state.checkpoint_log()) == 2


def test_a_version_never_comes_back(state: SqlCaptureState) -> None:
    """After a reset versions go on where they were: an old number cannot mean a new place."""
    state.set_checkpoint(READER, Move(PLAYS, 0, place(1)), reason="r", now=NOW)
    state.reset_checkpoint(READER, PLAYS, reason="r", now=NOW)
    assert state.set_checkpoint(READER, Move(PLAYS, 0, place(1)), reason="r", now=NOW).version == 3
    with pytest.raises(ConcurrentCommit, match="at version 3, not 1"):
        state.set_checkpoint(READER, Move(PLAYS, 1, place(9)), reason="r", now=NOW)


def test_the_log_tells_every_move(state: SqlCaptureState) -> None:
    """The log has what moved, when, why, from where and to where, oldest first, as plain JSON."""
    state.set_checkpoint(READER, Move(PLAYS, 0, place(1)), reason="by hand", now=NOW)
    committed(state, "c1", Move(PLAYS, 1, place(2)))
    state.reset_checkpoint(READER, PLAYS, reason="again", now=LATER)
    state.set_checkpoint("other", Move(USERS, 0, place(5)), reason="r", now=LATER)
    log = state.checkpoint_log(READER)
    assert [entry["seq"] for entry in log] == sorted({entry["seq"] for entry in log})
    assert [{key: value for key, value in entry.items() if key != "seq"} for entry in log] == [
        {
            "at": at.isoformat(),
            "consumer": READER,
            "table": "lake.db.raw.plays",
            "version": version,
            "reason": reason,
            "before": before,
            "after": after,
        }
        for at, version, reason, before, after in [
            (NOW, 1, "by hand", None, place(1).as_json()),
            (NOW, 2, "c1", place(1).as_json(), place(2).as_json()),
            (LATER, 3, "again", place(2).as_json(), None),
        ]
    ]
    assert [entry["consumer"] for entry in state.checkpoint_log()] == [READER] * 3 + ["other"]


def test_times_come_back_in_utc(state: SqlCaptureState) -> None:
    """A time given in another zone is the same instant when it is read, and has a zone."""
    there = NOW.astimezone(timezone(timedelta(hours=-7)))
    state.set_checkpoint(READER, Move(PLAYS, 0, place()), reason="r", now=there)
    stored = state.checkpoint(READER, PLAYS)
    assert stored is not None
    assert stored.moved_at == NOW
    assert stored.moved_at.tzinfo is UTC


def test_a_capture_is_recorded_before_it_is_written(state: SqlCaptureState) -> None:
    """Everything that a capture may leave behind is known before the first of it is made."""
    artifacts = Artifacts((("lake", "s3://b/m.avro"),), (PLAYS, USERS), ((PLAYS, "calve.c1"),))
    begun = state.begin("c1", READER, "run 7", artifacts, NOW)
    assert begun == StoredCapture("c1", READER, 1, "run 7", Status.WRITING, NOW, None, (), artifacts)
    assert state.capture("c1") == begun


def test_captures_are_numbered_by_consumer(state: SqlCaptureState) -> None:
    """Every consumer counts its own captures from 1, whatever becomes of them."""
    for number, capture_id in enumerate(("c1", "c2", "c3"), start=1):
        assert state.begin(capture_id, READER, None, Artifacts(), NOW).number == number
    assert state.begin("c4", "other", None, Artifacts(), NOW).number == 1


def test_the_same_id_cannot_begin_twice(state: SqlCaptureState) -> None:
    """An id names one capture for ever."""
    state.begin("c1", READER, None, Artifacts(), NOW)
    with pytest.raises(ConcurrentCapture, match="There is a capture c1 already"):
        state.begin("c1", "other", None, Artifacts(), NOW)


def test_an_open_capture_has_its_moves_and_its_document(state: SqlCaptureState) -> None:
    """What is opened comes back as it went in."""
    state.begin("c1", READER, None, Artifacts(), NOW)
    moves = (Move(USERS, 0, place(1)), Move(PLAYS, 0, place(2, Pending(PendingOf.LIVE, 3))))
    document = {"capture_id": "c1", "tables": [{"rows": 2**40, "text": "ä\u0000"}], "none": None}
    capture = state.open("c1", moves, document, supersede=False)
    assert capture == StoredCapture("c1", READER, 1, None, Status.OPEN, NOW, None, moves, Artifacts(), document)
    assert state.capture("c1") == capture
    assert state.checkpoints() == []


def test_a_capture_must_have_begun_to_be_opened(state: SqlCaptureState) -> None:
    """There is nothing to open under an unknown id."""
    with pytest.raises(CaptureMissing, match="There is no capture 'c1'"):
        state.open("c1", (), {}, supersede=False)


@pytest.mark.parametrize("supersede", [False, True])
def test_a_capture_opens_once(state: SqlCaptureState, *, supersede: bool) -> None:
    """A capture that is open or closed cannot be opened again."""
    opened(state, "c1")
    with pytest.raises(ConcurrentCapture, match="it is open already"):
        state.open("c1", (), {}, supersede=supersede)
    state.abandon("c1", NOW)
    with pytest.raises(ConcurrentCapture, match="it is abandoned already"):
        state.open("c1", (), {}, supersede=supersede)


def test_a_capture_gives_way_only_to_one_that_knows_it(state: SqlCaptureState) -> None:
    """Whoever names the capture that it looked at does not abandon one that came since."""
    opened(state, "c1")
    opened(state, "c2", supersede="c1")
    with pytest.raises(ConcurrentCapture, match="another capture open: c2"):
        opened(state, "c3", supersede="c1")
    assert (state.capture("c1").status, state.capture("c2").status) == (Status.ABANDONED, Status.OPEN)


def test_a_collected_capture_cannot_be_opened(state: SqlCaptureState) -> None:
    """A writer that was taken for dead finds its files gone, and must begin anew."""
    state.begin("c1", READER, None, Artifacts(), NOW)
    state.mark_collected("c1", NOW)
    with pytest.raises(ConcurrentCapture, match="collected as garbage") as caught:
        state.open("c1", (), {}, supersede=True)
    assert caught.value.remedy == "Take a new capture."


@pytest.mark.parametrize(
    ("age", "said"),
    [
        (timedelta(seconds=-5), "0 s"),
        (timedelta(seconds=59), "59 s"),
        (timedelta(minutes=2), "2 min"),
        (timedelta(hours=3), "3 h"),
        (timedelta(days=40, hours=1), "40 d"),
    ],
)
def test_a_consumer_has_one_open_capture(state: SqlCaptureState, age: timedelta, said: str) -> None:
    """The second capture is refused, and told who is in the way, since when, and what to do."""
    opened(state, "c1")
    with pytest.raises(
        ConcurrentCapture, match=f"daily/merge has another capture open: c1, started {said} ago"
    ) as caught:
        opened(state, "c2", now=NOW + age)
    assert caught.value.remedy == "Commit or abandon c1, or pass --supersede to abandon it."
    assert caught.value.context["capture_id"] == "c1"
    assert state.capture("c2").status is Status.WRITING
    opened(state, "c3", consumer="other")


def test_superseding_abandons_the_open_capture(state: SqlCaptureState) -> None:
    """The new capture takes the place of the open one, which can no longer commit."""
    opened(state, "c1", Move(PLAYS, 0, place(1)))
    opened(state, "c2", Move(PLAYS, 0, place(2)), supersede=True, now=LATER)
    old = state.capture("c1")
    assert (old.status, old.closed_at) == (Status.ABANDONED, LATER)
    with pytest.raises(CaptureClosed, match="Capture c1 was abandoned at 2026-03-01T15:00:00"):
        state.commit("c1", LATER)
    assert state.commit("c2", LATER).status is Status.COMMITTED


def test_superseding_nothing_is_just_opening(state: SqlCaptureState) -> None:
    """Closed captures and those of others are left alone."""
    committed(state, "c1")
    opened(state, "c2", consumer="other")
    assert opened(state, "c3", supersede=True).status is Status.OPEN
    assert state.capture("c1").status is Status.COMMITTED
    assert state.capture("c2").status is Status.OPEN


def test_a_refused_superseder_abandons_nothing(state: SqlCaptureState) -> None:
    """When the new capture cannot be opened, the open one stays."""
    opened(state, "c1")
    with pytest.raises(ConcurrentCapture, match="at version 0, not 5"):
        opened(state, "c2", Move(PLAYS, 5, place()), supersede=True)
    assert state.capture("c1").status is Status.OPEN


def test_opening_demands_the_checkpoint_it_was_planned_from(state: SqlCaptureState) -> None:
    """A capture of a range that someone else committed meanwhile is of no use."""
    state.begin("c1", READER, None, Artifacts(), NOW)
    state.set_checkpoint(READER, Move(PLAYS, 0, place(1)), reason="r", now=NOW)
    with pytest.raises(ConcurrentCapture, match="at version 1, not 0") as caught:
        state.open("c1", [Move(USERS, 0, place()), Move(PLAYS, 0, place(1))], {}, supersede=False)
    assert (caught.value.context["expected"], caught.value.context["actual"]) == (0, 1)
    assert state.capture("c1").status is Status.WRITING


def test_a_key_finds_its_capture(state: SqlCaptureState) -> None:
    """A repeated request gets the capture of the first, once it is written and unless it was given up."""
    state.begin("c1", READER, "run 7", Artifacts(), NOW)
    assert state.capture_by_key(READER, "run 7") is None
    state.open("c1", (), {}, supersede=False)
    assert state.capture_by_key(READER, "run 7") == state.capture("c1")
    assert state.capture_by_key("other", "run 7") is None
    state.commit("c1", NOW)
    assert state.capture_by_key(READER, "run 7") == state.capture("c1")


@pytest.mark.parametrize("end", [None, "commit"])
def test_a_key_has_one_capture(state: SqlCaptureState, end: str | None) -> None:
    """Of two requests with one key that write at once, the second to open is refused."""
    state.begin("c1", READER, "run 7", Artifacts(), NOW)
    state.begin("c2", READER, "run 7", Artifacts(), NOW)
    state.open("c1", (), {}, supersede=False)
    if end is not None:
        getattr(state, end)("c1", NOW)
    with pytest.raises(ConcurrentCapture, match="has a capture for 'run 7' already: c1") as caught:
        state.open("c2", (), {}, supersede=True)
    assert caught.value.context == {"capture_id": "c1", "key": "run 7"}
    assert state.capture("c1").status is (Status.OPEN if end is None else state.capture("c1").status)


def test_the_same_key_of_another_consumer_is_another_key(state: SqlCaptureState) -> None:
    """Keys belong to consumers."""
    opened(state, "c1", key="run 7")
    assert opened(state, "c2", key="run 7", consumer="other").key == "run 7"


def test_an_abandoned_capture_gives_its_key_back(state: SqlCaptureState) -> None:
    """A capture that was given up, while it was written or later, leaves its key to the next one."""
    state.begin("c1", READER, "run 7", Artifacts(), NOW)
    state.abandon("c1", NOW)
    opened(state, "c2", key="run 7")
    state.abandon("c2", NOW)
    assert state.capture_by_key(READER, "run 7") is None
    assert opened(state, "c3", key="run 7").key == "run 7"
    with pytest.raises(ConcurrentCapture, match="it is abandoned already"):
        state.open("c1", (), {}, supersede=True)


def test_a_commit_moves_every_checkpoint(state: SqlCaptureState) -> None:
    """All tables of a capture move together, and the capture is closed."""
    state.set_checkpoint(READER, Move(PLAYS, 0, place(1)), reason="r", now=NOW)
    opened(state, "c1", Move(USERS, 0, place(8)), Move(PLAYS, 1, place(2)))
    done = state.commit("c1", LATER)
    assert (done.status, done.closed_at) == (Status.COMMITTED, LATER)
    assert state.checkpoints() == [
        StoredCheckpoint(READER, USERS, place(8), 1, LATER, "c1"),
        StoredCheckpoint(READER, PLAYS, place(2), 2, LATER, "c1"),
    ]


def test_a_commit_may_be_repeated(state: SqlCaptureState) -> None:
    """Repeating a commit changes nothing, even after the checkpoint went on."""
    first = committed(state, "c1", Move(PLAYS, 0, place(1)))
    committed(state, "c2", Move(PLAYS, 1, place(2)))
    assert state.commit("c1", LATER) == first
    stored = state.checkpoint(READER, PLAYS)
    assert stored is not None
    assert (stored.version, stored.moved_by) == (2, "c2")
    assert len(state.checkpoint_log()) == 2


def test_a_commit_is_all_or_nothing(state: SqlCaptureState) -> None:
    """When one table's checkpoint moved, none is moved, and the capture stays open."""
    opened(state, "c1", Move(PLAYS, 0, place(1)), Move(USERS, 0, place(1)))
    state.set_checkpoint(READER, Move(USERS, 0, place(5)), reason="r", now=NOW)
    with pytest.raises(ConcurrentCommit, match=r"in lake\.db\.users is at version 1, not 0") as caught:
        state.commit("c1", NOW)
    assert caught.value.remedy == "Abandon this capture and take a new one."
    assert [stored.table for stored in state.checkpoints()] == [USERS]
    assert state.capture("c1").status is Status.OPEN
    assert len(state.checkpoint_log()) == 1


def test_a_capture_of_nothing_commits(state: SqlCaptureState) -> None:
    """A capture without moves closes without moving anything."""
    assert committed(state, "c1").status is Status.COMMITTED
    assert state.checkpoint_log() == []


def test_a_reset_is_felt_by_the_open_capture(state: SqlCaptureState) -> None:
    """A capture planned from a checkpoint that was reset cannot commit."""
    state.set_checkpoint(READER, Move(PLAYS, 0, place(1)), reason="r", now=NOW)
    opened(state, "c1", Move(PLAYS, 1, place(2)))
    state.reset_checkpoint(READER, PLAYS, reason="again", now=NOW)
    with pytest.raises(ConcurrentCommit, match="at version 0, not 1"):
        state.commit("c1", NOW)


def test_a_first_capture_does_not_survive_set_and_reset(state: SqlCaptureState) -> None:
    """No checkpoint then and none now is not the same: in between someone committed and reset."""
    opened(state, "c1", Move(PLAYS, 0, place(2)))
    state.set_checkpoint(READER, Move(PLAYS, 0, place(1)), reason="r", now=NOW)
    state.reset_checkpoint(READER, PLAYS, reason="again", now=NOW)
    with pytest.raises(ConcurrentCommit, match="was set and reset since the capture was opened"):
        state.commit("c1", NOW)
    assert state.checkpoint(READER, PLAYS) is None


def test_a_first_capture_does_not_win_over_a_later_first_commit(state: SqlCaptureState) -> None:
    """A capture opened before a reset is refused after someone else's first commit."""
    opened(state, "c1", Move(PLAYS, 0, place(2)))
    for _ in range(2):
        state.set_checkpoint(READER, Move(PLAYS, 0, place(1)), reason="r", now=NOW)
        state.reset_checkpoint(READER, PLAYS, reason="again", now=NOW)
    state.set_checkpoint(READER, Move(PLAYS, 0, place(1)), reason="r", now=NOW)
    with pytest.raises(ConcurrentCommit, match="at version 5, not 0"):
        state.commit("c1", NOW)


def test_a_capture_opened_after_a_reset_commits(state: SqlCaptureState) -> None:
    """After a reset the consumer expects no checkpoint, and goes on with the next version."""
    state.set_checkpoint(READER, Move(PLAYS, 0, place(1)), reason="r", now=NOW)
    state.reset_checkpoint(READER, PLAYS, reason="again", now=NOW)
    committed(state, "c1", Move(PLAYS, 0, place(2)))
    stored = state.checkpoint(READER, PLAYS)
    assert stored is not None
    assert (stored.version, stored.checkpoint) == (3, place(2))


def test_an_abandoned_capture_moves_nothing(state: SqlCaptureState) -> None:
    """Abandoning closes the capture, may be repeated, and cannot be undone."""
    opened(state, "c1", Move(PLAYS, 0, place(1)))
    gone = state.abandon("c1", LATER)
    assert (gone.status, gone.closed_at) == (Status.ABANDONED, LATER)
    assert state.abandon("c1", LATER + timedelta(days=1)) == gone
    with pytest.raises(CaptureClosed) as caught:
        state.commit("c1", LATER)
    assert caught.value.context == {"capture_id": "c1", "status": "abandoned"}
    assert state.checkpoints() == []
    opened(state, "c2")


def test_a_committed_capture_cannot_be_abandoned(state: SqlCaptureState) -> None:
    """What is committed stays committed."""
    committed(state, "c1", Move(PLAYS, 0, place(1)))
    with pytest.raises(CaptureClosed, match="Capture c1 was committed"):
        state.abandon("c1", NOW)


def test_a_capture_being_written_cannot_be_committed(state: SqlCaptureState) -> None:
    """There is nothing to commit yet."""
    state.begin("c1", READER, None, Artifacts(), NOW)
    with pytest.raises(CaptureMissing, match="c1 is still being written"):
        state.commit("c1", NOW)


@pytest.mark.parametrize("method", ["capture", "commit", "abandon", "mark_collected"])
def test_an_unknown_capture_is_missing(state: SqlCaptureState, method: str) -> None:
    """Every method says so when there is no such capture."""
    arguments = () if method == "capture" else (NOW,)
    with pytest.raises(CaptureMissing, match="There is no capture 'c9'") as caught:
        getattr(state, method)("c9", *arguments)
    assert caught.value.context == {"capture_id": "c9"}


def test_captures_are_listed_newest_first(state: SqlCaptureState) -> None:
    """Those being written are not listed; within a consumer the number counts, not the clock."""
    committed(state, "c1")
    opened(state, "c2", now=NOW - timedelta(days=1))
    opened(state, "c3", consumer="other", now=LATER)
    state.begin("c4", READER, None, Artifacts(), LATER)
    assert [capture.capture_id for capture in state.captures(READER)] == ["c2", "c1"]
    assert [capture.capture_id for capture in state.captures()] == ["c3", "c1", "c2"]
    assert state.captures("nobody") == []


def test_captures_are_read_in_parts(state: SqlCaptureState) -> None:
    """Each goes on after a capture, in the same order as all; also where many were begun at the same moment."""
    for number in range(9):
        at = NOW + timedelta(hours=number // 3)
        committed_at = opened(state, f"c{number}", consumer=f"reader{number % 2}", supersede=True, now=at)
        assert committed_at.created_at == at
    for consumer in (None, "reader0", "nobody"):
        every = [one.capture_id for one in state.captures(consumer)]
        for limit in (1, 2, 4, 20):
            found: list[str] = []
            while part := state.captures_after(found[-1] if found else None, consumer, limit):
                assert len(part) <= limit
                found += [one.capture_id for one in part]
            assert found == every
    assert state.captures_after("unknown", None, 5) == []
    assert state.captures_after("c1", "reader0", 5) == []


def test_the_moves_of_a_capture_are_found_however_many_came_later(state: SqlCaptureState) -> None:
    """Those of its commit, of all its tables; not those of others, nor a move by hand that names it as its reason."""
    taken = committed(state, "c0", Move(PLAYS, 0, place(1)), Move(USERS, 0, place(2)))
    for number in range(1, 5):
        committed(state, f"c{number}", Move(PLAYS, number, place(10 + number)))
    state.set_checkpoint("other", Move(PLAYS, 0, place(3)), reason="c0", now=NOW)
    assert [(one["table"], one["after"]["snapshot_id"]) for one in state.moves_of(taken)] == [
        ("lake.db.raw.plays", 1),
        ("lake.db.users", 2),
    ]
    unused = opened(state, "c9", Move(PLAYS, 5, place(20)))
    assert state.moves_of(unused) == []


def test_a_consumers_open_capture_is_found(state: SqlCaptureState) -> None:
    """Only the open one: not those being written, not the closed ones, not another consumer's."""
    state.begin("c1", READER, None, Artifacts(), NOW)
    opened(state, "c2", consumer="other")
    assert state.open_capture(READER) is None
    state.open("c1", (), {}, supersede=False)
    assert state.open_capture(READER) == state.capture("c1")
    state.commit("c1", NOW)
    assert state.open_capture(READER) is None


def test_the_last_number_counts_all_captures_of_a_consumer(state: SqlCaptureState) -> None:
    """Those being written and the closed ones too."""
    assert state.last_number(READER) == 0
    committed(state, "c1")
    state.begin("c2", READER, None, Artifacts(), NOW)
    opened(state, "c3", consumer="other")
    assert state.last_number(READER) == 2


def test_garbage_is_what_nobody_needs_any_more(state: SqlCaptureState) -> None:
    """Closed captures are garbage at once, writers when they are old, open captures never."""
    committed(state, "committed")
    opened(state, "abandoned")
    state.abandon("abandoned", NOW)
    opened(state, "open")
    state.begin("crashed", READER, None, Artifacts((("lake", "f"),)), NOW - timedelta(microseconds=1))
    state.begin("writing", READER, None, Artifacts(), NOW)
    found = state.garbage(written_before=NOW)
    assert [capture.capture_id for capture in found] == ["crashed", "committed", "abandoned"]
    assert found[0].artifacts.files == (("lake", "f"),)


def test_collected_captures_are_no_garbage(state: SqlCaptureState) -> None:
    """Collecting is recorded once, and may be repeated."""
    committed(state, "c1")
    state.mark_collected("c1", NOW)
    state.mark_collected("c1", LATER)
    assert state.capture("c1").collected_at == NOW
    assert state.garbage(LATER) == []
    assert [capture.capture_id for capture in state.captures()] == ["c1"]


def test_an_open_capture_cannot_be_collected(state: SqlCaptureState) -> None:
    """A writer that was taken for dead and then opened its capture keeps its files."""
    opened(state, "c1")
    with pytest.raises(ConcurrentCapture, match="c1 is open: its artifacts are in use"):
        state.mark_collected("c1", NOW)


def at_once(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Do something in many threads at the same moment; give what they returned, or the error they raised."""
    gate = threading.Barrier(count)
    results: list[Any] = [None] * count

    def run(number: int) -> None:
        gate.wait()
        try:
            results[number] = work(number)
        except CalveError as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.fixture
def states(store_url: str) -> Iterator[list[SqlCaptureState]]:
    """Give four stores on one database, as four processes would have them."""
    with ExitStack() as stores:
        yield [stores.enter_context(open_store(store_url)).captures for _ in range(4)]


def test_numbers_are_unique_under_a_rush(states: list[SqlCaptureState]) -> None:
    """Captures that begin at once get different numbers, without holes."""

    def begin_five(who: int) -> list[int]:
        return [states[who].begin(f"c{who}{turn}", READER, None, Artifacts(), NOW).number for turn in range(5)]

    assert sorted(itertools.chain.from_iterable(at_once(4, begin_five))) == list(range(1, 21))


def test_one_of_many_opens(states: list[SqlCaptureState]) -> None:
    """Of captures that open at once, exactly one is open and the others hear its name."""
    for who in range(4):
        states[0].begin(f"c{who}", READER, None, Artifacts(), NOW)
    results = at_once(4, lambda who: states[who].open(f"c{who}", (), {}, supersede=False))
    winners = [result.capture_id for result in results if isinstance(result, StoredCapture)]
    assert len(winners) == 1
    losers = [result for result in results if isinstance(result, ConcurrentCapture)]
    assert [error.context["capture_id"] for error in losers] == winners * 3


def test_one_of_many_with_a_key_opens(states: list[SqlCaptureState]) -> None:
    """Of captures with one key that open at once, superseding, exactly one is opened ever."""
    for who in range(4):
        states[0].begin(f"c{who}", READER, "run 7", Artifacts(), NOW)
    results = at_once(4, lambda who: states[who].open(f"c{who}", (), {}, supersede=True))
    assert sum(isinstance(result, StoredCapture) for result in results) == 1
    assert sum(isinstance(result, ConcurrentCapture) for result in results) == 3


def test_many_supersede_at_once(states: list[SqlCaptureState]) -> None:
    """Captures that supersede each other all get their turn; one is open in the end."""
    opened(states[0], "first")
    for who in range(4):
        states[0].begin(f"c{who}", READER, None, Artifacts(), NOW)
    results = at_once(4, lambda who: states[who].open(f"c{who}", (), {}, supersede=True))
    assert all(isinstance(result, StoredCapture) for result in results)
    statuses = [capture.status for capture in states[0].captures(READER)]
    assert sorted(statuses) == [Status.ABANDONED] * 4 + [Status.OPEN]


def test_many_commit_one_capture_at_once(states: list[SqlCaptureState]) -> None:
    """Everybody is told that the capture is committed; the checkpoint moved once."""
    opened(states[0], "c1", Move(PLAYS, 0, place(1)), Move(USERS, 0, place(1)))
    results = at_once(4, lambda who: states[who].commit("c1", NOW + timedelta(seconds=who)))
    assert {result.status for result in results} == {Status.COMMITTED}
    assert len({result.closed_at for result in results}) == 1
    assert [stored.version for stored in states[0].checkpoints()] == [1, 1]


def test_commit_and_abandon_at_once(states: list[SqlCaptureState]) -> None:
    """Either the capture is committed and the checkpoint moved, or neither."""
    for turn in range(5):
        before = states[0].checkpoint(READER, PLAYS)
        version = before.version if before else 0
        opened(states[0], f"c{turn}", Move(PLAYS, version, place(turn)))
        ways = [states[0].commit, states[1].abandon, states[2].commit, states[3].abandon]
        results = at_once(4, lambda who, turn=turn, ways=ways: ways[who](f"c{turn}", NOW))  # type: ignore[misc]
        after = states[0].checkpoint(READER, PLAYS)
        is_moved = (after.version if after else 0) == version + 1
        assert states[0].capture(f"c{turn}").status is (Status.COMMITTED if is_moved else Status.ABANDONED)
        assert sum(isinstance(result, CaptureClosed) for result in results) == 2


@pytest.mark.parametrize("table", [PLAYS, USERS], ids=["same", "other"])
def test_superseding_waits_for_a_commit_in_flight(
    states: list[SqlCaptureState], monkeypatch: pytest.MonkeyPatch, table: TableName
) -> None:
    """A capture that is being committed is not abandoned, and its new checkpoint is seen."""
    opened(states[0], "old", Move(PLAYS, 0, place(1)))
    states[0].begin("new", READER, None, Artifacts(), NOW)
    is_in_flight = threading.Event()

    def pause(name: str) -> None:
        if name == "store.commit.before_commit":
            is_in_flight.set()
            time.sleep(0.2)

    monkeypatch.setattr(database, "reach", pause)

    def work(who: int) -> Any:
        if who == 0:
            return states[0].commit("old", NOW)
        is_in_flight.wait()
        return states[1].open("new", [Move(table, 0, place(2))], {}, supersede=True)

    result = at_once(2, work)[1]
    assert isinstance(result, ConcurrentCapture if table == PLAYS else StoredCapture)
    assert states[0].capture("old").status is Status.COMMITTED


def test_one_of_many_moves_the_checkpoint(states: list[SqlCaptureState]) -> None:
    """A commit and settings by hand from the same version: one moves the checkpoint, round after round."""
    for turn in range(5):
        opened(states[0], f"c{turn}", Move(PLAYS, turn, place(turn)), supersede=True)

        def move(who: int, turn: int = turn) -> Any:
            if who == 0:
                return states[0].commit(f"c{turn}", NOW)
            return states[who].set_checkpoint(READER, Move(PLAYS, turn, place(who)), reason="r", now=NOW)

        results = at_once(4, move)
        assert sum(isinstance(result, ConcurrentCommit) for result in results) == 3
        stored = states[0].checkpoint(READER, PLAYS)
        assert stored is not None
        assert stored.version == turn + 1
    assert [entry["version"] for entry in states[0].checkpoint_log()] == [1, 2, 3, 4, 5]


def test_resets_and_moves_at_once_leave_no_gap(states: list[SqlCaptureState]) -> None:
    """Whatever the order, the log is without holes and the checkpoint is what the log says last."""

    def work(who: int) -> None:
        for turn in range(5):
            try:
                if who % 2:
                    states[who].reset_checkpoint(READER, PLAYS, reason="r", now=NOW)
                else:
                    here = states[who].checkpoint(READER, PLAYS)
                    move = Move(PLAYS, here.version if here else 0, place(turn))
                    states[who].set_checkpoint(READER, move, reason="s", now=NOW)
            except (CheckpointMissing, ConcurrentCommit):
                continue

    assert at_once(4, work) == [None] * 4
    log = states[0].checkpoint_log()
    assert [entry["version"] for entry in log] == list(range(1, len(log) + 1))
    for before, after in itertools.pairwise(log):
        assert before["after"] == after["before"]
    here = states[0].checkpoint(READER, PLAYS)
    assert (here and here.checkpoint.as_json()) == log[-1]["after"]


def test_threads_share_a_store(state: SqlCaptureState) -> None:
    """One store may be used from many threads."""

    def work(who: int) -> int:
        consumer = f"consumer {who}"
        for turn in range(5):
            committed(state, f"c{who}-{turn}", Move(PLAYS, turn, place(turn)), consumer=consumer)
        stored = state.checkpoint(consumer, PLAYS)
        return stored.version if stored else 0

    assert at_once(8, work) == [5] * 8


def in_process(work: Callable[[], None]) -> "multiprocessing.process.BaseProcess":
    """Start a forked process; nothing of the database may be open here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the test runner's own threads, from Python 3.12 on
        process = multiprocessing.get_context("fork").Process(target=work)
        process.start()
    return process


def test_processes_move_a_checkpoint_one_after_the_other(store_url: str) -> None:
    """Four processes make the database, capture, supersede and commit at once; each success is one move."""
    moved = multiprocessing.get_context("fork").Value("i", 0)

    def work() -> None:
        with open_store(store_url) as store:
            state = store.captures
            for turn in range(10):
                capture_id = f"{os.getpid()}-{turn}"
                try:
                    here = state.checkpoint(READER, PLAYS)
                    move = Move(PLAYS, here.version if here else 0, place(turn))
                    opened(state, capture_id, move, supersede=turn % 2 == 0)
                    state.commit(capture_id, NOW)
                except (ConcurrentCapture, ConcurrentCommit, CaptureClosed):
                    continue
                with moved.get_lock():
                    moved.value += 1

    processes = [in_process(work) for _ in range(4)]
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    with open_store(store_url) as store:
        state = store.captures
        stored = state.checkpoint(READER, PLAYS)
        assert stored is not None
        assert stored.version == moved.value > 0
        assert [entry["version"] for entry in state.checkpoint_log()] == list(range(1, moved.value + 1))
        done = [capture for capture in state.captures() if capture.status is Status.COMMITTED]
        assert len(done) == moved.value


METHODS: dict[str, Callable[[SqlCaptureState], object]] = {
    "set_checkpoint": lambda state: state.set_checkpoint(READER, Move(USERS, 1, place(2)), reason="r", now=NOW),
    "reset_checkpoint": lambda state: state.reset_checkpoint(READER, USERS, reason="r", now=NOW),
    "begin": lambda state: state.begin("new", READER, None, Artifacts((("lake", "f"),)), NOW),
    "open": lambda state: state.open("written", [Move(PLAYS, 0, place(1))], {"a": 1}, supersede=True),
    "commit": lambda state: state.commit("open", NOW),
    "abandon": lambda state: state.abandon("open", NOW),
    "mark_collected": lambda state: state.mark_collected("done", NOW),
}


def prepared(store: Store) -> None:
    """Bring a store to where every write method has something to do."""
    state = store.captures
    state.set_checkpoint(READER, Move(USERS, 0, place(1)), reason="r", now=NOW)
    committed(state, "done")
    opened(state, "open", Move(PLAYS, 0, place(3)), Move(USERS, 1, place(4)))
    state.begin("written", READER, None, Artifacts(), NOW)


def content(url: str) -> dict[str, Any]:
    """Return everything that a database says."""
    with open_store(url) as store:
        state = store.captures
        found: dict[str, Any] = {
            "checkpoints": state.checkpoints(),
            "log": [{**entry, "seq": 0} for entry in state.checkpoint_log()],
            "captures": state.captures(),
            "garbage": state.garbage(LATER),
        }
    return found


@pytest.mark.parametrize("moment", ["before_commit", "after_commit"])
@pytest.mark.parametrize("method", METHODS)
def test_a_killed_process_leaves_all_or_nothing(store_url: str, method: str, moment: str) -> None:
    """Killed before a commit nothing happened, killed after it all did; the next process can do its work."""
    with open_store(store_url) as store:
        prepared(store)
    before = content(store_url)

    def work() -> None:
        failpoints.arm(f"store.{method}.{moment}:1:kill")
        with open_store(store_url) as store:
            METHODS[method](store.captures)

    process = in_process(work)
    process.join(60)
    assert process.exitcode == -9
    after = content(store_url)
    if moment == "before_commit":
        assert after == before
        with open_store(store_url) as store:
            METHODS[method](store.captures)
        after = content(store_url)
    assert after != before
    with open_store(store_url) as store:  # whatever was in the way is gone: the consumer goes on
        state = store.captures
        here = state.checkpoint(READER, USERS)
        opened(state, "next", Move(USERS, here.version if here else 0, place(9)), supersede=True)
        assert state.commit("next", NOW).status is Status.COMMITTED


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the URL of a database that has not even a schema."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/state/calve.db"
    return str(request.getfixturevalue("postgres_database"))


@pytest.mark.parametrize("moment", ["before_commit", "after_commit"])
def test_a_process_killed_while_it_makes_the_schema(empty_url: str, moment: str) -> None:
    """The schema is there or not, never half."""

    def work() -> None:
        failpoints.arm(f"store.migrate.{moment}:1:kill")
        open_store(empty_url)

    process = in_process(work)
    process.join(60)
    assert process.exitcode == -9
    with open_store(empty_url) as store:
        prepared(store)


def test_the_migrations_make_the_tables(store: Store) -> None:
    """From nothing, the migrations lead to exactly the tables that the code knows."""
    with store._database.read() as connection:
        assert (
            compare_metadata(
                MigrationContext.configure(connection, opts={"version_table": schema.VERSION_TABLE}), tables.metadata
            )
            == []
        )
        assert connection.scalar(text("SELECT version_num FROM calve_version")) == schema.HEAD


def test_opening_again_changes_nothing(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema that is up to date is only looked at."""
    open_store(store_url).close()
    monkeypatch.delattr(schema, "_create")
    with open_store(store_url) as store:
        assert store.captures.captures() == []


def test_a_newer_schema_is_refused(store_url: str) -> None:
    """An old calve does not touch what a newer one wrote, and says so."""
    with open_store(store_url) as store, store._database.write("test") as connection:
        connection.execute(text("UPDATE calve_version SET version_num = '0999'"))
    with pytest.raises(StoreSchemaUnknown, match="has schema 0999; this calve knows") as caught:
        open_store(store_url)
    assert caught.value.context == {"revision": "0999", "known": schema.HEAD}
    assert "Upgrade calve" in caught.value.remedy


def test_many_open_a_new_database_at_once(store_url: str) -> None:
    """One makes the schema, the others wait for it."""

    def work(who: int) -> int:
        with open_store(store_url) as store:
            return store.captures.begin(f"c{who}", READER, None, Artifacts(), NOW).number

    assert sorted(at_once(6, work)) == [1, 2, 3, 4, 5, 6]


def test_a_checkpoint_is_adopted_at_a_later_position(state: SqlCaptureState) -> None:
    """The moves that were lost leave a gap, and captures that are open will not commit any more."""
    committed(state, "c1", Move(PLAYS, 0, place(1)))
    opened(state, "c2", Move(PLAYS, 1, place(2)))
    state.adopt(READER, [Adoption(Move(PLAYS, 1, place(5)), 5)], reason="delivered", now=LATER)
    found = state.checkpoint(READER, PLAYS)
    assert found is not None
    assert (found.version, found.checkpoint, found.moved_by) == (5, place(5), "delivered")
    assert state.position(READER, PLAYS) == 5
    assert [entry["version"] for entry in state.checkpoint_log()] == [1, 5]
    with pytest.raises(ConcurrentCommit):
        state.commit("c2", LATER)
    state.abandon("c2", LATER)
    committed(state, "c3", Move(PLAYS, 5, place(6)))
    assert state.position(READER, PLAYS) == 6


@pytest.mark.parametrize(("expected", "version"), [(0, 9), (1, 1), (2, 9)])
def test_a_checkpoint_that_has_moved_is_not_adopted(state: SqlCaptureState, expected: int, version: int) -> None:
    """All tables are adopted, or none is; and never a position that has been passed."""
    committed(state, "c1", Move(PLAYS, 0, place(1)))
    moves = [Adoption(Move(USERS, 0, place(3)), 2), Adoption(Move(PLAYS, expected, place(5)), version)]
    with pytest.raises(ConcurrentCommit):
        state.adopt(READER, moves, reason="delivered", now=LATER)
    assert state.checkpoint(READER, USERS) is None
    assert state.position(READER, PLAYS) == 1
