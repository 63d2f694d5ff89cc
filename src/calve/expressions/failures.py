"""The ways in which an expression fails, each with the name that Maestro's users know."""

from calve.errors import ExpressionFailed, LimitReached


def unsupported(message: str) -> ExpressionFailed:
    """Return the failure of something that the language does not offer."""
    return ExpressionFailed(message, kind="UnsupportedOperationException")


def illegal_argument(message: str) -> ExpressionFailed:
    """Return the failure of a value that does not fit."""
    return ExpressionFailed(message, kind="IllegalArgumentException")


def null_pointer(message: str) -> ExpressionFailed:
    """Return the failure of an object that holds nothing."""
    return ExpressionFailed(message, kind="NullPointerException")


def number_format(message: str) -> ExpressionFailed:
    """Return the failure of a text that is not a number."""
    return ExpressionFailed(message, kind="NumberFormatException")


def out_of_bounds(message: str) -> ExpressionFailed:
    """Return the failure of an index that an array does not have."""
    return ExpressionFailed(message, kind="ArrayIndexOutOfBoundsException")


def class_cast(actual: str, wanted: str) -> ExpressionFailed:
    """Return the failure of a value that is of the wrong class."""
    return ExpressionFailed(f"class {actual} cannot be cast to class {wanted}", kind="ClassCastException")


def type_mismatch(left: str, right: str) -> ExpressionFailed:
    """Return the failure of an assignment or comparison between two types."""
    return illegal_argument(f"Type mismatch, lhs type: {left}, rhs object type: {right}")


def too_deep(what: str) -> ExpressionFailed:
    """Return the failure of something that holds itself, or nests without an end."""
    return ExpressionFailed(f"{what} is nested too deeply", kind="StackOverflowError")


def too_many_visits(limit: int) -> LimitReached:
    """Return the end of an evaluation that took too many steps."""
    return LimitReached(
        f"SEL evaluation aborted as it takes too many operations over the limit {limit}", kind="IllegalStateException"
    )


def too_much_memory(limit: int) -> LimitReached:
    """Return the end of an evaluation that made too much."""
    return LimitReached(
        f"SEL evaluation aborted as it takes too much memory (in byte) over the limit {limit}",
        kind="IllegalStateException",
    )


def too_many_iterations(limit: int) -> LimitReached:
    """Return the end of an evaluation whose loop went on for too long."""
    return LimitReached(
        f"Loop execution aborted as the iteration is over the loop limit {limit}", kind="IllegalStateException"
    )


def too_long_array(limit: int, length: int) -> LimitReached:
    """Return the end of an evaluation that asked for too long an array."""
    return LimitReached(
        f"New array size is over the limit: {limit} vs length: {length}", kind="IllegalArgumentException"
    )


def stack_overflow(limit: int) -> LimitReached:
    """Return the end of an evaluation that held too many values at once."""
    return LimitReached(
        f"Index {limit} out of bounds for length {limit}: too many values are held at once",
        kind="ArrayIndexOutOfBoundsException",
    )


def too_much_time(seconds: float) -> LimitReached:
    """Return the end of an evaluation that took too long."""
    return LimitReached(f"SEL evaluation aborted as it takes longer than {seconds} seconds", kind="TimeoutException")


def too_long_text(limit: int) -> LimitReached:
    """Return the end of an evaluation that grew a text beyond all measure."""
    return LimitReached(f"SEL evaluation aborted as its texts take more than {limit} bytes", kind="OutOfMemoryError")


def too_long_search(limit: int) -> LimitReached:
    """Return the end of an evaluation whose regular expressions tried too much."""
    return LimitReached(
        f"SEL evaluation aborted as its regular expressions take more than {limit} steps",
        kind="IllegalStateException",
    )
