"""What can be asked of a value: its methods, its fields, and how it is made. There is nothing else."""

from calve.expressions import dates, functions, maps, numbers, strings
from calve.expressions.failures import illegal_argument, unsupported
from calve.expressions.java.hash_map import HashMap
from calve.expressions.meter import Run
from calve.expressions.rendering import shown_arguments
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
    Uuid,
    UtilClass,
    Value,
    Zone,
)
from calve.expressions.variables import param

_SUNDAY = 7


def type_named(name: str) -> ResultType:
    """Return the type of a name.

    Raises:
        ExpressionFailed: there is no such type.
    """
    if name not in TYPES:
        raise unsupported(f"Please check the manual for supported classes, which does not include class:  {name}")
    return TYPES[name]


def call(run: Run, value: Value, name: str, arguments: list[Value]) -> Value:
    """Return what a method gives."""
    match value:
        case Text():
            found = strings.call(run, value, name, arguments)
        case Long():
            found = numbers.call_long(run, value, name, arguments)
        case Double():
            found = numbers.call_double(run, value, name, arguments)
        case Map():
            found = maps.call(run, value, name, arguments)
        case Params():
            found = functions.call_params(run, name, arguments)
        case UtilClass():
            found = functions.call_util(run, name, arguments)
        case MathClass():
            found = numbers.call_math(run, name, arguments)
        case MiscClass():
            found = functions.call_misc(run, name, arguments)
        case Uuid():
            found = functions.call_uuid(run, value, name, arguments)
        case DateTime():
            found = dates.call_datetime(run, value, name, arguments)
        case Zone():
            found = dates.call_zone(run, value, name, arguments)
        case Formatter():
            found = dates.call_formatter(run, value, name, arguments)
        case Property():
            found = dates.call_property(run, value, name, arguments)
        case Days():
            found = dates.call_days(run, value, name, arguments)
        case _:
            raise unsupported(f"{value.type} DO NOT support calling {name}")
    if found is None:
        shown = shown_arguments(run, arguments)
        raise unsupported(f"{value.type} DO NOT support calling method: {name} with args: {shown}")
    return found


def field_of(run: Run, value: Value, name: str) -> Value:
    """Return what a field holds."""
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


def construct(run: Run, type_: ResultType, arguments: list[Value]) -> Value:
    """Return what ``new`` makes."""
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
                f"Invalid input arguments ({shown_arguments(run, arguments)}) for {type_.capitalize()} constructor"
            )
        case _:
            raise unsupported(f"{type_} DO NOT support calling constructor")
