"""The functions of ``Util``, ``System``, ``Arrays``, ``UUID`` and ``params``."""

import re
import uuid

from calve.expressions.conversion import argument, box, inside_joda, unbox
from calve.expressions.dates import now
from calve.expressions.failures import (
    class_cast,
    illegal_argument,
    null_pointer,
    number_format,
    too_long_array,
    unsupported,
)
from calve.expressions.java import INT_MAX, INT_MIN, json_text, parse_long, to_int
from calve.expressions.joda import DAY, UTC, DateTime as Instant, Unit, date_of, days_between, formatter, zone_for_id
from calve.expressions.limits import OBJECT_SIZE, Run
from calve.expressions.numbers import create_long, long_of, new_long, text_of
from calve.expressions.operators import new_text
from calve.expressions.strings import create as create_text
from calve.expressions.text import brief_arguments, from_units, shown, to_units
from calve.expressions.values import (
    Array,
    Bool,
    DateTime,
    Long,
    Map,
    MiscClass,
    Params,
    ResultType,
    Text,
    UtilClass,
    Uuid,
    Value,
)
from calve.expressions.variables import param

_DATE_INT = formatter("YYYYMMdd").with_zone(UTC)
_MOST_PARAM_ARGUMENTS = 3


def call_misc(run: Run, _: MiscClass, name: str, arguments: list[Value]) -> Value | None:
    """Call a function of ``System`` or ``Arrays`` and return its result; None if the function does not exist."""
    match name, arguments:
        case "currentTimeMillis", []:
            return new_long(run, run.clock())
        case "asList", [value]:
            return value
        case _:
            return None


def call_uuid(run: Run, value: Uuid, name: str, arguments: list[Value]) -> Value | None:
    """Call a method and return its result; None if the method does not exist."""
    match name, arguments:
        case "randomUUID", []:
            run.charge()
            return Uuid(str(uuid.uuid4()))
        case "toString", []:
            return new_text(run, "null" if value.val is None else value.val)
        case _:
            return None


def call_params(run: Run, _: Params, name: str, arguments: list[Value]) -> Value | None:
    """Call a function of ``params`` and return its result; None if the function does not exist."""
    match name, arguments:
        case "get", [key]:
            return param(run, text_of(key))
        case "containsKey", [key]:
            text = text_of(key).val
            found = text is not None and from_units(text) in run.params
            run.charge()
            return Bool(found)
        case _ if run.functions is None:
            return None
        case _:
            if len(arguments) > _MOST_PARAM_ARGUMENTS or not all(isinstance(value, Text) for value in arguments):
                raise unsupported(
                    f"ParamExtension DO NOT support calling method: {name} with args: {brief_arguments(run, arguments)}"
                )
            texts = tuple(from_units(shown(run, value)) for value in arguments)
            return box(run, run.functions.call(name, texts))


def call_util(run: Run, _: UtilClass, name: str, arguments: list[Value]) -> Value | None:
    """Call a function of ``Util`` and return its result; None if the function does not exist."""
    with inside_joda():
        match name, arguments:
            case "toJson", _:
                return _to_json(run, arguments)
            case "dateIntToTs", [date]:
                return new_long(run, _date(run, date).millis)
            case "tsToDateInt", [millis]:
                return new_text(run, _DATE_INT.print(create_long(run, millis).val))
            case "incrementDateInt", [date, days]:
                moved = _date(run, date).plus(Unit.DAYS, to_int(long_of(days).val))
                return new_text(run, _DATE_INT.print(moved))
            case "timeoutForDateTimeDeadline", [moment, duration]:
                return _timeout(run, _moment(moment), text_of(duration).val)
            case "timeoutForDateIntDeadline", [date, duration]:
                start = _DATE_INT.parse(_text_shown(run, date))
                return _timeout(run, start, text_of(duration).val)
            case "dateIntsBetween", [start, end, step]:
                return _date_ints_between(run, start, end, step)
            case "intsBetween", [start, end, step]:
                return _ints_between(run, start, end, step)
            case "dateIntHourToTs", [date, hour, zone, days, hours]:
                return _date_int_hour(run, date, hour, zone, days, hours)
            case _:
                return None


def _to_json(run: Run, arguments: list[Value]) -> Value:
    contents = [unbox(run, value) if isinstance(value, Array | Map) else argument(value) for value in arguments]
    if len(contents) != 1:
        raise illegal_argument("toJson function requires exactly one argument")
    return new_text(run, to_units(json_text(run, contents[0])))


def _date(run: Run, value: Value) -> Instant:
    text = create_text(run, value).val
    if text is None:
        raise null_pointer("the date is null")
    return _DATE_INT.parse(from_units(text))


def _text_shown(run: Run, value: Value) -> str:
    text = create_text(run, value).val
    return "null" if text is None else from_units(text)


def _moment(value: Value) -> Instant | None:
    if not isinstance(value, DateTime):
        raise class_cast(value.java_class, "SelJodaDateTime")
    return value.val


def _timeout(run: Run, start: Instant | None, duration: str | None) -> Value:
    if duration is None:
        raise null_pointer("the duration is null")
    millis = millis_in_words(duration)
    if start is None:
        raise null_pointer("the DateTime is null")
    left = max(start.millis + millis - now(run).millis, 0)
    return new_text(run, f"{left} milliseconds")


def _int_shown(run: Run, value: Value) -> int:
    text = shown(run, value)
    number = parse_long(text, INT_MIN, INT_MAX)
    if number is None:
        raise number_format(f'For input string: "{text[:100]}"')
    return number


def _date_ints_between(run: Run, start: Value, end: Value, step: Value) -> Value:
    days = _int_shown(run, step)
    if days == 0:
        raise illegal_argument(f"Invalid incremental interval value: {days}")
    if days < 0:
        start, end = end, start
    first, last = _DATE_INT.parse(_text_shown(run, start)), _DATE_INT.parse(_text_shown(run, end))
    offsets = range(0, days_between(first, last), min(abs(days), INT_MAX))
    _check_length(run, offsets)
    dates: list[int] = []
    for offset in offsets:
        run.tick()
        dates.append(_date_int(first.millis + offset * DAY))
    return _long_array(run, dates if days > 0 else dates[::-1])


def _date_int(millis: int) -> int:
    """Return what ``_DATE_INT`` prints, ten times faster; it prints the year of the era."""
    year, month, day = date_of(millis)
    return (year if year > 0 else 1 - year) * 10_000 + month * 100 + day


def _ints_between(run: Run, start: Value, end: Value, step: Value) -> Value:
    first, last, increment = (to_int(create_long(run, value).val) for value in (start, end, step))
    if increment == 0:
        if first > last:
            # Maestro adds elements until its memory is full.
            run.check_room(run.limits.memory)
        return _long_array(run, [])
    numbers = range(first, last, increment)
    _check_length(run, numbers)
    return _long_array(run, list(numbers))


def _check_length(run: Run, numbers: range) -> None:
    """Refuse an array that would be too long, before it is made."""
    if len(numbers) >= run.limits.array:
        raise too_long_array(run.limits.array, len(numbers))


def _long_array(run: Run, numbers: list[int]) -> Array:
    run.charge()
    run.check_room(len(numbers) * OBJECT_SIZE)
    run.room -= len(numbers) * OBJECT_SIZE
    return Array([Long(number) for number in numbers], ResultType.LONG_ARRAY)


def _date_int_hour(run: Run, date: Value, hour: Value, zone: Value, days: Value, hours: Value) -> Value:
    zone_id = create_text(run, zone).val
    pattern = formatter("YYYYMMddHH").with_zone(UTC if zone_id is None else zone_for_id(from_units(zone_id)))
    start = pattern.parse(_text_shown(run, date) + _text_shown(run, hour))
    moved = start.plus(Unit.DAYS, -to_int(create_long(run, days).val))
    return new_long(run, moved.plus(Unit.HOURS, -to_int(create_long(run, hours).val)).millis)


_MILLIS = {
    "week": 604_800_000,
    "day": 86_400_000,
    "hour": 3_600_000,
    "minute": 60_000,
    "second": 1_000,
    "millisecond": 1,
}
_UNITS = ("year", "month", *_MILLIS)
_PART = re.compile(r"([+-]?[0-9]{1,10}) (year|month|week|day|hour|minute|second|millisecond)s?(?![a-z])", re.IGNORECASE)
_SEPARATOR = re.compile(r",? and |, ?| ", re.IGNORECASE)


def millis_in_words(text: str) -> int:
    """Return the milliseconds of a duration in words.

    Raises:
        ExpressionFailed: it is not a duration, or has months or years, whose length varies.
    """
    total, at, rank = 0, 0, -1
    if not text:
        return 0
    while found := _PART.match(text, at):
        unit = found.group(2).lower()
        if _UNITS.index(unit) <= rank:
            break
        rank = _UNITS.index(unit)
        amount = int(found.group(1))
        if not INT_MIN <= amount <= INT_MAX:
            raise number_format(f'For input string: "{amount}"')
        if unit not in _MILLIS and amount:
            raise unsupported(f"Cannot convert to Duration as this period contains {unit}s and {unit}s vary in length")
        total += amount * _MILLIS.get(unit, 0)
        at = found.end()
        if at == len(text):
            return total
        separator = _SEPARATOR.match(text, at)
        if separator is None:
            break
        at = separator.end()
    raise illegal_argument(f'Invalid format: "{text[:100]}"')
