"""Plain values that somebody gives for params, on the command line say."""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from calve.definition.document import Mark, Node
from calve.definition.forms.params import params
from calve.definition.model.params import Param, Params
from calve.definition.problems import Problems
from calve.errors import ParamError

_PARAM: TypeAdapter[Param] = TypeAdapter(Param)
_GIVEN = Node(None, Mark(1, 1), "")


def given_params(given: Mapping[str, Any], declared: Params) -> Params:
    """Return plain values as params: of the type that is declared, or else as YAML would take them.

    Raises:
        ParamError: a value does not fit the param that it is for, or a name is none.
    """
    return dict(_as_param(name, value, declared) for name, value in given.items())


def _as_param(key: str, value: Any, declared: Params) -> tuple[str, Param]:
    """Return a plain value as a param: of the type that is declared, or else as YAML would take it."""
    problems = Problems()
    placed = params({key: _GIVEN.made(value)}, problems)
    if problems.errors or not placed:
        raise ParamError(f"The param [{key}] cannot be given: {problems.errors[0].message}", param=key)
    ((name, node),) = placed.items()
    written = node.plain()
    if name in declared and written["type"] != declared[name].type:
        written = {"type": declared[name].type, "value": value}
    try:
        return name, _PARAM.validate_python(written)
    except ValidationError as error:
        raise ParamError(f"The value {value!r} of the param [{name}] is no {written['type']}", param=name) from error
