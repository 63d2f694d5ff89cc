"""The methods of numbers, and of ``Math``."""

import random

from calve.expressions.failures import class_cast, illegal_argument, null_pointer, number_format
from calve.expressions.java import double_text, double_to_long, parse_double, parse_long, power
from calve.expressions.limits import Run
from calve.expressions.operators import new_text, number_in
from calve.expressions.text import brief_text
from calve.expressions.values import Double, Long, MathClass, Text, Value


def new_long(run: Run, number: int) -> Long:
    """Return a new whole number."""
    run.charge()
    return Long(number)


def long_in(run: Run, text: Text) -> Long:
    """Parse a text as a whole number.

    Raises:
        ExpressionFailed: it is not a number.
    """
    number = None if text.val is None else parse_long(text.val)
    if number is None:
        reason = "Cannot parse null string" if text.val is None else f'For input string: "{text.val[:100]}"'
        raise number_format(reason)
    return new_long(run, number)


def double_in(run: Run, text: Text) -> Double:
    """Parse a text as a floating-point number.

    Raises:
        ExpressionFailed: it is not a number.
    """
    if text.val is None:
        raise null_pointer("the text is null")
    run.tick(len(text.val))
    number = parse_double(text.val)
    if number is None:
        raise number_format(f'For input string: "{text.val[:100]}"' if text.val.strip() else "empty String")
    run.charge()
    return Double(number)


def create_long(run: Run, value: Value) -> Long:
    """Return ``new Long(value)``."""
    match value:
        case Long():
            return new_long(run, value.val)
        case Text():
            return long_in(run, value)
        case _:
            raise illegal_argument(f"Invalid input argument ({brief_text(run, value)}) for Long constructor")


def long_of(value: Value) -> Long:
    """Return a value that has to be a Long."""
    if isinstance(value, Long):
        return value
    raise class_cast(value.java_class, "SelLong")


def text_of(value: Value) -> Text:
    """Return a value that has to be a String."""
    if isinstance(value, Text):
        return value
    raise class_cast(value.java_class, "SelString")


def call_long(run: Run, value: Long, name: str, arguments: list[Value]) -> Value | None:
    """Call a method and return its result; None if the method does not exist."""
    match name, arguments:
        case "toString", []:
            return new_text(run, str(value.val))
        case "toString", [other]:
            return new_text(run, str(long_of(other).val))
        case "valueOf", [Text() as text]:
            return long_in(run, text)
        case "valueOf", [Long() as other]:
            return new_long(run, other.val)
        case "parseLong", [text]:
            return long_in(run, text_of(text))
        case "intValue", []:
            return new_long(run, value.val)
        case _:
            return None


def call_double(run: Run, value: Double, name: str, arguments: list[Value]) -> Value | None:
    """Call a method and return its result; None if the method does not exist."""
    match name, arguments:
        case "toString", []:
            return new_text(run, double_text(value.val))
        case "toString", [other]:
            if not isinstance(other, Double):
                raise class_cast(other.java_class, "SelDouble")
            return new_text(run, double_text(other.val))
        case "valueOf", [Text() as text]:
            return double_in(run, text)
        case "valueOf", [Double() as other]:
            run.charge()
            return Double(other.val)
        case "parseDouble", [text]:
            return double_in(run, text_of(text))
        case (("intValue" | "longValue"), []):
            return new_long(run, double_to_long(value.val))
        case _:
            return None


def call_math(run: Run, _: MathClass, name: str, arguments: list[Value]) -> Value | None:
    """Call a function of ``Math`` and return its result; None if the function does not exist."""
    match name, arguments:
        case "min", [one, other]:
            return new_long(run, min(long_of(one).val, long_of(other).val))
        case "max", [one, other]:
            return new_long(run, max(long_of(one).val, long_of(other).val))
        case "pow", [base, exponent]:
            result = power(number_in(base), number_in(exponent))
            run.charge()
            return Double(result)
        case "random", []:
            run.charge()
            return Double(random.random())  # noqa: S311 - expressions are promised no secrets
        case _:
            return None
