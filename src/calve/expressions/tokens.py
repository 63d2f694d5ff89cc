"""The words of the language, read one at a time.

They are read lazily, because a bad character counts only when the parser gets there: see ``Reader`` in ``parser``.
Text is in UTF-16 units throughout.
"""

import re
from enum import Enum, auto
from typing import NamedTuple

from calve.errors import ExpressionInvalid


class Word(Enum):
    """What kind of word a token is."""

    END = auto()
    NAME = auto()
    INTEGER = auto()
    FLOAT = auto()
    STRING = auto()
    KEYWORD = auto()
    SYMBOL = auto()


class Token(NamedTuple):
    """A word of the source, and where it stands."""

    word: Word
    image: str
    line: int
    column: int


KEYWORDS = frozenset(
    {
        "abstract",
        "boolean",
        "break",
        "byte",
        "case",
        "catch",
        "char",
        "class",
        "const",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "extends",
        "false",
        "final",
        "finally",
        "float",
        "for",
        "goto",
        "if",
        "implements",
        "import",
        "instanceof",
        "int",
        "interface",
        "long",
        "native",
        "new",
        "null",
        "package",
        "private",
        "protected",
        "public",
        "return",
        "short",
        "static",
        "super",
        "switch",
        "synchronized",
        "this",
        "throw",
        "throws",
        "transient",
        "true",
        "try",
        "void",
        "volatile",
        "while",
    }
)

_LETTER = (
    r"$A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u1fff\u3040-\u318f\u3300-\u337f\u3400-\u3d2d\u4e00-\u9fff\uf900-\ufaff"
)
_DIGIT = (
    r"0-9\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\u09e6-\u09ef\u0a66-\u0a6f\u0ae6-\u0aef\u0b66-\u0b6f\u0be7-\u0bef"
    r"\u0c66-\u0c6f\u0ce6-\u0cef\u0d66-\u0d6f\u0e50-\u0e59\u0ed0-\u0ed9\u1040-\u1049"
)
_EXPONENT = r"[eE][+-]?[0-9]+"
_ESCAPE = r"\\[ntbrf\\'\"0-7]"  # more octal digits are ordinary characters to this pattern
_SKIPPED = re.compile(r"(?:[ \t\n\r\f]|//[^\n\r]*)+")
_COMMENT_END = re.compile(r"\*/")
_TOKEN = re.compile(
    rf"(?P<NAME>[{_LETTER}][{_LETTER}{_DIGIT}]*)"
    rf"|(?P<FLOAT>[0-9]+\.[0-9]*(?:{_EXPONENT})?[fFdD]?"
    rf"|\.[0-9]+(?:{_EXPONENT})?[fFdD]?"
    rf"|[0-9]+{_EXPONENT}[fFdD]?"
    r"|[0-9]+[fFdD])"
    r"|(?P<INTEGER>(?:0[xX][0-9a-fA-F]+|[1-9][0-9]*|0[0-7]*)[lL]?)"
    rf"|(?P<STRING>'(?:[^'\\\n\r]|{_ESCAPE})*+'|\"(?:[^\"\\\n\r]|{_ESCAPE})*+\")"
    r"|(?P<SYMBOL>>>>=|>>=|<<=|>>>|[=<>!]=|\|\||&&|\+\+|--|[-+*/&|^%]=|<<|>>|[-(){}\[\];,.=><!~?:+*/&|^%])"
)


class Tokenizer:
    """Cuts the source into tokens, one call at a time."""

    def __init__(self, source: str, error_at_end: ExpressionInvalid | None = None) -> None:
        self._source = source
        self._error_at_end = error_at_end
        self._at = 0
        self._line = 1
        self._line_start = 0

    def next(self) -> Token:
        """Return the next token; after the last one, ``END`` again and again.

        Raises:
            ExpressionInvalid: no token starts here.
        """
        self._skip()
        start = self._at
        if start == len(self._source):
            self._check_end(start)
            return Token(Word.END, "", *self._position())
        found = _TOKEN.match(self._source, start)
        if found is not None:
            self._check_end(found.end())
            image = found.group()
            word = Word.KEYWORD if image in KEYWORDS else Word[found.lastgroup or ""]
            token = Token(word, image, *self._position())
            self._at = found.end()
            return token
        self._check_end(len(self._source) if self._source[start] in "'\"" else start)
        raise self._bad(self._source[start])

    def _check_end(self, end: int) -> None:
        # A token that touches the end would have been read on, into what could not be read.
        if self._error_at_end is not None and end == len(self._source):
            raise self._error_at_end

    def _skip(self) -> None:
        source = self._source
        while True:
            found = _SKIPPED.match(source, self._at)
            if found is not None:
                self._move(found.end())
            if not source.startswith("/*", self._at):
                return
            # "/*/" opens a comment and does not close it; "/**/" does both.
            end = _COMMENT_END.search(source, self._at + 2)
            if end is None:
                self._move(len(source))
                self._check_end(self._at)
                raise self._bad("<EOF>")
            self._move(end.end())

    def _move(self, end: int) -> None:
        newline = self._source.rfind("\n", self._at, end)
        if newline >= 0:
            self._line += self._source.count("\n", self._at, end)
            self._line_start = newline + 1
        self._at = end

    def _position(self) -> tuple[int, int]:
        return self._line, self._at - self._line_start + 1

    def _bad(self, encountered: str) -> ExpressionInvalid:
        line, column = self._position()
        return ExpressionInvalid(
            f"Lexical error at line {line}, column {column}.  Encountered: {encountered!a}",
            kind="TokenMgrError",
            line=line,
            column=column,
        )
