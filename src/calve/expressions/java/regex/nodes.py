"""The parts that a regular expression is made of."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias, assert_never

from calve.expressions.java.longs import INT_MAX
from calve.expressions.java.regex.sets import CharSet


class PatternInvalid(ValueError):
    """The text is no regular expression, or has something in it that is not supported."""


class Greed(Enum):
    """How much a repetition takes."""

    GREEDY = auto()
    LAZY = auto()
    POSSESSIVE = auto()


class Place(Enum):
    """What must be true of a place."""

    START = auto()
    END = auto()
    END_BEFORE_NEWLINE = auto()
    LINE_START = auto()
    LINE_END = auto()
    WORD_EDGE = auto()
    NO_WORD_EDGE = auto()
    SEARCH_START = auto()


@dataclass(frozen=True, slots=True)
class One:
    """One character of a set; ``literal`` is the character if there is only one."""

    accepts: CharSet
    literal: str | None = None


@dataclass(frozen=True, slots=True)
class At:
    """A place, without a character."""

    place: Place


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts, one after the other."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Alternatives, tried in this order."""

    options: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A part whose text is remembered."""

    number: int
    inner: "Node"


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part several times; ``most`` is None for no end."""

    inner: "Node"
    least: int
    most: int | None
    greed: Greed


@dataclass(frozen=True, slots=True)
class Look:
    """What must, or must not, come after or before a place."""

    inner: "Node"
    behind: bool
    negative: bool


@dataclass(frozen=True, slots=True)
class Atomic:
    """A part that is not tried again once it was found."""

    inner: "Node"


@dataclass(frozen=True, slots=True)
class Back:
    """The text of a group once more."""

    number: int
    any_case: bool


Node: TypeAlias = One | At | Sequence | Choice | Group | Repeat | Look | Atomic | Back


def longest(node: Node) -> int | None:
    """Return the most characters that a node can take, or None if they are more than 32 bits can count.

    As in Java, no end counts as 2^31 - 1: so one endless part may stand in a look-behind, if it stands alone.
    """
    length = _longest(node)
    return None if length is None or length > INT_MAX else length


def _longest(node: Node) -> int | None:
    match node:
        case One():
            return 1
        case At() | Look():
            return 0
        case Sequence():
            lengths = [longest(part) for part in node.parts]
            return None if None in lengths else sum(length or 0 for length in lengths)
        case Choice():
            lengths = [longest(option) for option in node.options]
            return None if None in lengths else max(length or 0 for length in lengths)
        case Group() | Atomic():
            return longest(node.inner)
        case Repeat():
            length = longest(node.inner)
            return None if length is None else length * (INT_MAX if node.most is None else node.most)
        case Back():
            return None
        case _:
            assert_never(node)
