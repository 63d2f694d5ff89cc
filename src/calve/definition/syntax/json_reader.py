"""Read JSON into events: a YAML parser accepts neither its surrogate pairs nor its long keys. Pure."""

import json
import re
from bisect import bisect_right
from dataclasses import dataclass

from calve.definition.document import Mark
from calve.definition.syntax.composer import Composer, Halted

_SPACES = frozenset(" \t\n")
_TEXT = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"')
_LITERAL = re.compile(
    r"(?:true|false|null|NaN|-?Infinity|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)(?![\w.+-])"
)
# Python writes these although JSON has no such numbers; as scalars they are refused.
_NOT_FINITE = {"NaN": ".nan", "Infinity": ".inf", "-Infinity": "-.inf"}


def compose_json(text: str, composer: Composer) -> None:
    """Feed the events of a JSON text to a composer."""
    lines = [0, *(found.end() for found in re.finditer("\n", text))]
    cursor = _Cursor(text, lines, composer)
    cursor.value("a value")
    if cursor.next():
        raise cursor.fault("the end of the text")


@dataclass(slots=True)
class _Cursor:
    """A position in the text that moves forward; the composer limits the nesting."""

    text: str
    lines: list[int]
    """Where each line starts."""
    composer: Composer
    offset: int = 0

    def next(self) -> str:
        """Move to the next character that is not a space, and return it; empty at the end."""
        while (character := self.text[self.offset : self.offset + 1]) in _SPACES:
            self.offset += 1
        return character

    def take(self, character: str) -> bool:
        """Skip the next character if it is this one; tell whether it was."""
        is_there = self.next() == character
        self.offset += is_there
        return is_there

    def value(self, expected: str) -> None:
        """Read a value."""
        match self.next():
            case '"':
                self.scalar()
            case "[":
                self.list()
            case "{":
                self.mapping()
            case _:
                literal = _LITERAL.match(self.text, self.offset)
                if literal is None:
                    raise self.fault(expected)
                self.composer.scalar(_NOT_FINITE.get(literal[0], literal[0]), self.mark(), is_plain=True)
                self.offset = literal.end()

    def scalar(self) -> None:
        """Read a text: a key or a value."""
        found, mark = _TEXT.match(self.text, self.offset), self.mark()
        if found is None:
            raise Halted("syntax", "this text is not closed on its line", mark, hint="write \\n for a break")
        self.composer.scalar(_unescaped(found[0], mark), mark, is_plain=False)
        self.offset = found.end()

    def list(self) -> None:
        """Read a list."""
        self.composer.begin([], self.mark())
        self.offset += 1
        if not self.take("]"):
            self.value("a value or ]")
            while self.take(","):
                self.value("a value")
            if not self.take("]"):
                raise self.fault(", or ]")
        self.composer.end()

    def mapping(self) -> None:
        """Read a mapping."""
        self.composer.begin({}, self.mark())
        self.offset += 1
        if not self.take("}"):
            self.entry("a key in double quotes or }")
            while self.take(","):
                self.entry("a key in double quotes")
            if not self.take("}"):
                raise self.fault(", or }")
        self.composer.end()

    def entry(self, expected: str) -> None:
        """Read a key and its value."""
        if self.next() != '"':
            raise self.fault(expected)
        self.scalar()
        if not self.take(":"):
            raise self.fault("a colon")
        self.value("a value")

    def mark(self) -> Mark:
        """Return the current line and column, counted from 1."""
        line = bisect_right(self.lines, self.offset)
        return Mark(line, self.offset - self.lines[line - 1] + 1)

    def fault(self, expected: str) -> Halted:
        """Return the syntax error at the current position."""
        found = self.next()
        if not found:
            return Halted("syntax", f"the text ends where {expected} is expected", self.mark())
        is_comma_before = found in "]}" and self.text[: self.offset].rstrip().endswith(",")
        hint = "remove the comma before it" if is_comma_before else ""
        return Halted("syntax", f"expected {expected}, not {found}", self.mark(), hint=hint)


def _unescaped(written: str, mark: Mark) -> str:
    if "\\" not in written:
        return written[1:-1]
    try:
        return str(json.loads(written))
    except json.JSONDecodeError as error:
        place = Mark(mark.line, mark.column + error.pos)
        raise Halted("syntax", f"{error.msg.lower()} in this text", place, hint="write \\\\ for a backslash") from None
