"""The methods of dates, zones and patterns, over our port of Joda-Time."""

from collections.abc import Callable

from calve.expressions.conversion import Method, inside_java, inside_joda, invoke
from calve.expressions.failures import class_cast, illegal_argument, null_pointer
from calve.expressions.java import to_int
from calve.expressions.joda import (
    UTC,
    DateField,
    DateTime as Instant,
    Formatter as Pattern,
    Unit,
    Zone as TimeZone,
    days_between,
    formatter,
    zone_for_id,
)
from calve.expressions.limits import Run
from calve.expressions.numbers import long_of, new_long, text_of
from calve.expressions.operators import new_text
from calve.expressions.text import brief_arguments, from_units, to_units, without_content
from calve.expressions.values import (
    Array,
    Bool,
    DateTime,
    Days,
    Double,
    Formatter,
    Long,
    Map,
    Null,
    Property,
    Text,
    Value,
    Void,
    Zone,
)


def new_datetime(run: Run, instant: Instant) -> DateTime:
    """Return a new DateTime."""
    run.charge()
    return DateTime(instant)


def now(run: Run) -> Instant:
    """Return the current time of the clock."""
    return Instant(run.clock(), UTC)


def utc(run: Run) -> Zone:
    """Return ``DateTimeZone.UTC``."""
    run.charge()
    return Zone(UTC)


def pattern_of(run: Run, text: str) -> Pattern:
    """Return the formatter of a pattern."""
    run.tick(len(text))
    return formatter(from_units(text), now=run.clock())


def create(run: Run, arguments: list[Value]) -> DateTime:
    """Return ``new DateTime(…)``."""
    with inside_joda():
        match arguments:
            case []:
                instant = now(run)
            case [value]:
                instant = _instant(run, value, None)
            case [value, zone]:
                instant = _instant(run, value, zone)
            case [*fields, zone] if len(fields) == 7:
                year, month, day, hour, minute, second, milli = (to_int(long_of(field).val) for field in fields)
                instant = Instant.of(year, month, day, hour, minute, second, milli, _zone_of(zone))
            case _:
                raise illegal_argument(
                    f"Invalid input arguments ({brief_arguments(run, arguments)}) for DateTime constructor"
                )
    return new_datetime(run, instant)


def _instant(run: Run, value: Value, zone: Value | None) -> Instant:
    """Return the instant that a value of any type represents."""
    match value:
        case Long():
            instant = Instant(value.val, UTC)
        case Text() if value.val is not None:
            run.tick(len(value.val))
            where = UTC if zone is None else _zone_of(zone)
            return Instant.of_text(from_units(value.val), where)
        case DateTime() if value.val is not None:
            instant = value.val
        case Null() | Void():
            instant = now(run)
        case Double() | Bool() | Array():
            _check_zone(zone)
            raise illegal_argument(f"No instant converter found for type: {value.type}")
        case Text() | DateTime() | Map() | Zone() | Formatter() | Property() | Days():
            if value.val is not None:
                _check_zone(zone)
                raise illegal_argument(f"No instant converter found for type: {value.type}")
            instant = now(run)
        case _:
            raise without_content(value)
    return instant if zone is None else instant.in_zone(_zone_of(zone))


def _check_zone(zone: Value | None) -> None:
    if zone is not None:
        _zone_of(zone)


def _zone_of(value: Value) -> TimeZone:
    if not isinstance(value, Zone):
        raise class_cast(value.java_class, "SelJodaDateTimeZone")
    return value.val or UTC


def _instant_of(value: Value) -> Instant | None:
    if not isinstance(value, DateTime):
        raise class_cast(value.java_class, "SelJodaDateTime")
    return value.val


def _moving(unit: Unit, direction: int) -> Method:
    def move(run: Run, instant: Instant, amount: int) -> Value:
        return new_datetime(run, instant.plus(unit, direction * amount))

    return Method((int,), move)


def _setting(field: DateField) -> Method:
    return Method((int,), lambda run, instant, value: new_datetime(run, instant.with_field(field, value)))


def _getting(field: DateField) -> Method:
    return Method((), lambda run, instant: new_long(run, instant.get(field)))


def _property(run: Run, instant: Instant, field: DateField) -> Value:
    run.charge()
    return Property(instant.property(field))


def _asking(field: DateField) -> Method:
    return Method((), lambda run, instant: _property(run, instant, field))


def _comparing(compare: Callable[[int, int], bool]) -> Method:
    def answer(run: Run, instant: Instant, other: Instant | None) -> Value:
        result = compare(instant.millis, run.clock() if other is None else other.millis)
        run.charge()
        return Bool(result)

    return Method((Instant,), answer, takes_none=True)


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]


_CALENDAR_FIELDS = (
    DateField.WEEKYEAR,
    DateField.MONTH_OF_YEAR,
    DateField.WEEK_OF_WEEKYEAR,
    DateField.DAY_OF_YEAR,
    DateField.DAY_OF_MONTH,
    DateField.DAY_OF_WEEK,
    DateField.HOUR_OF_DAY,
    DateField.MINUTE_OF_HOUR,
    DateField.SECOND_OF_MINUTE,
    DateField.MILLIS_OF_SECOND,
    DateField.MILLIS_OF_DAY,
)
_DAY_FIELDS = (DateField.MINUTE_OF_DAY, DateField.SECOND_OF_DAY)
_IN_ZONE = Method(
    (TimeZone,), lambda run, instant, zone: new_datetime(run, instant.in_zone(zone or UTC)), takes_none=True
)
_METHODS: dict[str, Method] = {
    "toString0": Method((), lambda run, instant: new_text(run, str(instant))),
    "toString1": Method(
        (str,),
        lambda run, instant, pattern: new_text(
            run, str(instant) if pattern is None else to_units(pattern_of(run, pattern).print(instant))
        ),
        takes_none=True,
    ),
    "withZone1": _IN_ZONE,
    "toDateTime1": _IN_ZONE,
    "withTimeAtStartOfDay0": Method((), lambda run, instant: new_datetime(run, instant.at_start_of_day())),
    "isAfter1": _comparing(lambda one, other: one > other),
    "isBefore1": _comparing(lambda one, other: one < other),
    "isEqual1": _comparing(lambda one, other: one == other),
    "getMillis0": Method((), lambda run, instant: new_long(run, instant.millis)),
    **{f"plus{_capital(unit)}1": _moving(unit, 1) for unit in Unit},
    **{f"minus{_capital(unit)}1": _moving(unit, -1) for unit in Unit},
    **{f"with{_capital(field)}1": _setting(field) for field in (DateField.YEAR, *_CALENDAR_FIELDS)},
    **{f"get{_capital(field)}0": _getting(field) for field in (DateField.YEAR, *_CALENDAR_FIELDS, *_DAY_FIELDS)},
    **{f"{field}0": _asking(field) for field in (*_CALENDAR_FIELDS, *_DAY_FIELDS)},
}


def call_datetime(run: Run, value: DateTime, name: str, arguments: list[Value]) -> Value | None:
    """Call a method and return its result; None if the method does not exist."""
    full_name = f"{name}{len(arguments)}"
    if full_name == "parse2":
        return _parse(run, value, arguments)
    method = _METHODS.get(full_name)
    if method is None:
        return None
    if value.val is None:
        with inside_java(full_name):
            raise illegal_argument("the DateTime is null")
    return invoke(run, method, full_name, value.val, arguments)


def _parse(run: Run, value: DateTime, arguments: list[Value]) -> Value:
    """Return ``DateTime.parse(text, formatter)``, a static method."""
    with inside_java("parse2"):
        text, pattern = arguments
        if value.val is not None or not isinstance(text, Text) or not isinstance(pattern, Formatter):
            raise illegal_argument("DateTime.parse takes a String and a DateTimeFormatter")
        if text.val is None or pattern.val is None:
            raise illegal_argument("the text or the formatter is null")
        run.tick(len(text.val))
        return new_datetime(run, pattern.val.parse(from_units(text.val)))


def call_zone(run: Run, value: Zone, name: str, arguments: list[Value]) -> Value | None:
    """Call a method and return its result; None if the method does not exist."""
    match name, arguments:
        case "forID", [zone_id]:
            text = text_of(zone_id).val
            with inside_joda():
                zone = UTC if text is None else zone_for_id(from_units(text))
            run.charge()
            return Zone(zone)
        case "getOffset", [moment]:
            instant = _instant_of(moment)
            if value.val is None:
                raise null_pointer("the DateTimeZone is null")
            return new_long(run, value.val.offset_at((instant or now(run)).millis))
        case _:
            return None


def call_property(run: Run, value: Property, name: str, arguments: list[Value]) -> Value | None:
    """Call a method and return its result; None if the method does not exist."""
    if arguments or name not in {"getAsText", "get", "withMinimumValue", "withMaximumValue"}:
        return None
    if value.val is None:
        raise null_pointer("the Property is null")
    with inside_joda():
        match name:
            case "getAsText":
                return new_text(run, to_units(value.val.as_text()))
            case "get":
                return new_long(run, value.val.get())
            case "withMinimumValue":
                return new_datetime(run, value.val.with_minimum())
            case _:
                return new_datetime(run, value.val.with_maximum())


def call_days(run: Run, value: Days, name: str, arguments: list[Value]) -> Value | None:
    """Call a method and return its result; None if the method does not exist."""
    match name, arguments:
        case "getDays", []:
            if value.val is None:
                raise null_pointer("the Days is null")
            return new_long(run, value.val)
        case "daysBetween", [one, other]:
            start, end = _instant_of(one), _instant_of(other)
            if start is None or end is None:
                raise illegal_argument("ReadableInstant objects must not be null")
            with inside_joda():
                days = days_between(start, end)
            run.charge()
            return Days(days)
        case _:
            return None


def call_formatter(run: Run, value: Formatter, name: str, arguments: list[Value]) -> Value | None:
    """Call a method and return its result; None if the method does not exist."""
    with inside_joda():
        match name, arguments:
            case "forPattern", [pattern]:
                made = pattern_of(run, text_of(pattern).val or "")
            case "withZone", [zone]:
                where = _zone_of(zone)
                made = _pattern_in(value).with_zone(where)
            case "parseDateTime", [Text() | Long() as text]:
                return new_datetime(run, _pattern_in(value).parse(_source(run, text)))
            case "parseMillis", [text]:
                source = text_of(text)
                if source.val is None:
                    raise null_pointer("the text is null")
                return new_long(run, _pattern_in(value).parse_millis(_source(run, source)))
            case "print", [Long() as millis]:
                return new_text(run, to_units(_pattern_in(value).print(millis.val)))
            case "print", [DateTime() as moment]:
                return new_text(run, to_units(_pattern_in(value).print(moment.val or now(run))))
            case _:
                return None
    run.charge()
    return Formatter(made)


def _pattern_in(value: Formatter) -> Pattern:
    if value.val is None:
        raise null_pointer("the DateTimeFormatter is null")
    return value.val


def _source(run: Run, value: Text | Long) -> str:
    if value.val is None:
        return "null"
    text = from_units(str(value.val))
    run.tick(len(text))
    return text
