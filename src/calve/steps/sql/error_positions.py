"""Error positions: find an engine's error position in the script, and show the line with a caret below it. Pure.

An engine reports a position in the text that it received, where names are replaced by values or placeholders.
``written_at`` converts it to a position in the script.
"""

import re
import sqlite3
import unicodedata
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from calve.steps.sql.statements import Statement, code_in

_SHOWN = 120
"""The maximum number of characters of a line that are shown."""
_WIDE = frozenset("WF")
_BOUND = re.compile(r"%%|%\((?P<name>[^)]*)\)s")
_NAMED = re.compile(
    r"no such (?:table|column|function|index|view|trigger|module|collation sequence): (?P<name>.+)"
    r"|has no column named (?P<column>.+)|ambiguous column name: (?P<ambiguous>.+)"
)
_NEAR = re.compile(r'(?:near|unrecognized token:) "(?P<token>.*)"(?:: syntax error)?', re.DOTALL)


@dataclass(frozen=True, slots=True)
class SqlText:
    """A script: SQL text with one or more statements."""

    name: str
    """Its name in messages: the file, or the field that contains it."""
    text: str

    def told(self, statement: Statement, which: str, message: str, at: int | None) -> str:
        """Return the message for a failed statement: the error in one line, then the line of the script.

        Args:
            statement: the failed statement of this script.
            which: its number, such as ``statement 2 of 3``; empty for a single statement.
            message: the engine's message.
            at: the position in the statement; None shows its first line of code, without a caret.
        """
        place = statement.start + (_first_code(statement.sql) if at is None else at)
        head = f"{self.name}, line {lines_up_to(self.text, place)}{f' ({which})' if which else ''}"
        return f"{head}: {' '.join(message.split())}\n{pointed(self.text, place, is_exact=at is not None)}"


def _first_code(sql: str) -> int:
    """Return the position of the first code that is not a comment."""
    found = (at + len(piece) - len(piece.lstrip()) for at, piece in code_in(sql, "spark") if piece.strip())
    return next(found, 0)


def written_at(statement: Statement, at: int, lengths: Sequence[int]) -> int:
    """Convert a position in the text that was sent into a position in the statement as written.

    Args:
        statement: the statement as written.
        at: the position in the text that was sent.
        lengths: the length of the text sent for each name, in the order of ``statement.spots``.
    """
    shift = 0
    for (start, end), length in zip(statement.spots, lengths, strict=True):
        if at < start + shift:
            break
        if at < start + shift + length:
            return start
        shift += length - (end - start)
    return min(max(at - shift, 0), len(statement.sql))


def lines_up_to(text: str, at: int) -> int:
    """Return the number of the line that contains a position, counted from 1."""
    return text.count("\n", 0, at) + 1


def offset_of(text: str, line: int, column: int) -> int | None:
    """Return the position of a line, counted from 1, and a column, counted from 0; None if it does not exist."""
    lines = text.split("\n")
    if not 1 <= line <= len(lines) or not 0 <= column <= len(lines[line - 1]):
        return None
    return sum(len(each) + 1 for each in lines[: line - 1]) + column


def pointed(text: str, at: int, *, is_exact: bool = True) -> str:
    """Return the line that contains a position, with its number, and with a caret if the position is exact."""
    number = str(lines_up_to(text, at))
    start = text.rfind("\n", 0, at) + 1
    line = text[start:].partition("\n")[0].rstrip("\r").replace("\t", " ")
    column = min(at - start, len(line))
    first = max(0, column - _SHOWN // 2) if len(line) > _SHOWN else 0
    shown = f"{'…' if first else ''}{line[first : first + _SHOWN]}{'…' if len(line) > first + _SHOWN else ''}"
    if not is_exact:
        return f"  {number} | {shown.rstrip()}"
    before = shown[: column - first + bool(first)]
    width = sum(2 if unicodedata.east_asian_width(character) in _WIDE else 1 for character in before)
    return f"  {number} | {shown.rstrip()}\n  {' ' * len(number)} | {' ' * width}^"


def in_postgresql(statement: Statement, compiled: str, position: int) -> int | None:
    """Convert a position that PostgreSQL reports into a position in the statement; None if that fails.

    PostgreSQL counts characters from 1 in the text that the driver sends: SQLAlchemy's compiled text, with ``$1`` in
    place of ``%(name)s``.
    """
    numbers: dict[str, int] = {}

    def numbered(match: re.Match[str]) -> str:
        return "%" if match["name"] is None else f"${numbers.setdefault(match['name'], len(numbers) + 1)}"

    sent = _BOUND.sub(numbered, compiled)
    ends = [0, *(end for _, end in statement.spots)]
    starts = [*(start for start, _ in statement.spots), len(statement.sql)]
    pieces = [re.escape(statement.sql[end:start]) for end, start in zip(ends, starts, strict=True)]
    aligned = re.fullmatch(r"(.*?)".join(pieces), sent, re.DOTALL)
    if aligned is None or not 1 <= position <= len(sent) + 1:
        return None
    return written_at(statement, position - 1, [len(each) for each in aligned.groups()])


def in_sqlite(sql: str, message: str) -> int | None:
    """Return the position of an SQLite error; SQLite names only the token, or the unknown name."""
    if message == "incomplete input":
        return len(sql)
    if near := _NEAR.fullmatch(message):
        return _token_at(sql, near["token"], message)
    if named := _NAMED.search(message):
        name = next(each for each in named.groups() if each).rpartition(".")[2]
        return next((at for at in _places(sql, name)), None)
    return None


def _token_at(sql: str, token: str, message: str) -> int | None:
    """Return the occurrence of a token that causes the error: the first up to which the text gives the same error."""
    places = _places(sql, token) or [match.start() for match in re.finditer(re.escape(token), sql)]
    if len(places) > 1:
        with closing(sqlite3.connect(":memory:")) as parser:
            places = [at for at in places if _complaint(parser, sql[: at + len(token)]) == message] or places
    return places[0] if places else None


def _complaint(parser: sqlite3.Connection, sql: str) -> str:
    try:
        parser.execute(f"EXPLAIN {sql}")
    except sqlite3.Error as error:
        return str(error)
    return ""


def _places(sql: str, name: str) -> list[int]:
    """Return the positions of a name in the code of a statement; if there are none, those in quotes too."""
    pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
    found = [at + match.start() for at, piece in code_in(sql, "sqlite") for match in pattern.finditer(piece)]
    return found or [match.start() for match in pattern.finditer(sql)]
