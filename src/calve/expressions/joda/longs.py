"""Java's 64-bit integers, where Joda-Time lets them wrap or refuses to. Pure."""

from calve.expressions.joda.errors import JodaError

LONG_MIN = -(2**63)
LONG_MAX = 2**63 - 1
INT_MIN = -(2**31)
INT_MAX = 2**31 - 1

_RANGE = 2**64


def wrapped(value: int) -> int:
    """Return what is left of a value in 64 bits."""
    if LONG_MIN <= value <= LONG_MAX:
        return value
    return (value - LONG_MIN) % _RANGE + LONG_MIN


def is_long(value: int) -> bool:
    """Tell whether a value fits in 64 bits."""
    return LONG_MIN <= value <= LONG_MAX


def sum_of(left: int, right: int) -> int:
    """Add two longs, or raise that the sum is none."""
    if is_long(total := left + right):
        return total
    raise JodaError("ArithmeticException", f"The calculation caused an overflow: {left} + {right}")


def difference_of(left: int, right: int) -> int:
    """Subtract a long from another, or raise that the difference is none."""
    if is_long(total := left - right):
        return total
    raise JodaError("ArithmeticException", f"The calculation caused an overflow: {left} - {right}")


def product_of(left: int, right: int) -> int:
    """Multiply two longs, or raise that the product is none."""
    if is_long(total := left * right):
        return total
    raise JodaError("ArithmeticException", f"Multiplication overflows a long: {left} * {right}")


def int_of(value: int) -> int:
    """Return a value that fits in 32 bits, or raise that it does not."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise JodaError("ArithmeticException", f"Value cannot fit in an int: {value}")


def quotient_of(dividend: int, divisor: int) -> int:
    """Divide as Java does, towards zero; the divisor is positive."""
    return dividend // divisor if dividend >= 0 else -(-dividend // divisor)
