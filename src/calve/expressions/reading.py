"""Tokens as the grammar takes them.

One more is always read than is looked at, as in the original: so a bad character wins over a wrong word before it.
"""

from calve.errors import ExpressionInvalid
from calve.expressions.escapes import unescape_source
from calve.expressions.limits import NESTING
from calve.expressions.tokens import Token, Tokenizer, Word
from calve.expressions.tree import Position


class Reader:
    """Tokens as the grammar consumes them."""

    def __init__(self, source: str) -> None:
        text, error = unescape_source(source)
        self._tokenizer = Tokenizer(text, error)
        self._ahead: list[Token] = []
        self._depth = 0
        self.memory = 0
        self.literals = 0

    def peek(self, offset: int = 0) -> Token:
        """Return a token that is still to come."""
        while len(self._ahead) <= offset:
            self._ahead.append(self._tokenizer.next())
        return self._ahead[offset]

    def shows(self, image: str, offset: int = 0) -> bool:
        """Tell whether a keyword or symbol comes."""
        token = self.peek(offset)
        return token.image == image and token.word in {Word.SYMBOL, Word.KEYWORD}

    def shows_name(self, offset: int = 0) -> bool:
        """Tell whether a name comes."""
        return self.peek(offset).word is Word.NAME

    def take(self) -> Token:
        """Return the next token and go on."""
        self.peek(1)
        return self._ahead.pop(0)

    def take_if(self, image: str) -> bool:
        """Go on if a keyword or symbol comes, and tell whether it did."""
        if self.shows(image):
            self.take()
            return True
        return False

    def expect(self, image: str) -> Token:
        """Return a keyword or symbol, or refuse what comes instead."""
        if not self.shows(image):
            raise self.wrong(f'"{image}"')
        return self.take()

    def expect_name(self) -> Token:
        """Return a name, or refuse what comes instead."""
        if not self.shows_name():
            raise self.wrong("a name")
        return self.take()

    def wrong(self, expected: str) -> ExpressionInvalid:
        """Return the error of what comes."""
        token = self.peek()
        self.peek(1)
        encountered = token.image if token.word is not Word.END else "<EOF>"
        return ExpressionInvalid(
            f'Encountered "{encountered}" at line {token.line}, column {token.column}. Was expecting {expected}.',
            kind="ParseException",
            line=token.line,
            column=token.column,
        )

    def position(self) -> Position:
        """Return where the next token stands."""
        token = self.peek()
        return Position(token.line, token.column)

    def enter(self) -> None:
        """Go one level deeper, if that is not too deep."""
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
        """Come back from a level."""
        self._depth -= 1
