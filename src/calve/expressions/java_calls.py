"""Methods that Maestro hands on to a Java object: whatever goes wrong inside is one failure, that names the method."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from calve.errors import ExpressionFailed
from calve.expressions.boxing import argument
from calve.expressions.failures import illegal_argument
from calve.expressions.java.regex import PatternInvalid
from calve.expressions.joda.errors import JodaError
from calve.expressions.meter import Run
from calve.expressions.values import Value


@dataclass(frozen=True, slots=True)
class Method:
    """A method: the classes of its arguments, and what it does. Both None and a wrong class are refused."""

    parameters: tuple[type, ...]
    invoke: Callable[..., Value]
    takes_none: bool = False


@contextmanager
def inside_java(name: str) -> Iterator[None]:
    """Turn any failure of a method into the one that Maestro gives, except that a limit stays what it is."""
    try:
        yield
    except (ExpressionFailed, JodaError, PatternInvalid) as error:
        raise illegal_argument(f"Failed calling method {name}: {error}") from error


@contextmanager
def inside_joda() -> Iterator[None]:
    """Turn a failure of the date library into one of ours, with the same name."""
    try:
        yield
    except JodaError as error:
        raise ExpressionFailed(str(error), kind=error.kind) from error


def invoke(run: Run, method: Method, name: str, content: Any, arguments: list[Value]) -> Value:
    """Call a method of an object that is not null."""
    with inside_java(name):
        given = [argument(value) for value in arguments]
        for value, class_ in zip(given, method.parameters, strict=True):
            if value is None and not method.takes_none:
                raise illegal_argument("an argument is null")
            if value is not None and not _is_a(value, class_):
                raise illegal_argument(f"{type(value).__name__} is not a {class_.__name__}")
        return method.invoke(run, content, *given)


def _is_a(value: object, class_: type) -> bool:
    if class_ is int:
        # A number that is too large for 32 bits is of another class in Java.
        return type(value) is int and value < 2**31
    return isinstance(value, class_)
