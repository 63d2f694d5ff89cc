"""Logs as they are read: by place, from the end, and by what they hold."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from tests.engines import Playground

from calve.engine.logs import LogMatch, LogPage, LogReader, reader as log_reader
from calve.engine.model import LogChunk, LogExtent, RunEnd, RunStatus
from calve.engine.ports import LogFiles
from calve.errors import LakeError

LINES = "".join(f"line {number:02}\n" for number in range(100))
"""800 bytes."""


@dataclass
class Kept:
    """Keeps pieces of one log, and files of it."""

    whole: bytes
    pieces: list[tuple[int, int]]
    """Where each begins and ends."""
    files: dict[str, tuple[int, int]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    dropped: set[int] = field(default_factory=set)
    asked: list[str | int] = field(default_factory=list)
    questions: int = 0

    def log_extents(self, attempt_uuid: str) -> list[LogExtent]:
        """Return the pieces."""
        assert attempt_uuid == "key"
        return [
            LogExtent(start, end - start, number, self.whole[:start].count(b"\n"))
            for number, (start, end) in enumerate(self.pieces)
        ]

    def log_texts(self, attempt_uuid: str, numbers: Sequence[int]) -> dict[int, str]:
        """Return pieces, unless they were dropped meanwhile."""
        assert attempt_uuid == "key"
        self.asked += numbers
        self.questions += 1
        kept = {number: self.pieces[number] for number in numbers if number not in self.dropped}
        return {number: self.whole[start:end].decode() for number, (start, end) in kept.items()}

    def log_files(self, attempt_uuid: str) -> list[LogExtent]:
        """Return the files."""
        assert attempt_uuid == "key"
        return [LogExtent(start, end - start, address=name) for name, (start, end) in self.files.items()]

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return some of a file."""
        self.asked.append(path)
        if path in self.broken:
            raise LakeError("It is away.")
        start, end = self.files[path]
        return self.whole[start:end][offset : offset + length]

    def reader(self, files: LogFiles | None = None) -> LogReader:
        """Return a reader of the log."""
        return LogReader(self, "key", files)


@pytest.fixture
def torn() -> Kept:
    """Give a log of 100 lines of which the middle was dropped."""
    return Kept(LINES.encode(), [(0, 160), (160, 240), (640, 720), (720, 800)])


def test_a_page_can_begin_anywhere(torn: Kept) -> None:
    """Also counted from the end; it says where to go on, and how long the log is."""
    reader = torn.reader()
    assert reader.page(0, 16) == LogPage(0, "line 00\nline 01\n", 16, 800)
    assert reader.page(152, 24).text == "line 19\nline 20\nline 21\n"
    assert reader.page(-16) == LogPage(784, "line 98\nline 99\n", 800, 800)
    assert reader.page(-10_000, 8).text == "line 00\n"
    assert reader.page(-16).is_last
    assert not reader.page(0).is_last
    assert reader.page(800) == LogPage(800, "", 800, 800)
    assert reader.page(900) == LogPage(900, "", 900, 800)


def test_a_page_ends_where_nothing_is_kept_and_the_next_reports_it(torn: Kept) -> None:
    """Whether it begins in the hole or before it."""
    reader = torn.reader()
    assert reader.page(232, 100) == LogPage(232, "line 29\n", 240, 800)
    page = reader.page(240, 8)
    assert page == LogPage(640, "line 80\n", 648, 800, left_out=400)
    assert page.shown() == "… 400 bytes of the log are left out here …\nline 80\n"
    assert reader.page(600, 8).left_out == 40
    assert reader.page(0, 8).shown() == "line 00\n"


def test_the_whole_log_comes_page_by_page(torn: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one line in place of what is left out."""
    monkeypatch.setattr(log_reader.LogReader.page, "__defaults__", (100,))
    shown = "".join(page.shown() for page in torn.reader().pages())
    assert shown == LINES[:240] + "… 400 bytes of the log are left out here …\n" + LINES[640:]
    assert "".join(page.shown() for page in torn.reader().pages(760)) == LINES[760:]
    assert [page.text for page in Kept(b"", []).reader().pages()] == [""]


def test_a_page_reads_no_more_than_it_needs(torn: Kept) -> None:
    """A piece at a time, and each once while one goes on in it."""
    reader = torn.reader()
    reader.page(170, 8)
    reader.page(178, 8)
    assert torn.asked == [1]


def test_pieces_are_read_many_at_once() -> None:
    """One question for a page, the last lines or a search, each piece once, however small they are."""
    pieces = [(number * 8, number * 8 + 8) for number in range(100)]
    kept = Kept(LINES.encode(), pieces)
    assert kept.reader().page(0).text == LINES
    assert (kept.questions, len(kept.asked)) == (1, 100)
    assert [match.line for match in kept.reader().find("line 77").matches] == [78]
    assert (kept.questions, len(kept.asked)) == (2, 200)
    assert kept.reader().tail(20).text == LINES[640:]
    assert (kept.questions, len(kept.asked)) == (3, 300)


def test_a_page_has_whole_letters() -> None:
    """One that is cut comes with the next page, and one that is asked for in its middle is passed over."""
    kept = Kept("aé\U0001f40dz".encode(), [(0, 8)])
    reader = kept.reader()
    assert reader.page(0, 2) == LogPage(0, "a", 1, 8)
    assert reader.page(1, 3) == LogPage(1, "é", 3, 8)
    assert reader.page(2, 100) == LogPage(3, "\U0001f40dz", 8, 8)
    assert reader.page(0, 1).next_offset == 1
    assert reader.page(1, 1).next_offset == 2  # less than a letter: it goes on, all the same


def test_no_page_is_too_long(monkeypatch: pytest.MonkeyPatch, torn: Kept) -> None:
    """Whatever is asked for."""
    monkeypatch.setattr(log_reader, "MOST", 24)
    assert torn.reader().page(0, 10_000).text == LINES[:24]


def test_a_piece_that_is_dropped_while_one_reads_is_blank(torn: Kept) -> None:
    """Places stay what they are."""
    torn.dropped.add(2)
    assert torn.reader().page(640, 88).text == " " * 80 + "line 90\n"


@pytest.mark.parametrize(("lines", "start"), [(1, 99), (2, 98), (20, 80), (50, 80)])
def test_the_last_lines_are_found(torn: Kept, monkeypatch: pytest.MonkeyPatch, lines: int, start: int) -> None:
    """As far as they are kept in one go, and reading backwards."""
    monkeypatch.setattr(log_reader, "PAGE", 30)
    assert torn.reader().tail(lines) == LogPage(start * 8, LINES[start * 8 :], 800, 800)


def test_the_end_of_a_log_without_lines_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that never ends is cut; one that has not ended yet counts."""
    monkeypatch.setattr(log_reader, "MOST", 10)
    monkeypatch.setattr(log_reader, "PAGE", 5)
    assert Kept(b"x" * 100, [(0, 50), (50, 100)]).reader().tail(3).text == "x" * 10
    assert Kept(b"a\nb\nc", [(0, 5)]).reader().tail(2).text == "b\nc"
    assert Kept(b"x" * 12, [(0, 4), (4, 8), (8, 12)]).reader().tail(1).text == "x" * 12
    assert Kept(b"a\nb", [(0, 3)]).reader().tail(0).text == ""
    assert Kept(b"", []).reader().tail(5) == LogPage(0, "", 0, 0)


def test_lines_are_found_with_their_places_and_numbers(torn: Kept) -> None:
    """Also behind what is left out; that much was not looked through."""
    found = torn.reader().find("9")
    assert [(match.line, match.text) for match in found.matches] == [
        (10, "line 09"),
        (20, "line 19"),
        (30, "line 29"),
        (90, "line 89"),
        *((number + 1, f"line {number}") for number in range(90, 100)),
    ]
    assert (found.next_offset, found.size, found.left_out) == (None, 800, 400)
    assert all(LINES[match.offset :].startswith(match.text) for match in found.matches)


def test_a_search_continues_where_it_stopped(torn: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """After so many lines, or after so many bytes."""
    first = torn.reader().find("9", limit=2)
    assert first.next_offset is not None
    second = torn.reader().find("9", offset=first.next_offset, limit=1)
    assert [match.text for match in (*first.matches, *second.matches)] == ["line 09", "line 19", "line 29"]
    monkeypatch.setattr(log_reader, "SCAN", 1)
    monkeypatch.setattr(log_reader, "AHEAD", 30)
    found, offset = [], 0
    while True:
        part = torn.reader().find("line 8", offset=offset)
        found += [match.text for match in part.matches]
        if part.next_offset is None:
            break
        offset = part.next_offset
    assert found == [f"line {number}" for number in range(80, 90)]


def test_letters_may_be_small_or_capital() -> None:
    """If that is wished; a line may be very long, and the last one without an end."""
    kept = Kept("Straße\nERROR\n\nan error".encode(), [(0, 23)])
    assert [match.line for match in kept.reader().find("error").matches] == [4]
    assert [match.line for match in kept.reader().find("eRRor", ignore_case=True).matches] == [2, 4]
    assert [match.offset for match in kept.reader().find("STRASSE", ignore_case=True).matches] == [0]
    assert kept.reader().find("none").matches == ()
    long = Kept(b"x" * 5_000 + b"\n", [(0, 5_001)])
    assert [len(match.text) for match in long.reader().find("xx").matches] == [log_reader.SHOWN]


def test_a_search_may_begin_within_a_line(torn: Kept) -> None:
    """Of whose number nobody knows."""
    assert torn.reader().find("5", offset=46, limit=1).matches == (LogMatch(46, None, "5"),)
    assert torn.reader().find("9", offset=300, limit=1).matches[0].line == 90


def test_a_line_that_never_ends_is_searched_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that memory is bounded."""
    monkeypatch.setattr(log_reader, "MOST", 20)
    monkeypatch.setattr(log_reader, "AHEAD", 15)
    found = Kept(b"x" * 100, [(0, 100)]).reader().find("x")
    assert [len(match.text) for match in found.matches] == [30, 30, 30, 10]


def test_a_line_before_a_hole_is_found_without_its_end() -> None:
    """And the first one after it."""
    kept = Kept(b"good morning\ngood night\n", [(0, 7), (13, 24)])
    found = kept.reader().find("good").matches
    assert [(match.line, match.text) for match in found] == [(1, "good mo"), (2, "good night")]


def test_files_have_what_the_store_has_dropped(torn: Kept) -> None:
    """They are asked for nothing else."""
    torn.files = {"a": (0, 300), "b": (280, 500), "c": (500, 700), "late": (790, 800), "empty": (400, 400)}
    reader = torn.reader(torn)
    assert "".join(page.shown() for page in reader.pages()) == LINES
    assert [name for name in torn.asked if isinstance(name, str)] == ["a", "b", "c"]
    assert [match.line for match in torn.reader(torn).find("line 40").matches] == [41]
    assert torn.reader(torn).tail(60).text == LINES[320:]


def test_a_log_without_holes_needs_no_files(torn: Kept) -> None:
    """Nobody asks where they are."""
    torn.pieces = [(0, 800)]
    torn.files = {"a": (0, 800)}
    assert torn.reader(torn).page(0, 8).text == "line 00\n"
    assert torn.asked == [0]


def test_a_file_that_is_unavailable_is_said_to_be(torn: Kept) -> None:
    """In the place of what it holds; the rest can be read."""
    torn.files = {"a": (0, 800)}
    torn.broken = {"a"}
    shown = "".join(page.shown() for page in torn.reader(torn).pages())
    assert "\n… a cannot be read: It is away. …\n" in shown
    assert len(shown.encode()) == 800


def test_what_no_file_has_either_is_omitted(torn: Kept) -> None:
    """If a machine was lost with the last part, say."""
    torn.files = {"a": (200, 400), "b": (560, 600)}
    pages = list(torn.reader(torn).pages())
    assert [(page.offset, page.left_out) for page in pages] == [(0, 0), (560, 160), (640, 40)]


def test_how_much_is_kept_is_reported(torn: Kept) -> None:
    """Of all that was written."""
    assert (torn.reader().kept, torn.reader().size) == (400, 800)


def test_the_engine_reads_logs(playground: Playground) -> None:
    """Of its store."""
    playground.state.append_log(LogChunk("key", 0, "text\n"))
    assert playground.engine.log_reader("key").tail(1).text == "text\n"
    assert RunEnd(RunStatus.SUCCEEDED, 1).is_success
    assert not RunEnd(RunStatus.FAILED, 1).is_success
