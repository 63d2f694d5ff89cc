"""Logs of attempts: what is handed to the store, and what lies in a file until then."""

from pathlib import Path

import pytest

from calve.engine.logs import Log, LogLimits, Spool, after, spooled, writer as logs
from calve.engine.model import LogChunk, LogExtent

SMALL = LogLimits(head=10, tail=10)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut into small blocks, and put few of them into a piece."""
    monkeypatch.setattr(logs, "BLOCK", 8)
    monkeypatch.setattr(logs, "PIECE", 24)


def written(log: Log, *texts: str) -> list[tuple[int, str]]:
    """Write texts; return the places and texts of the pieces that come of it."""
    for text in texts:
        log.write(text)
    return [(piece.start, piece.text) for piece in log.take()]


def test_a_log_is_handed_out_in_pieces() -> None:
    """Each with its number, its place, and how many lines come before it; nothing new makes no piece."""
    log = Log("key", number=5)
    assert log.take() == []
    log.write("a\n")
    log.write("é\n")
    assert log.take() == [LogChunk("key", 5, "a\né\n", 0, 0, (4_000_000, -3_999_995))]
    log.write("c\n")
    (piece,) = log.take()
    assert (piece.number, piece.start, piece.line, piece.size) == (6, 5, 2, 2)


def test_a_piece_that_was_not_kept_comes_again_as_it_was() -> None:
    """Before what came since: it may have been kept after all, and the store knows it by its number."""
    log = Log("key")
    log.write("a")
    first = log.take()
    log.write("b")
    second = log.take()
    log.put_back(second)
    log.put_back(first)
    log.write("c")
    again = log.take()
    assert again[:2] == [*first, *second]
    assert [piece.number for piece in again] == [0, 1, 2]


def test_of_a_long_log_the_store_keeps_both_ends() -> None:
    """Each piece says what it takes the place of; the line that says so is made by whoever reads."""
    log = Log("key", SMALL)
    assert written(log, "1234\n", "5678\n") == [(0, "1234\n5678\n")]
    assert written(log, "abcd\n") == [(10, "abcd\n")]
    log.write("efgh\n")
    log.write("ijkl\n")
    (piece,) = log.take()
    assert (piece.start, piece.text, piece.dropped) == (15, "efgh\nijkl\n", (10, 15))


def test_what_comes_faster_than_it_is_taken_is_dropped_in_the_middle() -> None:
    """Memory is bounded: head and tail stay, with a hole between them."""
    log = Log("key", SMALL)
    for number in range(1_000):
        log.write(f"{number:04}\n")
    pieces = log.take()
    assert [(piece.start, piece.text) for piece in pieces] == [(0, "0000\n0001\n"), (4_990, "0998\n0999\n")]
    assert [piece.line for piece in pieces] == [0, 998]
    assert (log.end, log.lines) == (5_000, 1_000)


def test_pieces_that_could_not_be_kept_are_dropped_in_the_middle_too() -> None:
    """While a database is away, for however long."""
    log = Log("key", SMALL)
    for number in range(100):
        log.write(f"{number:04}\n")
        log.put_back(log.take())
    assert [piece.text for piece in log.take()] == ["0000\n", "0001\n", "0098\n", "0099\n"]


def test_a_text_is_cut_between_lines_or_at_least_between_letters() -> None:
    """Into blocks; pieces are made of some of them."""
    assert list(logs._cut(b"12345\n7890\nxy")) == [b"12345\n", b"7890\nxy"]
    assert list(logs._cut(b"")) == []
    parts = list(logs._cut("ééééééééé\U0001f40d\U0001f40d\U0001f40d".encode()))
    assert b"".join(parts).decode() == "ééééééééé\U0001f40d\U0001f40d\U0001f40d"
    assert all(part.decode() and len(part) <= 8 for part in parts)
    log = Log("key")
    log.write("x" * 100)
    assert [piece.size for piece in log.take()] == [16] * 6 + [4]


def test_what_no_file_can_hold_is_replaced() -> None:
    """A lone surrogate has no bytes."""
    assert written(Log("key"), "a\ud800") == [(0, "a?")]


def test_a_spool_holds_what_the_store_does_not_have_yet(tmp_path: Path) -> None:
    """And nothing is left of it, nor of the attempt's folder, once it has all."""
    spool = Spool(tmp_path / "key" / "log")
    log = Log("key", spool=spool)
    log.write("first\n")
    log.write("more\n")
    assert [(start, path.read_text()) for start, path in spooled(spool.folder)] == [(0, "first\nmore\n")]
    pieces = log.take()
    log.write("later\n")
    log.kept(pieces)
    assert [(start, path.read_text()) for start, path in spooled(spool.folder)] == [(11, "later\n")]
    log.kept([])
    log.kept(log.take())
    assert not (tmp_path / "key").exists()
    log.kept(pieces)
    Log("other").kept(pieces)


def test_a_folder_that_holds_something_else_stays(tmp_path: Path) -> None:
    """The attempt's own files, say."""
    log = Log("key", spool=Spool(tmp_path / "key" / "log"))
    log.write("text")
    (tmp_path / "key" / "work").mkdir()
    log.kept(log.take())
    assert [path.name for path in (tmp_path / "key").iterdir()] == ["work"]


def test_what_a_dead_worker_has_written_is_found(tmp_path: Path) -> None:
    """What the store has is not written again; what it lacks is, and goes on after it."""
    folder = tmp_path / "key" / "log"
    dead = Log("key", spool=Spool(folder))
    dead.write("kept\n")
    dead.take()  # it was kept, but the worker died before it could say so
    dead.write("lost?\n")
    dead.take()
    dead.write("last words\n")
    heir = Log("key", LogLimits(), Spool(folder), 7, 5, 1)
    heir.recover()
    heir.write("new\n")
    pieces = heir.take()
    assert (pieces[0].number, pieces[0].start, pieces[0].line) == (7, 5, 1)
    assert "".join(piece.text for piece in pieces) == "lost?\nlast words\nnew\n"
    heir.kept(pieces)
    assert not folder.exists()
    elsewhere = Log("key", spool=Spool(tmp_path / "other"))
    elsewhere.recover()
    Log("key").recover()
    assert elsewhere.take() == []


def test_a_whole_log_is_spooled_in_parts(tmp_path: Path) -> None:
    """That others take away: the store's having it is no reason to remove it."""
    log = Log("key", LogLimits(4, 4, part=10), Spool(tmp_path / "log", 10))
    for number in range(10):
        log.write(f"{number:03}\n")
        log.kept(log.take())
    found = spooled(tmp_path / "log")
    assert [start for start, _ in found] == [0, 12, 24, 36]
    assert "".join(path.read_text() for _, path in found) == "".join(f"{number:03}\n" for number in range(10))


def test_a_disk_that_is_full_costs_the_spool_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The log goes on; that is said once."""
    (tmp_path / "log").write_text("in the way")
    log = Log("key", spool=Spool(tmp_path / "log"))
    assert written(log, "a\n", "b\n") == [(0, "a\nb\n")]
    assert len(caplog.records) == 1


def test_a_log_continues_where_it_was() -> None:
    """After the last piece that the store has."""
    assert after([], "", 3) == (3, 0, 0)
    assert after([LogExtent(0, 5, 0, 0), LogExtent(90, 6, 4, 7)], "a\nb\nc\n", 10) == (15, 96, 10)
