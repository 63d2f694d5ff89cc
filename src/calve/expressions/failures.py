"""The errors of an evaluation, each with the kind that Maestro gives it."""

from calve.errors import ExpressionFailed, LimitReached


def unsupported(message: str) -> ExpressionFailed:
    """Return the error of an operation that the language does not have."""
    return ExpressionFailed(message, kind="UnsupportedOperationException")


def illegal_argument(message: str) -> ExpressionFailed:
    """Return the error of an argument that is not allowed."""
    return ExpressionFailed(message, kind="IllegalArgumentException")


def null_pointer(message: str) -> ExpressionFailed:
    """Return the error of a null where a value is needed."""
    return ExpressionFailed(message, kind="NullPointerException")


def number_format(message: str) -> ExpressionFailed:
    """Return the error of a text that is not a number."""
    return ExpressionFailed(message, kind="NumberFormatException")


def out_of_bounds(message: str) -> ExpressionFailed:
    """Return the error of an array index that is out of range."""
    return ExpressionFailed(message, kind="ArrayIndexOutOfBoundsException")


def class_cast(actual: str, wanted: str) -> ExpressionFailed:
    """Return the error of a value of the wrong class."""
    return ExpressionFailed(f"class {actual} cannot be cast to class {wanted}", kind="ClassCastException")


def type_mismatch(left: str, right: str) -> ExpressionFailed:
    """Return the error of an assignment or comparison between two types."""
    return illegal_argument(f"Type mismatch, lhs type: {left}, rhs object type: {right}")


def too_deep(what: str) -> ExpressionFailed:
    """Return the error of a value that contains itself, or is nested too deeply."""
    return ExpressionFailed(f"{what} is nested too deeply", kind="StackOverflowError")


def too_many_visits(limit: int) -> LimitReached:
    """Return the error of an evaluation that takes too many steps."""
    return LimitReached(
        f"SEL evaluation aborted as it takes too many operations over the limit {limit}", kind="IllegalStateException"
    )


def too_much_memory(limit: int) -> LimitReached:
    """Return the error of an evaluation that takes too much memory."""
    return LimitReached(
        f"SEL evaluation aborted as it takes too much memory (in byte) over the limit {limit}",
        kind="IllegalStateException",
    )


def too_many_iterations(limit: int) -> LimitReached:
    """Return the error of a loop with too many iterations."""
    return LimitReached(
        f"Loop execution aborted as the iteration is over the loop limit {limit}", kind="IllegalStateException"
    )


def too_long_array(limit: int, length: int) -> LimitReached:
    """Return the error of an array that is too long."""
    return LimitReached(
        f"New array size is over the limit: {limit} vs length: {length}", kind="IllegalArgumentException"
    )


def stack_overflow(limit: int) -> LimitReached:
    """Return the error of an evaluation with too many values on its stack."""
    return LimitReached(
        f"Index {limit} out of bounds for length {limit}: too many values are held at once",
        kind="ArrayIndexOutOfBoundsException",
    )


def too_much_time(seconds: float) -> LimitReached:
    """Return the error of an evaluation that takes too long."""
    return LimitReached(f"SEL evaluation aborted as it takes longer than {seconds} seconds", kind="TimeoutException")


def too_long_text(limit: int) -> LimitReached:
    """Return the error of texts that grow without end."""
    return LimitReached(f"SEL evaluation aborted as its texts take more than {limit} bytes", kind="OutOfMemoryError")


def too_long_search(seconds: float) -> LimitReached:
    """Return the error of regular expressions that take too long."""
    return LimitReached(
        f"SEL evaluation aborted as its regular expressions take longer than {seconds} seconds",
        kind="IllegalStateException",
    )


def too_large_search(limit: int) -> LimitReached:
    """Return the error of a regular expression that searches too long a text."""
    return LimitReached(
        f"SEL evaluation aborted as a regular expression searches more than {limit} characters",
        kind="IllegalStateException",
    )
