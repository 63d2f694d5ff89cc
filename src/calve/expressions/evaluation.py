"""Parse and evaluate expressions: whole programs, or the simplified form that workflows use."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from calve.errors import ExpressionError, ExpressionFailed, ExpressionInvalid, ExpressionThrew, LimitReached
from calve.expressions.conversion import unbox
from calve.expressions.failures import too_deep, too_much_memory
from calve.expressions.limits import Clock, Limits, ParamFunctions, Run, system_millis
from calve.expressions.parser import parse_tree
from calve.expressions.statement_compiler import Compiled, compile_tree
from calve.expressions.text import from_units, to_units, without_lone_surrogates
from calve.expressions.tree import Tree
from calve.expressions.values import SIMPLE_ARRAYS, ResultType, Thrown, Value

_STACKS_KEPT = 4
_LONGEST_REMEMBERED = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A parsed expression. Any number of threads can evaluate it, any number of times."""

    text: str
    tree: Tree = field(repr=False)
    _compiled: dict[int, Compiled] = field(default_factory=dict, repr=False)

    def compiled(self, stack: int) -> Compiled:
        """Return the program compiled for a maximum depth of the stack."""
        found = self._compiled.get(stack)
        if found is None:
            found = compile_tree(self.tree, stack)
            if len(self._compiled) < _STACKS_KEPT:
                self._compiled[stack] = found
        return found


def parse(text: str, *, length: int = 10_000) -> Program:
    """Parse an expression.

    Raises:
        LimitReached: the text has ``length`` characters or more.
        ExpressionInvalid: the text is not a valid expression.
    """
    if len(text) >= length or len(to_units(text)) >= length:
        raise LimitReached(
            f"Expression length is over the limit: {length} vs length: {len(to_units(text[:length]))}",
            kind="IllegalArgumentException",
        )
    return _remembered(text) if len(text) <= _LONGEST_REMEMBERED else _parse(text)


def _parse(text: str) -> Program:
    try:
        return Program(text, parse_tree(without_lone_surrogates(text)))
    except RecursionError:
        raise ExpressionInvalid("The expression is nested too deeply", kind="StackOverflowError") from None


# Long texts are not cached: they are rare, and a thousand hostile ones would take a gigabyte.
_remembered = lru_cache(maxsize=1_024)(_parse)


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
    """The result of an expression: a plain Python value, and its type in the language.

    A DateTime is its ISO text; a value without a Python equivalent is None. ``visits`` and ``memory`` are its cost.
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
    """Evaluate a program. ``params`` are not changed.

    Raises:
        ExpressionError: the evaluation failed. No other exception is raised, whatever the program and the parameters.
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
    """Turn Python's RecursionError and MemoryError into expression errors."""
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
    """Evaluate an expression of a workflow: its last ``;`` may be missing, and only some result types are allowed.

    Raises:
        ExpressionError: the evaluation failed, or a parameter cannot hold the result.
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
    """Return an expression with the final ``;`` that users may leave out."""
    trimmed = text.strip(_SPACE)
    if not trimmed or trimmed.endswith(";") or (trimmed.endswith("}") and not trimmed.startswith('{"')):
        return trimmed
    return f"{trimmed};"
