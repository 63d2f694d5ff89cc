"""The tokens of the language, read one at a time.

They are read lazily, because a bad character is an error only when the parser reaches it: see ``Reader``. All text is
in UTF-16 code units.
"""

import re
from enum import Enum, auto
from typing import NamedTuple

from calve.errors import ExpressionInvalid
from calve.expressions.limits import NESTING
from calve.expressions.tree import Position


class TokenKind(Enum):
    """The kind of a token."""

    END = auto()
    NAME = auto()
    INTEGER = auto()
    FLOAT = auto()
    STRING = auto()
    KEYWORD = auto()
    SYMBOL = auto()


class Token(NamedTuple):
    """A token, and its position in the source."""

    kind: TokenKind
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
    """Reads the tokens of the source, one at a time."""

    def __init__(self, source: str, error_at_end: ExpressionInvalid | None = None) -> None:
        self._source = source
        self._error_at_end = error_at_end
        self._at = 0
        self._line = 1
        self._line_start = 0

    def next(self) -> Token:
        """Return the next token; after the last one, always ``END``.

        Raises:
            ExpressionInvalid: there is no valid token.
        """
        self._skip()
        start = self._at
        if start == len(self._source):
            self._check_end(start)
            return Token(TokenKind.END, "", *self._position())
        found = _TOKEN.match(self._source, start)
        if found is not None:
            self._check_end(found.end())
            image = found.group()
            kind = TokenKind.KEYWORD if image in KEYWORDS else TokenKind[found.lastgroup or ""]
            token = Token(kind, image, *self._position())
            self._at = found.end()
            return token
        self._check_end(len(self._source) if self._source[start] in "'\"" else start)
        raise self._bad(self._source[start])

    def _check_end(self, end: int) -> None:
        # Maestro reads beyond a token at the end of the source, and so reports the bad escape.
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


_BACKSLASHES = re.compile(r"\\+")
_SHORT = {"b": "\b", "n": "\n", "t": "\t", "f": "\f", "r": "\r", "\\": "\\", '"': '"', "'": "'"}
_HEX = frozenset("0123456789abcdefABCDEF")


def unescape_source(source: str) -> tuple[str, ExpressionInvalid | None]:
    r"""Return ``source`` with every ``\uXXXX`` replaced up to the first invalid one, and the error of that one.

    After an even number of backslashes a ``u`` is just a ``u``.
    """
    if "\\u" not in source:
        return source, None
    parts: list[str] = []
    at = 0
    while found := _BACKSLASHES.search(source, at):
        end = found.end()
        if len(found.group()) % 2 == 0 or not source.startswith("u", end):
            parts.append(source[at:end])
            at = end
            continue
        parts.append(source[at : end - 1])
        while source.startswith("u", end):
            end += 1
        digits = source[end : end + 4]
        if len(digits) < 4 or not _HEX.issuperset(digits):
            line, column = source.count("\n", 0, end) + 1, end - source.rfind("\n", 0, end)
            return "".join(parts), ExpressionInvalid(
                f"Invalid escape character at line {line} column {column}.", kind="Error", line=line, column=column
            )
        parts.append(chr(int(digits, 16)))
        at = end + 4
    parts.append(source[at:])
    return "".join(parts), None


def unquote(literal: str, line: int, column: int) -> str:
    """Return the value of a string literal; octal escapes are in the grammar, but Maestro refuses them."""
    if "\\" not in literal:
        return literal[1:-1]
    parts: list[str] = []
    characters = iter(literal[1:-1])
    for character in characters:
        if character != "\\":
            parts.append(character)
            continue
        short = _SHORT.get(next(characters))
        if short is None:
            raise ExpressionInvalid(
                f"Invalid escaped literal string: {literal}",
                kind="IllegalArgumentException",
                line=line,
                column=column,
            )
        parts.append(short)
    return "".join(parts)


class Reader:
    """The token stream of the parser; as in Maestro, it has always read one token more than the parser examines."""

    def __init__(self, source: str) -> None:
        text, error = unescape_source(source)
        self._tokenizer = Tokenizer(text, error)
        self._ahead: list[Token] = []
        self._depth = 0
        self.memory = 0
        self.literals = 0

    def peek(self, offset: int = 0) -> Token:
        """Return a token without taking it."""
        while len(self._ahead) <= offset:
            self._ahead.append(self._tokenizer.next())
        return self._ahead[offset]

    def shows(self, image: str, offset: int = 0) -> bool:
        """Return whether the token is this keyword or symbol."""
        token = self.peek(offset)
        return token.image == image and token.kind in {TokenKind.SYMBOL, TokenKind.KEYWORD}

    def shows_name(self, offset: int = 0) -> bool:
        """Return whether the token is a name."""
        return self.peek(offset).kind is TokenKind.NAME

    def take(self) -> Token:
        """Take the next token."""
        self.peek(1)
        return self._ahead.pop(0)

    def take_if(self, image: str) -> bool:
        """Take the next token if it is this keyword or symbol, and return whether it was."""
        if self.shows(image):
            self.take()
            return True
        return False

    def expect(self, image: str) -> Token:
        """Take a keyword or symbol, or raise."""
        if not self.shows(image):
            raise self.wrong(f'"{image}"')
        return self.take()

    def expect_name(self) -> Token:
        """Take a name, or raise."""
        if not self.shows_name():
            raise self.wrong("a name")
        return self.take()

    def wrong(self, expected: str) -> ExpressionInvalid:
        """Return the error of an unexpected token."""
        token = self.peek()
        self.peek(1)
        encountered = token.image if token.kind is not TokenKind.END else "<EOF>"
        return ExpressionInvalid(
            f'Encountered "{encountered}" at line {token.line}, column {token.column}. Was expecting {expected}.',
            kind="ParseException",
            line=token.line,
            column=token.column,
        )

    def position(self) -> Position:
        """Return the position of the next token."""
        token = self.peek()
        return Position(token.line, token.column)

    def enter(self) -> None:
        """Enter a level of nesting, or raise if it is too deep."""
        self._depth += 1
        if self._depth > NESTING:
            token = self.peek()
            raise ExpressionInvalid(
                f"The expression is nested deeper than {NESTING} levels at line {token.line}, column {token.column}.",
                kind="StackOverflowError",
                line=token.line,
                column=token.column,
            )

    def leave(self) -> None:
        """Leave a level of nesting."""
        self._depth -= 1
