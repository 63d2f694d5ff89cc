"""The syntax tree of a program.

Chains of operators, suffixes and ``else if`` are flat, so that a long one is not a deep one.
"""

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import TypeAlias


class Operator(StrEnum):
    """An operator between two values."""

    OR = "||"
    AND = "&&"
    EQUAL = "=="
    NOT_EQUAL = "!="
    LESS = "<"
    GREATER = ">"
    LESS_EQUAL = "<="
    GREATER_EQUAL = ">="
    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    REMAINDER = "%"


class Sign(Enum):
    """An operator before a value."""

    PLUS = "+"
    MINUS = "-"
    NOT = "!"


class AssignmentOperator(StrEnum):
    """An operator that changes a variable."""

    SET = "="
    MULTIPLY = "*="
    DIVIDE = "/="
    REMAINDER = "%="
    ADD = "+="
    SUBTRACT = "-="


@dataclass(frozen=True, slots=True)
class Position:
    """A position in the source; line and column start at 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. ``index`` is its number: within one evaluation it is an object that assignments can change."""

    value: int | float | str | bool | None
    image: str
    index: int
    at: Position


@dataclass(frozen=True, slots=True)
class Name:
    """A variable, a parameter or a class."""

    name: str
    at: Position


@dataclass(frozen=True, slots=True)
class NewArray:
    """``new T[length]``."""

    type_name: str
    length: "Expression"
    at: Position


@dataclass(frozen=True, slots=True)
class NewFilledArray:
    """``new T[]{…}``."""

    type_name: str
    elements: tuple["Expression", ...]
    at: Position


@dataclass(frozen=True, slots=True)
class NewObject:
    """``new T(…)``."""

    type_name: str
    arguments: tuple["Expression", ...]
    at: Position


@dataclass(frozen=True, slots=True)
class Index:
    """``[…]`` after a value."""

    index: "Expression"
    at: Position


@dataclass(frozen=True, slots=True)
class Field:
    """``.name`` after a value."""

    name: str
    at: Position


@dataclass(frozen=True, slots=True)
class Call:
    """``.name(…)`` after a value."""

    name: str
    arguments: tuple["Expression", ...]
    at: Position


Suffix: TypeAlias = Index | Field | Call


Prefix: TypeAlias = "Literal | Name | NewArray | NewFilledArray | NewObject | Expression"


@dataclass(frozen=True, slots=True)
class Primary:
    """A value and its suffixes: indexes, fields and calls."""

    prefix: Prefix
    suffixes: tuple[Suffix, ...]


@dataclass(frozen=True, slots=True)
class Signed:
    """Signs before a value; the last one is applied first."""

    signs: tuple[Sign, ...]
    operand: Primary


@dataclass(frozen=True, slots=True)
class Chain:
    """Operators of one rank between values, applied from the left."""

    first: "Operand"
    rest: tuple[tuple[Operator, "Operand", Position], ...]


Operand: TypeAlias = Primary | Signed | Chain


@dataclass(frozen=True, slots=True)
class Ternary:
    """``condition ? then : otherwise``."""

    condition: Operand
    then: "Expression"
    otherwise: "Expression"


@dataclass(frozen=True, slots=True)
class Assignment:
    """``name = value`` or ``name[index] = value``, and the like."""

    name: str
    index: "Expression | None"
    operator: AssignmentOperator
    value: "Expression"
    at: Position


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression."""

    body: Operand | Ternary | Assignment
    at: Position


@dataclass(frozen=True, slots=True)
class Declarator:
    """One variable of a declaration."""

    name: str
    value: Expression | None
    at: Position


@dataclass(frozen=True, slots=True)
class Declaration:
    """``T a = …, b``."""

    type_name: str
    is_array: bool
    declarators: tuple[Declarator, ...]
    at: Position


@dataclass(frozen=True, slots=True)
class Block:
    """``{ … }``."""

    statements: tuple["Statement", ...]
    at: Position


@dataclass(frozen=True, slots=True)
class Evaluate:
    """An expression as a statement."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class If:
    """``if … else if … else …``, one branch for each condition."""

    branches: tuple[tuple[Expression, "Statement"], ...]
    otherwise: "Statement | None"
    at: Position


@dataclass(frozen=True, slots=True)
class While:
    """``while (condition) body``."""

    condition: Expression
    body: "Statement"
    at: Position


@dataclass(frozen=True, slots=True)
class For:
    """``for (start; condition; update) body``."""

    start: Declaration | Assignment | Primary | None
    condition: Expression | None
    update: Assignment | Primary | None
    body: "Statement"
    at: Position


@dataclass(frozen=True, slots=True)
class Break:
    """``break;``."""

    at: Position


@dataclass(frozen=True, slots=True)
class Continue:
    """``continue;``."""

    at: Position


@dataclass(frozen=True, slots=True)
class Return:
    """``return …;``."""

    expression: Expression
    at: Position


@dataclass(frozen=True, slots=True)
class Throw:
    """``throw …;``."""

    expression: Expression
    at: Position


Statement: TypeAlias = Declaration | Block | Evaluate | If | While | For | Break | Continue | Return | Throw


@dataclass(frozen=True, slots=True)
class Tree:
    """A whole program."""

    imports: int
    statements: tuple[Statement, ...]
    literals: int
    memory: int
    """The bytes of memory that the literals and the names of methods need."""
