"""What a step type declares: its config map, its params and what it gives."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from calve.definition.document import Node
from calve.definition.model.params import ParamType
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
    """What the texts of a field are, which decides what a ``${`` in them can be besides a reference."""

    OTHER = "other"
    """Names, or a program in a language that has a ``${`` of its own, such as a shell's."""
    VALUES = "values"
    """Data: a ``${`` must be a reference, or be written ``$${``."""
    SQL = "sql"
    """Statements: as VALUES, and a text that comes whole from a param or an expression must be resolved too."""


@dataclass(frozen=True, slots=True)
class Field:
    """One thing that can be said of a step: an entry of its config map, or a param of the step itself."""

    name: str
    types: tuple[ParamType, ...]
    doc: str
    required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()
    """The values it may have; of a list, its items."""
    minimum: int | None = None
    maximum: int | None = None
    fields: "tuple[Field, ...]" = ()
    """The entries of a map; of a map without any, every name is fine."""
    values: tuple[ParamType, ...] = ()
    """The types of a map's values, where they are limited."""
    content: Content = Content.OTHER


@dataclass(frozen=True, slots=True)
class Choose:
    """How many of some fields are to be given: exactly one, unless it says otherwise."""

    names: tuple[str, ...]
    least: int = 1
    most: int = 1
    beside: str = ""
    """A param of the step itself that may be given in their place."""
    without: str = ""
    """What the step does without any of them, where that is allowed: a definition that gives none is warned about."""

    @property
    def is_optional(self) -> bool:
        """Tell whether a step may give none of them."""
        return self.least == 0 or bool(self.without)


@dataclass(frozen=True, slots=True)
class Output:
    """A param that a step has once it has run."""

    name: str
    type: ParamType
    doc: str
    params: "tuple[Output, ...]" = ()
    """What stands inside a map."""
    gives_rows: bool = False
    """Whether it leads to the rows of a capture, so that whoever refers to it works on them."""


@dataclass(frozen=True, slots=True)
class Outputs:
    """The params that one step gives."""

    params: Mapping[str, Output]
    is_open: bool = False
    """There may be more, which only the run will tell."""


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
    """Find nothing wrong."""


@dataclass(frozen=True, slots=True)
class FileField:
    """A file whose references are resolved when the step reads it."""

    field: str
    """The field that names it; of a list, with its number: ``audit[0]``."""
    path: str
    holds: str = ""
    """The field that the text could stand in instead, where there is one."""


def no_files(_: Config) -> Iterable[FileField]:
    """Return no files."""
    return ()


@dataclass(frozen=True, slots=True)
class StepType:
    """A kind of step: what can be said of it, and what it gives."""

    name: str
    doc: str
    config: str | None = None
    """The map param that holds its fields."""
    fields: tuple[Field, ...] = ()
    choose: tuple[Choose, ...] = ()
    params: tuple[Field, ...] = ()
    """Params of the step itself that it knows."""
    outputs: tuple[Output, ...] = ()
    outputs_of: Callable[[Config], Outputs] = no_more
    """What it gives besides, depending on its config."""
    check: Callable[[Node, Config, Problems], None] = no_check
    """Finds what is wrong in its config map beyond its fields."""
    files: Callable[[Config], Iterable[FileField]] = no_files
    """Lists the files whose references are resolved, as far as their paths are known."""
    is_leaf: bool = True
    """Does something itself, rather than by running other steps."""
    delivers: bool = False
    """Writes to the targets of a step exactly once."""
    refused: str = ""
    """Why it cannot be used here, and what to use."""

    def known(self) -> dict[str, Field]:
        """Return its fields by name."""
        return {item.name: item for item in self.fields}
