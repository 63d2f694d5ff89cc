"""Splits SQL text into statements, and finds the names to which values are bound. Pure.

A semicolon ends a statement and ``:name`` stands for a value only in code: not in quotes, comments or dollar quotes.
A semicolon in the body of an SQLite trigger does not end it either, and in Spark, text that starts with BEGIN is one
script up to its end. ``::`` is a cast, ``a[1:n]`` a slice, ``:=`` an assignment.
"""

import re
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from calve.steps.failures import fatal

_TOKEN = re.compile(
    r"""
    (?P<escapes>(?<!\w)[eE]'(?:\\.|''|[^'\\])*')
    | (?P<quoted>'(?:''|[^'])*' | "(?:""|[^"])*" | `(?:``|[^`])*`)
    | (?P<dollars>(?<![\w$])\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$)
    | (?P<line>--[^\n]*) | (?P<block>/\*) | (?P<end>;)
    """,
    re.VERBOSE | re.DOTALL,
)
_BACKSLASHES = re.compile(r"'(?:\\.|''|[^'\\])*'|\"(?:\\.|\"\"|[^\"\\])*\"", re.DOTALL)
_COMMENT_MARKS = re.compile(r"/\*|\*/")
_COLON = re.compile(r"::|:=|(?<!\w):(?P<name>[^\W\d]\w*)|:")
_LIST = re.compile(r"\bin\s*\Z", re.IGNORECASE)
_NESTS_COMMENTS = frozenset({"postgresql", "mssql", "spark"})
_KNOWS_BACKSLASHES = frozenset({"mysql", "mariadb", "spark"})
_RAW = re.compile(r"(?<!\w)[rR]\Z")
_COMPOUND = re.compile(r"\s*begin\b", re.IGNORECASE)


class _Kind(StrEnum):
    CODE = "code"
    TEXT = "text"
    COMMENT = "comment"
    END = "end"


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement."""

    sql: str
    """The statement as written."""
    template: str
    """The same for ``sqlalchemy.text``: with every colon escaped that does not start the name of a value."""
    names: frozenset[str]
    """The names of the values that it needs."""
    lists: frozenset[str]
    """The names after IN, whose values are lists."""
    start: int = 0
    """The position in the whole text where it starts."""
    spots: tuple[tuple[int, int], ...] = ()
    """The start (at the colon) and end of each name in the statement, in order."""


def split(text: str, dialect: str) -> list[Statement]:
    """Split a text into statements; leave out those that contain only whitespace and comments."""
    statements: list[Statement] = []
    parts: list[tuple[_Kind, str]] = []
    start = at = 0
    for kind, piece in _tokens(text, dialect):
        at += len(piece)
        if kind is _Kind.END and _is_complete(parts, dialect):
            statements += _made(parts, start)
            parts, start = [], at
        else:
            parts.append((_Kind.CODE if kind is _Kind.END else kind, piece))
    return statements + _made(parts, start)


def code_in(text: str, dialect: str) -> Iterator[tuple[int, str]]:
    """Yield the parts of a text that are neither comments nor quoted, each after its position."""
    at = 0
    for kind, piece in _tokens(text, dialect):
        if kind is _Kind.CODE:
            yield at, piece
        at += len(piece)


def check_values(statements: Sequence[Statement], values: Collection[str], where: str) -> None:
    """Check that there is at least one statement, and a value for each name.

    Raises:
        StepFailed: there is no statement, or a value is missing.
    """
    if not statements:
        raise fatal("There is no statement to run.")
    missing = sorted({name for statement in statements for name in statement.names} - set(values))
    if missing:
        raise fatal(f"The statements use values that {where} does not contain: {', '.join(missing)}.")


def _tokens(text: str, dialect: str) -> Iterator[tuple[_Kind, str]]:
    """Split the text into code, quoted text, comments and semicolons."""
    at = 0
    while match := _TOKEN.search(text, at):
        start, end = match.span()
        is_raw = dialect == "spark" and _RAW.search(text, max(at, start - 2), start) is not None
        if (
            match["quoted"]
            and dialect in _KNOWS_BACKSLASHES
            and not is_raw
            and (longer := _BACKSLASHES.match(text, start))
        ):
            end = longer.end()
        elif match["block"]:
            end = _end_of_comment(text, end, nests=dialect in _NESTS_COMMENTS)
        yield _Kind.CODE, text[at:start]
        is_comment = match["line"] or match["block"]
        yield _Kind.END if match["end"] else _Kind.COMMENT if is_comment else _Kind.TEXT, text[start:end]
        at = end
    yield _Kind.CODE, text[at:]


def _end_of_comment(text: str, at: int, *, nests: bool) -> int:
    """Return the end of the comment whose start mark is right before ``at``."""
    depth = 1
    for match in _COMMENT_MARKS.finditer(text, at):
        if match[0] == "*/":
            depth -= 1
        elif nests:
            depth += 1
        if depth == 0:
            return match.end()
    return len(text)


def _is_complete(parts: list[tuple[_Kind, str]], dialect: str) -> bool:
    """Tell whether a semicolon after ``parts`` ends the statement, and not a line in a trigger's body or a script."""
    if dialect == "spark":
        return _COMPOUND.match("".join(piece for kind, piece in parts if kind is not _Kind.COMMENT)) is None
    if dialect != "sqlite":
        return True
    return sqlite3.complete_statement("".join(piece for _, piece in parts) + ";")


def _made(parts: list[tuple[_Kind, str]], start: int) -> list[Statement]:
    """Return the statement that the parts form, in a list; the list is empty without any code."""
    if not any(piece.strip() for kind, piece in parts if kind is not _Kind.COMMENT):
        return []
    names: set[str] = set()
    lists: set[str] = set()
    spots: list[tuple[int, int]] = []
    text = "".join(piece for _, piece in parts)
    indent = len(text) - len(text.lstrip())
    template, at = "", -indent
    for kind, piece in parts:
        template += _bound(piece, at, names, lists, spots) if kind is _Kind.CODE else piece.replace(":", r"\:")
        at += len(piece)
    return [
        Statement(text.strip(), template.strip(), frozenset(names), frozenset(lists), start + indent, tuple(spots)),
    ]


def _bound(code: str, at: int, names: set[str], lists: set[str], spots: list[tuple[int, int]]) -> str:
    """Return code with all colons escaped that do not start a name; add its names to the collections."""

    def replaced(match: re.Match[str]) -> str:
        name = match["name"]
        if name is None:
            return match[0].replace(":", r"\:")
        names.add(name)
        spots.append((at + match.start(), at + match.end()))
        if _LIST.search(code[: match.start()]):
            lists.add(name)
        return match[0]

    return _COLON.sub(replaced, code)
