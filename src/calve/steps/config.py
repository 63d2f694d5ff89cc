"""The config of a step: the fields of its config map and its params, with their values checked at run time.

Pushing a definition checks only the values that are known then. A reference gets its value at run time, so a number, a
boolean or one of several choices may still be invalid.
"""

from collections.abc import Mapping
from typing import Any

from calve.definition.model import ParamType
from calve.definition.params import cast
from calve.definition.step_types import Choose, Field, StepType
from calve.engine import StepContext
from calve.errors import ParamError
from calve.steps.failures import fatal

_KINDS: dict[ParamType, tuple[type, ...]] = {
    ParamType.STRING: (str,),
    ParamType.SECRET: (str,),
    ParamType.LONG: (int,),
    ParamType.DOUBLE: (float, int),
    ParamType.BOOLEAN: (bool,),
    ParamType.STRING_MAP: (Mapping,),
    ParamType.MAP: (Mapping,),
    ParamType.STRING_ARRAY: (list, tuple),
    ParamType.LONG_ARRAY: (list, tuple),
    ParamType.DOUBLE_ARRAY: (list, tuple),
    ParamType.BOOLEAN_ARRAY: (list, tuple),
}


def fields(context: StepContext, step_type: StepType) -> dict[str, Any]:
    """Return the values of a step's fields and params by name; those not given have their default, or are absent.

    Raises:
        StepFailed: a required field is missing, or a value is invalid.
    """
    config = context.params.get(step_type.config or "", {})
    if not isinstance(config, Mapping):
        raise fatal(f"{step_type.config} is not a map.")
    prefix = f"{step_type.config}." if step_type.config else ""
    found = _read(step_type.fields, config, prefix) | _read(step_type.params, context.params, "")
    for choose in step_type.choose:
        _check_choice(choose, config, prefix)
    return found


def _read(declared: tuple[Field, ...], given: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    found = {}
    for item in declared:
        value = given.get(item.name)
        if value is None:
            value = item.default
        if value is not None:
            found[item.name] = _fitting(item, value, f"{prefix}{item.name}")
        elif item.required:
            raise fatal(f"{prefix}{item.name} is missing.")
    return found


def _fitting(item: Field, value: Any, name: str) -> Any:
    """Return a value in a type that the field accepts."""
    if not any(_is_of(kind, value) for kind in item.types):
        value = _cast(item, value, name)
    for one in value if isinstance(value, list | tuple) else (value,):
        if found := item.fault(one):
            raise fatal(f"{name} {found[1]}.")
    if item.fields and isinstance(value, Mapping):
        return _read(item.fields, value, f"{name}.")
    return value


def _is_of(kind: ParamType, value: Any) -> bool:
    is_truth = isinstance(value, bool)
    return is_truth if kind is ParamType.BOOLEAN else isinstance(value, _KINDS[kind]) and not is_truth


def _cast(item: Field, value: Any, name: str) -> Any:
    for kind in item.types:
        try:
            return cast(name, kind, value).value
        except ParamError as error:
            reason = error.message
    raise fatal(f"{reason}.")


def _check_choice(choose: Choose, config: Mapping[str, Any], prefix: str) -> None:
    there = [name for name in choose.names if config.get(name) is not None]
    least = 0 if choose.is_optional else choose.least
    if not least <= len(there) <= choose.most:
        names = ", ".join(f"{prefix}{name}" for name in choose.names)
        raise fatal(f"{len(there)} of {names} are set, but {least} to {choose.most} must be.")


def texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Return a map with its values as text, for environment variables and headers."""
    return {name: text(value) for name, value in values.items()}


def text(value: Any) -> str:
    """Return a scalar as text, with booleans as in JSON."""
    return str(value).lower() if isinstance(value, bool) else str(value)
