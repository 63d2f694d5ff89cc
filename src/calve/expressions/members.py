"""The methods, fields and constructors of values. An expression cannot access anything else."""

from collections.abc import Callable
from typing import Any, TypeAlias

from calve.expressions import containers, dates, functions, numbers, strings
from calve.expressions.failures import illegal_argument, unsupported
from calve.expressions.java import HashMap
from calve.expressions.limits import Run
from calve.expressions.text import brief_arguments
from calve.expressions.values import (
    TYPES,
    Array,
    Bool,
    DateTime,
    Days,
    Double,
    Formatter,
    Long,
    Map,
    MathClass,
    MiscClass,
    Params,
    Property,
    ResultType,
    Text,
    UtilClass,
    Uuid,
    Value,
    Zone,
)
from calve.expressions.variables import param

_SUNDAY = 7


def type_named(name: str) -> ResultType:
    """Return the type of a name.

    Raises:
        ExpressionFailed: the type does not exist.
    """
    if name not in TYPES:
        raise unsupported(f"Please check the manual for supported classes, which does not include class:  {name}")
    return TYPES[name]


_Method: TypeAlias = Callable[[Run, Any, str, list[Value]], Value | None]
_METHODS: dict[type[Value], _Method] = {
    Text: strings.call,
    Long: numbers.call_long,
    Double: numbers.call_double,
    Map: containers.call_map,
    Params: functions.call_params,
    UtilClass: functions.call_util,
    MathClass: numbers.call_math,
    MiscClass: functions.call_misc,
    Uuid: functions.call_uuid,
    DateTime: dates.call_datetime,
    Zone: dates.call_zone,
    Formatter: dates.call_formatter,
    Property: dates.call_property,
    Days: dates.call_days,
}


def call(run: Run, value: Value, name: str, arguments: list[Value]) -> Value:
    """Call a method."""
    method = _METHODS.get(type(value))
    if method is None:
        raise unsupported(f"{value.type} DO NOT support calling {name}")
    found = method(run, value, name, arguments)
    if found is None:
        shown = brief_arguments(run, arguments)
        raise unsupported(f"{value.type} DO NOT support calling method: {name} with args: {shown}")
    return found


def field_of(run: Run, value: Value, name: str) -> Value:
    """Return the value of a field."""
    match value:
        case Array() if name == "length":
            run.charge()
            return Long(len(value.val))
        case MiscClass() if name == "SUNDAY":
            run.charge()
            return Long(_SUNDAY)
        case Zone() if name == "UTC":
            return dates.utc(run)
        case Params():
            return param(run, Text(name))
        case _:
            raise unsupported(f"{value.type} DO NOT support accessing field: {name}")


def construct(run: Run, type_: ResultType, arguments: list[Value]) -> Value:  # noqa: C901 - one case for each type
    """Return the object that ``new`` creates."""
    match type_, arguments:
        case ResultType.STRING, []:
            run.charge()
            return Text("")
        case ResultType.STRING, [one]:
            return strings.create(run, one)
        case ResultType.LONG, [one]:
            return numbers.create_long(run, one)
        case ResultType.DOUBLE, [Double() as one]:
            run.charge()
            return Double(one.val)
        case ResultType.DOUBLE, [Text() as one]:
            return numbers.double_in(run, one)
        case ResultType.BOOLEAN, [Bool() as one]:
            run.charge()
            return Bool(one.val)
        case ResultType.BOOLEAN, [Text() as one]:
            run.charge()
            return Bool((one.val or "").lower() == "true")
        case ResultType.MAP, []:
            run.charge()
            return Map(HashMap())
        case ResultType.DATETIME, _:
            return dates.create(run, arguments)
        case ((ResultType.STRING | ResultType.LONG | ResultType.DOUBLE | ResultType.BOOLEAN | ResultType.MAP), _):
            raise illegal_argument(
                f"Invalid input arguments ({brief_arguments(run, arguments)}) for {type_.capitalize()} constructor"
            )
        case _:
            raise unsupported(f"{type_} DO NOT support calling constructor")
