'''Commands derived from operations: their arguments, options and ``--json``, and the call itself.

    @performs("Captures.list_lag", consumer=option("-c"))
    def lag(found: list[Document]) -> None:
        """Show how far each consumer is behind its tables."""
        print_table(("consumer", "table"), [(one["consumer"], one["table"]) for one in found])

The parameters of an operation, and the fields of its body, define the names, types, choices, limits, defaults and help
of arguments and options. Keyword arguments override them: ``option(…)`` and ``argument(…)`` change how a parameter is
spelt; with any other value, or with a function, the command has no such parameter, and always passes that value, or the
result of the function, to the operation. None passes nothing. Further options are declared with ``click.option``.
'''

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import islice
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import click

from calve.cli.output import print_json
from calve.cli.state import State, json_option

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from calve.operations import Operation

_LARGE = 2**31 - 1
"""Limits of this size come from columns of the state database, and are not shown."""
_NAMED = re.compile(r"``(\w+)``")
"""The name of another parameter in the description of a parameter."""
_BOUNDS = {"ge": 0, "gt": 1, "le": 0, "lt": -1}
"""The checks that limit a number, and the difference between their value and the inclusive limit."""


class Spelling(NamedTuple):
    """The form of a parameter on the command line, where it differs from the derived one."""

    kind: type[click.Parameter]
    names: tuple[str, ...]
    attributes: dict[str, Any]


def option(*names: str, **attributes: Any) -> Spelling:
    """Spell a parameter as an option.

    Args:
        names: a short name in addition to the derived name, or a long name instead of it.
        attributes: the arguments of ``click.Option``.
    """
    return Spelling(click.Option, names, attributes)


def argument(**attributes: Any) -> Spelling:
    """Spell a parameter as an argument; the attributes are the arguments of ``click.Argument``."""
    return Spelling(click.Argument, (), attributes)


@dataclass(frozen=True)
class Call:
    """The call of an operation by a command, which may spell parameters differently."""

    path: str
    spellings: Mapping[str, Any]

    @cached_property
    def operation(self) -> "Operation":
        """The operation; it is imported on first use, so that ``calve --help`` imports none."""
        from calve import operations

        topic, _, method = self.path.partition(".")
        found: Operation = getattr(getattr(operations, topic), method).operation
        return found

    @cached_property
    def fixed(self) -> dict[str, Any]:
        """The values that the command always passes to the operation."""
        return {name: value for name, value in self.spellings.items() if not isinstance(value, Spelling)}

    def perform(self, state: State, given: Mapping[str, Any]) -> Any:
        """Perform the operation with arguments by name; a list in pages is read to its end, or up to the limit."""
        operation = self.operation
        with state.topic(self.path.partition(".")[0]) as topic:
            values = {name: _value(one) for name, one in {**given, **self.fixed}.items() if name in operation.fields}
            known = {name: value for name, value in values.items() if value not in (None, [])}
            if operation.is_paged:  # list_captures returns a page; the method captures yields all elements
                found = getattr(topic, operation.name.removeprefix("list_"))(**known)
                return list(islice(found, given.get("limit")))
            return getattr(topic, operation.name)(**operation.arguments(known))

    def parameters(self) -> Iterator[click.Parameter]:
        """Yield the arguments and options that are derived from the operation.

        Raises:
            TypeError: a keyword argument of the command is not a parameter of the operation.
        """
        known = {*self.operation.fields, *(["limit"] if self.operation.is_paged else [])}
        if unknown := self.spellings.keys() - known:
            raise TypeError(f"{self.path} does not take {', '.join(sorted(unknown))}")
        for name, field in self.operation.fields.items():
            if name not in self.fixed and (name in self.spellings or _kind(field)[1] is not None):
                yield self._parameter(name, field)
        if self.operation.is_paged and (limit := self.fixed.get("limit")):
            at_least_one, text = click.IntRange(min=1), "Show at most this many."
            yield click.Option(["--limit"], type=at_least_one, default=limit, show_default=True, help=text)

    def _parameter(self, name: str, field: "FieldInfo") -> click.Parameter:
        is_argument = field.is_required() and name in self.operation.positional
        spelling = self.spellings.get(name) or (argument() if is_argument else option())
        if spelling.kind is click.Argument:
            return click.Argument([name], **_argument(name, field, **spelling.attributes))
        is_renamed = any(one.startswith("--") for one in spelling.names)
        names = spelling.names if is_renamed else (*spelling.names, f"--{name.replace('_', '-')}")
        return click.Option([name, *names], **_option(field, **spelling.attributes))


class OperationCommand(click.Command):
    """A command whose parameters are derived from an operation."""

    def __init__(self, call: Call, function: Callable[..., Any], **attributes: Any) -> None:
        self._call, self._function = call, function
        self._params: list[click.Parameter] | None = None
        super().__init__(**attributes)

    @property
    def params(self) -> list[click.Parameter]:
        """The parameters, derived on first use."""
        if self._params is None:
            more = reversed(getattr(self._function, "__click_params__", []))
            self._params = [*self._call.parameters(), *more]
            json_option(self)
        return self._params

    @params.setter
    def params(self, given: list[click.Parameter]) -> None:
        """Ignore the list that click sets in its constructor."""

    @property
    def help(self) -> str:
        """The docstring of the function, or else that of the operation."""
        text = inspect.getdoc(self._function) or self._call.operation.doc.replace("``", "")
        return with_examples(text)

    @help.setter  # noqa: A003 - click's name
    def help(self, given: str | None) -> None:
        """Ignore the None that click sets in its constructor."""


class OperationGroup(OperationCommand, click.Group):
    """A group that performs an operation itself if no subcommand is given."""


def _value(given: Any) -> Any:
    """Return the value that an operation receives: the result of a function, and a list instead of a tuple."""
    if callable(given):
        return given()
    return list(given) if isinstance(given, tuple) else given


def with_examples(text: str) -> str:
    r"""Replace ``\b`` by the backspace character that makes click keep the lines of examples in a help text."""
    return text.replace("\\b\n", "\b\n")


def command(path: str, name: str = "", /, **more: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command from a function that takes the ``State`` and the arguments of an operation.

    Args:
        path: the operation, as ``Topic.method``.
        name: the name of the command; by default, that of the function.
        more: ``below``, the group of the command; ``is_group``, whether it has subcommands; and overrides by parameter.
            A list in pages has the option ``--limit`` if ``limit`` is its default.
    """

    def decorate(function: Callable[..., Any]) -> click.Command:
        return _made(path, name, function, lambda _: function, **more)

    return decorate


def performs(path: str, name: str = "", /, **more: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make a command that performs an operation from a function that prints the answer for people.

    The function takes the answer, and any arguments of the operation; ``--json`` prints the answer unchanged instead.
    For the parameters, see ``command``.
    """

    def decorate(render: Callable[..., None]) -> click.Command:
        wanted = list(inspect.signature(render).parameters)[1:]

        def performing(call: Call) -> Callable[..., None]:
            def perform(state: State, /, **given: Any) -> None:
                if click.get_current_context().invoked_subcommand is not None:
                    return
                answer = call.perform(state, given)
                if state.json:
                    print_json(answer)
                else:
                    render(answer, **{one: given[one] for one in wanted})

            return perform

        return _made(path, name, render, performing, **more)

    return decorate


def _made(
    path: str,
    name: str,
    function: Callable[..., Any],
    body: Callable[[Call], Callable[..., Any]],
    /,
    *,
    below: click.Group | None = None,
    is_group: bool = False,
    **spellings: Any,
) -> click.Command:
    call = Call(path, spellings)
    kind, attributes = (OperationGroup, {"invoke_without_command": True}) if is_group else (OperationCommand, {})
    name = name or function.__name__.replace("_", "-")
    made = kind(call, function, name=name, callback=click.pass_obj(body(call)), **attributes)
    if below is not None:
        below.add_command(made)
    return made


def _argument(name: str, field: "FieldInfo", **attributes: Any) -> dict[str, Any]:
    """Return the arguments of ``click.Argument``; the metavar of ``workflow_id`` is WORKFLOW."""
    is_list, kind = _kind(field)
    is_required = attributes.get("required", field.is_required())
    shown = name.removesuffix("_id").upper()
    metavar = (shown if is_required else f"[{shown}]") + ("..." if is_list else "")
    if isinstance(kind, click.IntRange):
        kind = click.INT  # the operation checks the range, with the same kind of error as for a name
    found = {"metavar": metavar, "type": kind, "required": is_required}
    return found | ({"nargs": -1} if is_list else _default(field)) | attributes


def _option(field: "FieldInfo", **attributes: Any) -> dict[str, Any]:
    """Return the arguments of ``click.Option``."""
    is_list, kind = _kind(field)
    is_required = field.is_required() and "default" not in attributes
    text = _NAMED.sub(lambda found: f"--{found[1].replace('_', '-')}", field.description or "")
    found: dict[str, Any] = {"help": text, "required": is_required, "type": kind}
    if is_list:
        found |= {"multiple": True, "help": f"{text} Repeatable."}
    elif kind is click.BOOL:
        found |= {"is_flag": True}
    else:
        found |= _default(field)
    return found | attributes | {"show_default": "default" in found | attributes}


def _default(field: "FieldInfo") -> dict[str, Any]:
    """Return the default of a parameter, if it is worth showing."""
    default = getattr(field.default, "value", field.default)
    return {"default": default} if default and not field.is_required() else {}


def _kind(field: "FieldInfo") -> "tuple[bool, click.ParamType[Any] | None]":
    """Tell whether a field has several values, and return the click type of one; None if it cannot be typed."""
    kind, checks = _plain(field.annotation, *field.metadata)
    if get_origin(kind) is list:
        return True, _type(*_plain(get_args(kind)[0]))
    return False, _type(kind, checks)


def _plain(kind: Any, *checks: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return an annotation without ``Annotated`` and ``| None``, and the checks of its values."""
    if get_origin(kind) is Annotated:
        inner, *more = get_args(kind)
        return _plain(inner, *checks, *(check for one in more for check in getattr(one, "metadata", [one])))
    if get_origin(kind) in {Union, UnionType}:
        given = [one for one in get_args(kind) if one is not NoneType]
        return _plain(given[0], *checks) if len(given) == 1 else (kind, checks)
    return kind, checks


def _type(kind: Any, checks: tuple[Any, ...] = ()) -> "click.ParamType[Any] | None":
    """Return the click type for a plain type, if there is one."""
    if kind is bool:
        return click.BOOL
    if kind is int:
        return _number(checks)
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return click.Choice([one.value for one in kind], case_sensitive=False)
    return click.STRING if kind is str else None


def _number(checks: tuple[Any, ...]) -> "click.ParamType[Any]":
    """Return the click type of an integer with its limits."""
    limits = {name: getattr(one, name) + by for one in checks for name, by in _BOUNDS.items() if hasattr(one, name)}
    lowest, highest = limits.get("ge", limits.get("gt")), limits.get("le", limits.get("lt"))
    lowest = lowest if lowest is not None and lowest > -_LARGE else None
    highest = highest if highest is not None and highest < _LARGE else None
    return click.INT if lowest is None and highest is None else click.IntRange(lowest, highest)
