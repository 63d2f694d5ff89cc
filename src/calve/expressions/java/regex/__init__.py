"""Regular expressions with Java's syntax and meaning, searched in bounded time."""

from calve.expressions.java.regex.nodes import PatternInvalid
from calve.expressions.java.regex.replacing import replace_all
from calve.expressions.java.regex.splitting import split

__all__ = ["PatternInvalid", "replace_all", "split"]
