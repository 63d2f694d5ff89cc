"""The exceptions of Joda-Time as one error, and the checked arithmetic that raises it."""

from calve.expressions.java import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN


class JodaError(Exception):
    """A date-time, zone or pattern is invalid; ``kind`` is the simple name of Java's exception."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message

    def __str__(self) -> str:
        return self.message


class InstantMissing(JodaError):
    """The local time falls into a gap of its zone.

    Setting a field raises it as an IllegalFieldValueException. Joda-Time distinguishes it from a value out of range by
    the cause of the exception, this port by the class.
    """


def out_of_range(field: str, value: int, lowest: int, highest: int, explanation: str = "") -> JodaError:
    """Return the error of a field's value that is out of range."""
    message = f"Value {value} for {field} must be in the range [{lowest},{highest}]{explanation}"
    return JodaError("IllegalFieldValueException", message)


def invalid_format(text: str, position: int) -> JodaError:
    """Return the error of a text that is invalid from ``position`` on, with a sample of it."""
    sample = text if len(text) <= position + 35 else f"{text[: position + 32]}..."
    if position <= 0:
        message = f'Invalid format: "{sample}"'
    elif position >= len(text):
        message = f'Invalid format: "{sample}" is too short'
    else:
        message = f'Invalid format: "{sample}" is malformed at "{sample[position:]}"'
    return JodaError("IllegalArgumentException", message)


def is_long(value: int) -> bool:
    """Return whether a value fits in 64 bits."""
    return LONG_MIN <= value <= LONG_MAX


def sum_of(left: int, right: int) -> int:
    """Add two longs, or raise if the sum overflows."""
    if is_long(total := left + right):
        return total
    raise JodaError("ArithmeticException", f"The calculation caused an overflow: {left} + {right}")


def difference_of(left: int, right: int) -> int:
    """Subtract a long from another, or raise if the difference overflows."""
    if is_long(total := left - right):
        return total
    raise JodaError("ArithmeticException", f"The calculation caused an overflow: {left} - {right}")


def product_of(left: int, right: int) -> int:
    """Multiply two longs, or raise if the product overflows."""
    if is_long(total := left * right):
        return total
    raise JodaError("ArithmeticException", f"Multiplication overflows a long: {left} * {right}")


def int_of(value: int) -> int:
    """Return a value, or raise if it does not fit in 32 bits."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise JodaError("ArithmeticException", f"Value cannot fit in an int: {value}")


def quotient_of(dividend: int, divisor: int) -> int:
    """Divide as Java does, towards zero; the divisor is positive."""
    return dividend // divisor if dividend >= 0 else -(-dividend // divisor)
