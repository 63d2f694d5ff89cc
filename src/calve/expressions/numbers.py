"""The methods of numbers, and of ``Math``."""

import random

from calve.expressions.failures import class_cast, illegal_argument, null_pointer, number_format
from calve.expressions.java import doubles, longs
from calve.expressions.meter import Run
from calve.expressions.operators import new_text, number_in
from calve.expressions.rendering import told
from calve.expressions.values import Double, Long, MathClass, Text, Value


def new_long(run: Run, number: int) -> Long:
    """Return a new whole number."""
    run.charge()
    return Long(number)


def long_in(run: Run, text: Text) -> Long:
    """Return the whole number that a text is.

    Raises:
        ExpressionFailed: it is none.
    """
    number = None if text.val is None else longs.parse_long(text.val)
    if number is None:
        reason = "Cannot parse null string" if text.val is None else f'For input string: "{text.val[:100]}"'
        raise number_format(reason)
    return new_long(run, number)


def double_in(run: Run, text: Text) -> Double:
    """Return the number that a text is.

    Raises:
        ExpressionFailed: it is none.
    """
    if text.val is None:
        raise null_pointer("a text that holds nothing is no number")
    run.tick(len(text.val))
    number = doubles.parse_double(text.val)
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
            raise illegal_argument(f"Invalid input argument ({told(run, value)}) for Long constructor")


def long_of(value: Value) -> Long:
    """Return a whole number, or refuse what is none."""
    if isinstance(value, Long):
        return value
    raise class_cast(value.java_class, "SelLong")


def text_of(value: Value) -> Text:
    """Return a text, or refuse what is none."""
    if isinstance(value, Text):
        return value
    raise class_cast(value.java_class, "SelString")


def call_long(run: Run, value: Long, name: str, arguments: list[Value]) -> Value | None:
    """Return what a method gives, or None if there is no such method."""
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
    """Return what a method gives, or None if there is no such method."""
    match name, arguments:
        case "toString", []:
            return new_text(run, doubles.double_text(value.val))
        case "toString", [other]:
            if not isinstance(other, Double):
                raise class_cast(other.java_class, "SelDouble")
            return new_text(run, doubles.double_text(other.val))
        case "valueOf", [Text() as text]:
            return double_in(run, text)
        case "valueOf", [Double() as other]:
            run.charge()
            return Double(other.val)
        case "parseDouble", [text]:
            return double_in(run, text_of(text))
        case (("intValue" | "longValue"), []):
            return new_long(run, doubles.to_long(value.val))
        case _:
            return None


def call_math(run: Run, _: MathClass, name: str, arguments: list[Value]) -> Value | None:
    """Return what a function of ``Math`` gives, or None if there is no such function."""
    match name, arguments:
        case "min", [one, other]:
            return new_long(run, min(long_of(one).val, long_of(other).val))
        case "max", [one, other]:
            return new_long(run, max(long_of(one).val, long_of(other).val))
        case "pow", [base, exponent]:
            power = doubles.power(number_in(base), number_in(exponent))
            run.charge()
            return Double(power)
        case "random", []:
            run.charge()
            return Double(random.random())  # noqa: S311 - expressions are promised no secrets
        case _:
            return None
