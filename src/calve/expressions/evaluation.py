"""Evaluating an expression: the language as it is, and as Maestro offers it to its users."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from calve.errors import ExpressionError, ExpressionFailed, ExpressionThrew
from calve.expressions.boxing import unbox
from calve.expressions.failures import too_deep, too_much_memory
from calve.expressions.limits import Clock, Limits, system_millis
from calve.expressions.meter import ParamFunctions, Run
from calve.expressions.program import Program, parse
from calve.expressions.text import from_units
from calve.expressions.values import SIMPLE_ARRAYS, ResultType, Thrown, Value

_DEFAULT_LIMITS = Limits()
_SPACE = "".join(map(chr, range(33)))
_RESULT_TYPES = SIMPLE_ARRAYS | {
    ResultType.STRING,
    ResultType.LONG,
    ResultType.DOUBLE,
    ResultType.BOOLEAN,
    ResultType.MAP,
}
_INVALID = "MaestroInvalidExpressionException"


@dataclass(frozen=True, slots=True)
class Result:
    """What an expression gave: a value in plain Python, and the type that it has in the language.

    A moment is its ISO text; what has no plain value is None. ``visits`` and ``memory`` are what it took.
    """

    type: ResultType
    value: Any
    visits: int = 0
    memory: int = 0


def evaluate(
    program: Program | str,
    params: Mapping[str, Any],
    *,
    limits: Limits = _DEFAULT_LIMITS,
    functions: ParamFunctions | None = None,
    clock: Clock = system_millis,
) -> Result:
    """Return what a program gives. ``params`` stay as they are.

    Raises:
        ExpressionError: it gives nothing; never anything else, whatever the program and the parameters.
    """
    run, value = _run(program, params, limits, functions, clock)
    if isinstance(value, Thrown):
        message = "null" if value.val is None else from_units(value.val)
        raise ExpressionThrew(f"ERROR: {message}", kind="ERROR")
    return _result(run, value)


def _run(
    program: Program | str, params: Mapping[str, Any], limits: Limits, functions: ParamFunctions | None, clock: Clock
) -> tuple[Run, Value]:
    if isinstance(program, str):
        program = parse(program, length=limits.length)
    if program.tree.memory >= limits.memory:
        raise too_much_memory(limits.memory)
    with _guarded(limits):
        compiled = program.compiled(limits.stack)
        run = Run(compiled.names, compiled.literals, params, limits=limits, functions=functions, clock=clock)
        return run, compiled.run(run)


def _result(run: Run, value: Value) -> Result:
    limits = run.limits
    with _guarded(limits):
        return Result(value.type, unbox(run, value), limits.visit - run.steps, limits.memory - run.room)


@contextmanager
def _guarded(limits: Limits) -> Iterator[None]:
    """Turn what Python itself may run out of into an error of ours."""
    try:
        yield
    except RecursionError:
        raise too_deep("the expression") from None
    except MemoryError:
        raise too_much_memory(limits.memory) from None


def evaluate_text(
    text: str,
    params: Mapping[str, Any],
    *,
    limits: Limits = _DEFAULT_LIMITS,
    functions: ParamFunctions | None = None,
    clock: Clock = system_millis,
) -> Result:
    """Return what an expression of a workflow gives: its last ``;`` may be missing, and not every type will do.

    Raises:
        ExpressionError: it gives nothing, or nothing that a parameter can hold.
    """
    try:
        run, value = _run(complete(text), params, limits, functions, clock)
    except ExpressionError as error:
        if error.kind == "TimeoutException":
            raise _internal(text, error) from error
        raise type(error)(
            f"Expression evaluation throws an exception for expr=[{text}]: {error.kind}: {error.message}",
            kind=_INVALID,
            cause=error.kind,
        ) from error
    if isinstance(value, Thrown):
        message = "null" if value.val is None else from_units(value.val)
        raise ExpressionThrew(f"Expression throws an error [ERROR: {message}] for expr=[{text}]", kind=_INVALID)
    if value.type not in _RESULT_TYPES:
        raise ExpressionFailed(f"Invalid return type [{value.type}] for expr=[{text}]", kind=_INVALID)
    try:
        return _result(run, value)
    except ExpressionError as error:
        raise _internal(text, error) from error


def _internal(text: str, error: ExpressionError) -> ExpressionError:
    return type(error)(
        f"Expression evaluation is failed with an exception for expr=[{text}]: {error.kind}: {error.message}",
        kind="MaestroInternalError",
        cause=error.kind,
    )


def complete(text: str) -> str:
    """Return an expression with the ``;`` that may be left out at its end."""
    trimmed = text.strip(_SPACE)
    if not trimmed or trimmed.endswith(";") or (trimmed.endswith("}") and not trimmed.startswith('{"')):
        return trimmed
    return f"{trimmed};"
