"""What a syntax error of YAML means to the person who wrote the text. Pure."""

import re
from typing import Any

from calve.definition.document import Mark
from calve.definition.reading.composing import MAX_KEY, Halted

_MESSAGES: tuple[tuple[str, str, str], ...] = (
    # a part of PyYAML's or libyaml's words, ours, a hint
    (
        "tab character",
        "a tab stands where the line is indented",
        "indent with spaces",
    ),
    (
        "mapping values are not allowed",
        "a colon and a space are not expected here",
        "quote the text if they belong to it; otherwise look at the indentation of this line and the one above",
    ),
    (
        "could not find expected ':'",
        "this line is neither a key with a colon nor part of what is above",
        "write key: value",
    ),
    (
        "sequence entries are not allowed",
        "a list cannot begin with - on this line",
        "begin it on a line of its own, or write [a, b]",
    ),
    (
        "',' or ']'",
        "this list is not continued or closed: expected , or ]",
        "",
    ),
    (
        "',' or '}'",
        "this mapping is not continued or closed: expected , or }",
        "quote the text if a , or a brace belongs to it",
    ),
    (
        "unexpected end of stream",
        "this text in quotes is not closed",
        "a quote inside single quotes is written twice",
    ),
    (
        "unknown escape character",
        "a backslash in double quotes makes no known character here",
        "use single quotes if the backslash is meant",
    ),
    (
        "invalid Unicode character escape",
        "this escape is no character of a text",
        "",
    ),
    (
        "node content",
        "a value is expected here",
        "quote the text if these characters belong to it",
    ),
    (
        "undefined tag handle",
        "tags are not allowed",
        "quote the text if the ! belongs to it",
    ),
    (
        "document start>",
        "the document ends before this",
        "",
    ),
    (
        "'-' indicator",
        "this does not continue the list above",
        "look at the indentation",
    ),
    (
        "expected key",
        "this does not continue the mapping above",
        "look at the indentation, and at the quotes on this line",
    ),
    (
        "<block end>",
        "this does not continue what is above",
        "look at the indentation, and at the quotes on this line",
    ),
)
_BEGUN = re.compile(r"flow|quoted|an alias|an anchor")
_TAB = re.compile(r" *\t")
_CONDITION = re.compile(r"[\s-]*IF\s", re.IGNORECASE)
_TIGHT_COLON = re.compile(r"[\s-]*(?P<key>[A-Za-z_][\w.-]*):(?P<value>[^\s:/].*)")
_COLON_FAULTS = ("mapping values", "expected ':'")


def explain(text: str, error: Any) -> Halted:
    """Return what stops the reading, in words for people, for an error of PyYAML that has a mark."""
    lines = text.split("\n")
    reached = _mark(error.problem_mark, lines)
    mark = _mark(error.context_mark, lines) if _is_clearer_where_it_began(text, error) else reached
    line, above = lines[mark.line - 1], lines[mark.line - 2] if mark.line > 1 else ""
    message, hint = _said(error.problem, line[mark.column - 1 : mark.column])
    hint = _hinted(error.problem, line, above, mark.column) or hint
    return Halted("syntax", message, mark, hint=hint, reached=reached)


def _mark(found: Any, lines: list[str]) -> Mark:
    if found.line == len(lines):
        # libyaml counts a line more when the text ends without a break.
        return Mark(len(lines), len(lines[-1]) + 1)
    return Mark(found.line + 1, found.column + 1)


def _is_clearer_where_it_began(text: str, error: Any) -> bool:
    if not (error.context_mark and _BEGUN.search(error.context)):
        return False
    is_at_end = error.problem_mark.index >= len(text.rstrip())
    return is_at_end or "alphabetic or numeric" in error.problem


def _said(words: str, character: str) -> tuple[str, str]:
    if "cannot start any token" in words and character == "\t":
        words = "tab character"
    elif "cannot start any token" in words or "alphabetic or numeric" in words:
        return f"a value cannot begin with {character} unless it is quoted", f"write '{character}…'"
    for part, message, hint in _MESSAGES:
        if part in words:
            return message, hint
    return words, ""


def _hinted(words: str, line: str, above: str, column: int) -> str:
    if _TAB.match(line):
        return "indent with spaces"
    if not any(part in words for part in _COLON_FAULTS):
        return ""
    if _CONDITION.match(line):
        return "quote the whole condition: 'IF …': next"
    if column > MAX_KEY:
        return f"a key has at most {MAX_KEY} characters"
    for suspect in (line, above):
        if tight := _TIGHT_COLON.fullmatch(suspect):
            return f"a space may be missing after the colon of {tight['key']}"
    return ""
