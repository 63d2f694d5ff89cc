"""The methods of a string."""

from typing import Any

from calve.errors import ExpressionFailed
from calve.expressions.conversion import Method, argument, inside_java, invoke, unbox
from calve.expressions.failures import class_cast, illegal_argument, null_pointer
from calve.expressions.java import FormatFailed, Shown, format_java, replace_all, split
from calve.expressions.limits import Run
from calve.expressions.operators import new_text
from calve.expressions.text import appended, brief_text, java_array, shown, to_units
from calve.expressions.values import Array, Bool, Long, Map, ResultType, Text, Value

_SPACE = "".join(map(chr, range(33)))
_ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\b", "\\b"), ("\n", "\\n"), ("\r", "\\r"), ("\f", "\\f"), ('"', '\\"'))


def create(run: Run, value: Value) -> Text:
    """Return ``new String(value)``."""
    match value:
        case Long():
            return new_text(run, str(value.val))
        case Text():
            run.charge(2 * len(value.val or ""))
            return Text(value.val)
        case _:
            raise illegal_argument(f"Invalid input argument ({brief_text(run, value)}) for String constructor")


def call(run: Run, value: Text, name: str, arguments: list[Value]) -> Value | None:
    """Call a method and return its result; None if the method does not exist."""
    match name:
        case "format":
            return _format(run, arguments)
        case "join":
            return _join(run, arguments)
        case "escape":
            return _escape(run, value, arguments)
        case _:
            return _call_java(run, value.val, f"{name}{len(arguments)}", arguments)


def _call_java(run: Run, text: str | None, name: str, arguments: list[Value]) -> Value | None:
    if name == "valueOf1":
        return _value_of(run, text, arguments[0])
    method = _METHODS.get(name)
    if method is None:
        return None
    if text is None:
        with inside_java(name):
            raise illegal_argument("the string is null")
    run.tick(len(text))
    return invoke(run, method, name, text, arguments)


def _value_of(run: Run, text: str | None, value: Value) -> Value:
    """Return ``String.valueOf(value)``, a static method."""
    with inside_java("valueOf1"):
        if text is not None:
            raise illegal_argument("valueOf is a method of the class String")
        content = argument(value)
        if isinstance(value, Map):
            unbox(run, value)
            return new_text(run, shown(run, value))
        if isinstance(value, Array):
            return new_text(run, java_array(value))
        return new_text(run, str(content) if isinstance(value, Long) else appended(run, value))


def _whole(text: str) -> str:
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _replace(run: Run, text: str, old: str, new: str) -> Value:
    found = text.count(old)
    run.check_room(2 * (len(text) + found * (len(new) - len(old))))
    return new_text(run, text.replace(old, new))


def _substring(run: Run, text: str, start: int, end: int | None = None) -> Value:
    stop = len(text) if end is None else end
    if not 0 <= start <= stop <= len(text):
        raise illegal_argument(f"begin {start}, end {stop}, length {len(text)}")
    return new_text(run, text[start:stop])


def _compare(run: Run, text: str, other: str) -> Value:
    pairs = zip(text, other, strict=False)
    difference = next((ord(one) - ord(two) for one, two in pairs if one != two), len(text) - len(other))
    return _number(run, difference)


def _number(run: Run, number: int) -> Value:
    run.charge()
    return Long(number)


def _truth(run: Run, truth: bool) -> Value:  # noqa: FBT001 - it is the value
    run.charge()
    return Bool(truth)


def _split(run: Run, text: str, pattern: str, limit: int) -> Value:
    parts = split(run, _whole(text), _whole(pattern), limit)
    run.charge()
    return Array([new_text(run, to_units(part)) for part in parts], ResultType.STRING_ARRAY)


def _replace_all(run: Run, text: str, pattern: str | None, replacement: str | None) -> Value:
    if pattern is None:
        raise null_pointer("the pattern is null")
    # A pattern matches whole characters, not the UTF-16 units that a string consists of.
    new = None if replacement is None else _whole(replacement)
    return new_text(run, to_units(replace_all(run, _whole(text), _whole(pattern), new)))


_METHODS: dict[str, Method] = {
    "split1": Method((str,), lambda run, text, pattern: _split(run, text, pattern, 0)),
    "split2": Method((str, int), _split),
    "replaceAll2": Method((str, str), _replace_all, takes_none=True),
    "replace2": Method((str, str), _replace),
    "toUpperCase0": Method((), lambda run, text: new_text(run, to_units(_whole(text).upper()))),
    "toLowerCase0": Method((), lambda run, text: new_text(run, to_units(_whole(text).lower()))),
    "startsWith1": Method((str,), lambda run, text, start: _truth(run, text.startswith(start))),
    "endsWith1": Method((str,), lambda run, text, end: _truth(run, text.endswith(end))),
    "contains1": Method((str,), lambda run, text, part: _truth(run, part in text)),
    "substring1": Method((int,), _substring),
    "substring2": Method((int, int), _substring),
    "lastIndexOf1": Method((str,), lambda run, text, part: _number(run, text.rfind(part))),
    "length0": Method((), lambda run, text: _number(run, len(text))),
    "isEmpty0": Method((), lambda run, text: _truth(run, not text)),
    "equals1": Method((object,), lambda run, text, other: _truth(run, text == other), takes_none=True),
    "compareTo1": Method((str,), _compare),
    "trim0": Method((), lambda run, text: new_text(run, text.strip(_SPACE))),
}


def _first_text(arguments: list[Value]) -> str | None:
    if not arguments:
        raise illegal_argument("Invalid empty input args for String.format method")
    if not isinstance(arguments[0], Text):
        raise class_cast(arguments[0].java_class, "SelString")
    return arguments[0].val


def _format(run: Run, arguments: list[Value]) -> Value:
    pattern = _first_text(arguments)
    # An array is one argument, not several.
    given = [_format_argument(run, value) for value in arguments[1:]]
    if pattern is None:
        raise null_pointer("the format is null")
    try:
        return new_text(run, to_units(format_java(run, pattern, given)))
    except FormatFailed as error:
        raise ExpressionFailed(str(error), kind=error.kind) from error


def _format_argument(run: Run, value: Value) -> Any:
    if isinstance(value, Map):
        unbox(run, value)
    content = argument(value)
    if content is None or isinstance(content, str | bool | int | float):
        return content
    return Shown(java_array(value) if isinstance(value, Array) else appended(run, value))


def _join(run: Run, arguments: list[Value]) -> Value:
    separator = _first_text(arguments)
    match arguments[1:]:
        case [Array() as array]:
            elements = array.val
            if array.type is not ResultType.STRING_ARRAY:
                raise class_cast(array.type, "java.lang.String[]")
        case rest:
            elements = rest
    parts: list[str] = []
    for element in elements:
        if not isinstance(element, Text):
            raise class_cast(element.java_class, "SelString")
        parts.append("null" if element.val is None else element.val)
    if separator is None:
        raise null_pointer("the separator is null")
    run.check_room(2 * (sum(map(len, parts)) + len(separator) * len(parts)))
    return new_text(run, separator.join(parts))


def _escape(run: Run, value: Text, arguments: list[Value]) -> Value:
    match arguments:
        case []:
            text = value.val
        case [Text() as other]:
            text = "null" if other.val is None else other.val
        case _:
            raise illegal_argument("Invalid input args for String.escape method")
    if text is None:
        raise null_pointer("the string is null")
    run.check_room(2 * len(text))
    for character, escaped in _ESCAPES:
        text = text.replace(character, escaped)
    return new_text(run, text)
