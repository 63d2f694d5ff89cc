"""The declaration of a step type: its fields, params, keys and outputs."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from calve.definition.document import Node
from calve.definition.model import ParamType
from calve.definition.problems import Problems

TEXT: Final = (ParamType.STRING,)
WHOLE: Final = (ParamType.LONG,)
NUMBER: Final = (ParamType.DOUBLE,)
TRUTH: Final = (ParamType.BOOLEAN,)
TEXTS: Final = (ParamType.STRING_ARRAY,)
SCALARS: Final = (ParamType.STRING, ParamType.LONG, ParamType.DOUBLE, ParamType.BOOLEAN)
LISTS: Final = (ParamType.STRING_ARRAY, ParamType.LONG_ARRAY, ParamType.DOUBLE_ARRAY, ParamType.BOOLEAN_ARRAY)
MAPS: Final = (ParamType.STRING_MAP, ParamType.MAP)
QUANTITY: Final = (ParamType.STRING, ParamType.LONG, ParamType.DOUBLE)
"""``2``, ``0.5`` or ``"512Mi"``."""
DURATION: Final = (ParamType.STRING, ParamType.LONG)
"""Seconds, or a text such as ``2 hours``."""


class Content(Enum):
    """What the texts of a field hold: it decides whether a ``${`` in them must be a reference."""

    OTHER = "other"
    """Names, or a program in a language with its own ``${``, such as shell."""
    VALUES = "values"
    """Data: a ``${`` must be a reference, or be written as ``$${``."""
    SQL = "sql"
    """Statements: as VALUES, and a text that is the whole value of a param or an expression must be resolved too."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a step: an entry of its config map, a param, or a key of the step itself."""

    name: str
    types: tuple[ParamType, ...]
    doc: str
    required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()
    """The values that it, or each item of a list, may have."""
    minimum: int | None = None
    maximum: int | None = None
    fields: "tuple[Field, ...]" = ()
    """The entries of a map; a map without any accepts every name."""
    values: tuple[ParamType, ...] = ()
    """The types that the values of a map may have, if they are limited."""
    content: Content = Content.OTHER
    keyword: str = ""
    """Its name in YAML and Python, if that differs."""
    is_step: bool = False
    """Whether it names a step; Python also accepts the step itself."""
    from_id: bool = False
    """Whether YAML and Python may leave it out; the id of the step is the default then."""

    def fault(self, value: Any) -> tuple[str, str] | None:
        """Return what is wrong with a value of the right type: a code, and the rest of a sentence. None if it is fine.

        Args:
            value: the value, or one item of a list.
        """
        match value:
            case str() if self.choices and value not in self.choices:
                return "unknown_word", f"must be {listed(self.choices)}, not {value!r}"
            case bool():
                return None
            case int() | float() if self.minimum is not None and value < self.minimum:
                return "out_of_bounds", f"is {value}; the minimum is {self.minimum}"
            case int() | float() if self.maximum is not None and value > self.maximum:
                return "out_of_bounds", f"is {value}; the maximum is {self.maximum}"
            case _:
                return None


@dataclass(frozen=True, slots=True)
class Choose:
    """How many of several fields a step must give: exactly one, unless it says otherwise."""

    names: tuple[str, ...]
    least: int = 1
    most: int = 1
    beside: str = ""
    """A param of the step itself that may be given instead."""
    without: str = ""
    """What a step without any of them does, if that is allowed; a definition that gives none gets a warning."""

    @property
    def is_optional(self) -> bool:
        """Return whether a step may give none of them."""
        return self.least == 0 or bool(self.without)


@dataclass(frozen=True, slots=True)
class Output:
    """A param that a step has once it has run."""

    name: str
    type: ParamType
    doc: str
    params: "tuple[Output, ...]" = ()
    """The entries of a map."""
    gives_rows: bool = False
    """Whether it leads to the rows of a capture, so that a step that refers to it processes them."""


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs of one step."""

    params: Mapping[str, Output]
    is_open: bool = False
    """Whether there may be more, which only the run knows."""


class Dynamic:
    """Stands for a value that is known only when the step runs."""

    def __repr__(self) -> str:
        return "${…}"


DYNAMIC: Final = Dynamic()

Config = Mapping[str, Any]
"""The values of a config map, by field; ``DYNAMIC`` where a value is not known yet."""


def no_more(_: Config) -> Outputs:
    """Return no outputs."""
    return Outputs({})


def no_check(_: Node, __: Config, ___: Problems) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True)
class FileField:
    """A file whose references are resolved when the step reads it."""

    field: str
    """The field that names it; in a list, with its index: ``audit[0]``."""
    path: str
    holds: str = ""
    """The field that could hold the text instead, if there is one."""


def no_files(_: Config) -> Iterable[FileField]:
    """Return no files."""
    return ()


@dataclass(frozen=True, slots=True)
class StepType:
    """A kind of step: its fields and its outputs.

    Everything else follows from it: the check of definitions, the JSON Schema, the function of ``calve.dsl``, the
    section of the reference page, and the values that its runtime gets.
    """

    name: str
    doc: str
    """One sentence that begins with a verb: ``Runs a Java program.``"""
    config: str | None = None
    """The map param that holds its fields."""
    fields: tuple[Field, ...] = ()
    choose: tuple[Choose, ...] = ()
    params: tuple[Field, ...] = ()
    """Params of the step itself that it knows."""
    keys: tuple[Field, ...] = ()
    """Keys of the step itself, in addition to those of all steps; only steps that run other steps have them."""
    outputs: tuple[Output, ...] = ()
    outputs_of: Callable[[Config], Outputs] = no_more
    """Returns further outputs, which depend on the config."""
    check: Callable[[Node, Config, Problems], None] = no_check
    """Reports problems in the config map beyond those of single fields."""
    files: Callable[[Config], Iterable[FileField]] = no_files
    """Returns the files whose references are resolved, as far as their paths are known."""
    is_leaf: bool = True
    """Whether it does something itself, rather than run other steps."""
    delivers: bool = False
    """Whether it writes to the targets of a step exactly once."""
    refused: str = ""
    """Why it cannot be used, and what to use instead."""

    def known(self) -> dict[str, Field]:
        """Return its fields by name."""
        return {item.name: item for item in self.fields}

    @property
    def phrase(self) -> str:
        """Return its name in a phrase for messages: ``a Spark step``, ``an IpCapture step``."""
        is_spelt_out = self.name.isupper() or not set("aeiou").intersection(self.name.lower())
        is_vowel = self.name[:1].lower() in ("aefhilmnorsx" if is_spelt_out else "aeiou")
        return f"{'an' if is_vowel else 'a'} {self.name} step"


def listed(names: Iterable[str], word: str = "or") -> str:
    """Return names as a list in a sentence: ``a, b or c``."""
    *first, last = names
    return f"{', '.join(first)} {word} {last}" if first else last
