"""Text of several SQL statements, taken apart, with the names that values are bound to. Pure.

A semicolon ends a statement and a ``:name`` stands for a value only in code: not in quotes, comments, dollar
quotes, or the body of a trigger of SQLite. What begins with BEGIN in Spark is one script to its end. ``::`` is a
cast, ``a[1:n]`` a slice, ``:=`` an assignment.
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
    """As it was written."""
    template: str
    """For ``sqlalchemy.text``: every colon that names no value is escaped."""
    names: frozenset[str]
    """The values that it wants."""
    lists: frozenset[str]
    """Those of them that stand after IN, and are lists."""
    start: int = 0
    """Where in the whole text it begins."""
    spots: tuple[tuple[int, int], ...] = ()
    """Where in it the names stand, in order: from their colon to their end."""


def split(text: str, dialect: str) -> list[Statement]:
    """Return the statements, without those that are only blanks and comments."""
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
    """Yield the pieces of a text that are neither comments nor quoted, each with where it begins."""
    at = 0
    for kind, piece in _tokens(text, dialect):
        if kind is _Kind.CODE:
            yield at, piece
        at += len(piece)


def check_values(statements: Sequence[Statement], values: Collection[str], where: str) -> None:
    """Check that there is a statement, and a value for each name in it.

    Raises:
        StepFailed: there is not.
    """
    if not statements:
        raise fatal("There is no statement to run.")
    missing = sorted({name for statement in statements for name in statement.names} - set(values))
    if missing:
        raise fatal(f"The statements want values that {where} does not have: {', '.join(missing)}.")


def _tokens(text: str, dialect: str) -> Iterator[tuple[_Kind, str]]:
    """Yield the text in pieces, in order."""
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
    """Return where a comment ends whose start is before ``at``."""
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
    """Tell whether a semicolon ends the statement so far; in the body of a trigger or a script it does not."""
    if dialect == "spark":
        return _COMPOUND.match("".join(piece for kind, piece in parts if kind is not _Kind.COMMENT)) is None
    if dialect != "sqlite":
        return True
    return sqlite3.complete_statement("".join(piece for _, piece in parts) + ";")


def _made(parts: list[tuple[_Kind, str]], start: int) -> list[Statement]:
    """Return the statement that some pieces make; none, if there is only space in them."""
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
    """Return code that begins at some place, with its other colons escaped; note the names in it."""

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
