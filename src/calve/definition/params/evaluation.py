"""Evaluate params: each once, after those that it refers to."""

import json
from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from calve.definition.model import BooleanParam, MapParam, Param, Params
from calve.definition.params.casts import NESTING, cast
from calve.definition.params.interpolation import (
    SIZE_LIMIT,
    braced_text,
    evaluate_literal,
    interpolate,
    line_and_column,
    literal_references,
    literal_texts,
    reference_index,
    references,
    unresolved_index,
)
from calve.definition.params.parameter import Parameter, values_of
from calve.definition.params.scopes import Known, Own, Reader, Scope, StepScope, WorkflowScope
from calve.definition.params.secrets import SecretText, holds_secret
from calve.errors import ExpressionError, ParamError
from calve.expressions import Clock, Limits, ParamFunctions, complete, evaluate_text, inputs, parse, system_millis

_PARAMS = "params"


@dataclass(frozen=True, slots=True)
class Language:
    """How expressions are evaluated: the functions that they can call, their limits, and the clock."""

    functions: ParamFunctions | None = None
    limits: Limits = field(default_factory=Limits)
    clock: Clock = system_millis
    until: int | None = None
    """The deadline of all of them together; if it is not given, each has the full time limit."""

    def allowed(self) -> Limits:
        """Return the limits of the next one."""
        if self.until is None:
            return self.limits
        left = max(0, self.until - self.clock()) / 1_000
        return replace(self.limits, seconds=min(left, self.limits.seconds))


PLAIN = Language()
"""Without functions, within the usual limits."""


def evaluate_workflow_params(params: Params, *, workflow_id: str, language: Language = PLAIN) -> dict[str, Parameter]:
    """Return the params of a workflow instance with their results.

    Raises:
        ParamError: a param refers to nothing or to itself, does not fit its type, or is too large.
        ExpressionError: an expression failed.
    """
    return _Evaluation(params, WorkflowScope(workflow_id), language).all()


def evaluate_step_params(
    params: Params,
    *,
    scope: StepScope,
    language: Language = PLAIN,
    known: Mapping[str, Parameter] | None = None,
) -> dict[str, Parameter]:
    """Return the params of a step with their results, after those already ``known``.

    Raises:
        ParamError: a param refers to nothing or to itself, does not fit its type, or is too large.
        ExpressionError: an expression failed.
    """
    return {**(known or {}), **_Evaluation(params, scope, language, known).all()}


def evaluate_in_step(
    name: str, definition: Param, *, own: Mapping[str, Parameter], scope: StepScope, language: Language = PLAIN
) -> Parameter:
    """Return the result of another definition, such as a signal's, that sees the evaluated params of a step.

    Raises:
        ParamError: it refers to nothing, or does not fit its type.
        ExpressionError: its expression failed.
    """
    return _Evaluation({name: definition}, scope, language, own).all()[name]


def evaluate_before_step(
    name: str,
    definition: Param,
    *,
    params: Params,
    scope: StepScope,
    language: Language = PLAIN,
    known: Mapping[str, Parameter] | None = None,
) -> Parameter:
    """Return the result of another definition, and evaluate only the params of the step that it needs.

    Raises:
        ParamError: it refers to nothing, or does not fit its type.
        ExpressionError: its expression failed.
    """
    return _Evaluation({**params, name: definition}, scope, language, known).one(name)


def evaluate_condition(
    expression: str, *, own: Mapping[str, Parameter], scope: StepScope, language: Language = PLAIN
) -> bool:
    """Tell whether the condition of an edge or a loop holds, given the params of a step and its workflow.

    Raises:
        ParamError: it refers to nothing, or is neither true nor false.
        ExpressionError: it failed.
    """
    definition = BooleanParam(expression=expression)
    result: bool = evaluate_in_step("condition", definition, own=own, scope=scope, language=language).result
    return result


@dataclass(frozen=True, slots=True)
class FileText:
    """The text of a file that a step reads, and where the step names it."""

    text: str
    file: str
    """The path, as the step gives it."""
    field: str
    """The field that gives it, such as ``spark.file``."""

    def at(self, index: int) -> str:
        """Return the position of a character as editors write it."""
        line, column = line_and_column(self.text, index)
        return f"{self.file}:{line}:{column}"


def evaluate_file(
    file: FileText, *, own: Mapping[str, Parameter], scope: StepScope, language: Language = PLAIN
) -> str | SecretText:
    """Return the text of a file with its references replaced, as if it were written in the field that names it.

    Args:
        file: the text, which may be longer than a param may be.
        own: the params of the step, with their results.
        scope: what else the references may mean.
        language: gives access to signals.

    Raises:
        ParamError: a reference is unknown or has no value, or a ``${`` is not a reference; with file, line and column.
    """
    unresolved = unresolved_index(file.text)
    if unresolved is not None:
        raise unresolved_reference(file.at(unresolved), file.text, unresolved)
    # Later params of the step have no value yet when this one is evaluated, so the workflow's are used.
    after = _after(file.field.partition(".")[0], own)
    known = {name: param for name, param in own.items() if name not in after or name not in scope.workflow}
    evaluation = _Evaluation({}, scope, language, known)
    values = {name: evaluation.value_in(file, name) for name in references(file.text)}
    return interpolate(file.text, values, SIZE_LIMIT + len(file.text))


def _after(name: str, params: Mapping[str, Parameter]) -> frozenset[str]:
    names = list(params)
    return frozenset(names[names.index(name) + 1 :] if name in params else ())


def unresolved_reference(where: str, text: str, index: int) -> ParamError:
    """Return the error about a ``${`` that is not a reference."""
    return ParamError(
        f"{where}: {braced_text(text, index)} is not a reference",
        remedy="Write ${name} with the name of a param or of a step's output. For the characters ${ write $${.",
    )


@dataclass(slots=True)
class _Frame:
    """A param whose references are being looked up."""

    name: str
    param: Param
    needs: tuple[str, ...]
    values: dict[str, Any] = field(default_factory=dict)


class _Evaluation:
    """Evaluates params after those that they need; with its own stack, so that long chains do not overflow."""

    def __init__(
        self, params: Params, scope: Scope, language: Language, before: Mapping[str, Parameter] | None = None
    ) -> None:
        self._params = params
        self._scope = scope
        self._language = language
        self._done: dict[str, Parameter] = {}
        self._evaluated = ChainMap(self._done, dict(before or {}))
        self._outer = values_of(scope.outer)
        self._size = 1
        self._guessed = 0
        self._light: list[Parameter] = []

    def one(self, name: str) -> Parameter:
        """Return one param, and evaluate only what it needs."""
        self._evaluate(name)
        return self._done[name]

    def all(self) -> dict[str, Parameter]:
        """Return all params, in the order of their definitions."""
        for name in self._params:
            if name not in self._done:
                self._evaluate(name)
        return {name: self._done[name] for name in self._params}

    def _evaluate(self, first: str) -> None:
        stack = {first: self._frame(first)}
        while stack:
            name = next(reversed(stack))
            needed = self._look_up(stack[name])
            if needed is None:
                self._finish(stack.pop(name))
            elif needed in stack:
                raise self._cycle([*stack, needed])
            else:
                stack[needed] = self._frame(needed)

    def _frame(self, name: str) -> _Frame:
        with _naming(name):
            return _Frame(name, self._params[name], tuple(dict.fromkeys(needs(self._params[name]))))

    def _look_up(self, frame: _Frame) -> str | None:
        """Look up what a param refers to; return a param that must be evaluated first, if there is one."""
        with _naming(frame.name):
            for name in frame.needs[len(frame.values) :]:
                with _placing(frame.param, frame.name, name):
                    found = self._find(name, frame.name)
                if isinstance(found, Own):
                    if found.name not in self._evaluated:
                        return found.name
                    frame.values[name] = self._evaluated[found.name].result
                else:
                    frame.values[name] = found.value
        return None

    def _find(self, name: str, reader: str) -> Own | Known:
        return self._scope.find(name, Reader(reader, self._params, self._evaluated, self._language.functions))

    def value_in(self, file: FileText, name: str) -> Any:
        """Return the value of a name to which a file refers."""
        place = file.at(reference_index(file.text, name) or 0)
        try:
            found = self._find(name, file.field)
        except ParamError as error:
            raise ParamError(
                f"{place}: {error.message}", remedy=error.remedy, **{**error.context, "param": file.field}
            ) from error
        value = self._evaluated[found.name].result if isinstance(found, Own) else found.value
        if value is None:
            raise ParamError(f"{place}: param [{name}] has no value", param=file.field, reference=name)
        return value

    def _finish(self, frame: _Frame) -> None:
        with _naming(frame.name):
            fitting = cast(frame.name, frame.param.type, self._result(frame.name, frame.param, frame.values))
            done = Parameter(frame.name, frame.param, fitting.value, self._language.clock(), fitting.note)
            self._weigh(done)
        self._done[frame.name] = done

    def _weigh(self, done: Parameter) -> None:
        """Refuse params whose total size is too large; it is measured exactly only near the limit."""
        self._light.append(done)
        self._guessed += 1_000 + 12 * (len(repr(done.result)) + len(done.definition.expression or ""))
        if self._size + self._guessed <= SIZE_LIMIT:
            return
        self._size += sum(_length(param) for param in self._light)
        self._light, self._guessed = [], 0
        if self._size > SIZE_LIMIT:
            raise ParamError(
                f"Parameters' total size [{self._size}] is larger than system limit [{SIZE_LIMIT}] "
                f"with param [{done.name}]",
                param=done.name,
            )

    def _result(self, name: str, param: Param, values: Mapping[str, Any]) -> Any:
        if param.expression is not None:
            named = {need: values[need] for need in _inputs(param.expression)}
            for need, value in named.items():
                _refuse_secret(need, value)
            readable = _Readable(named, self._outer)
            language = self._language
            return evaluate_text(
                param.expression,
                readable,
                limits=language.allowed(),
                functions=language.functions,
                clock=language.clock,
            ).value
        if isinstance(param, MapParam) and param.value is not None:
            return {
                key: cast(f"{name}.{key}", member.type, self._result(f"{name}.{key}", member, values)).value
                for key, member in param.value.items()
            }
        return evaluate_literal(param, values)

    def _cycle(self, names: list[str]) -> ParamError:
        around = names[names.index(names[-1]) :]
        return ParamError(
            f"In {self._scope.title}, param [{around[0]}] definition contains a cyclic reference chain: "
            f"{' → '.join(around)}",
            param=around[0],
            cycle=around,
        )


def _length(param: Parameter) -> int:
    return len(json.dumps({param.name: param.as_json()}, separators=(",", ":"), ensure_ascii=False)) - 1


class _Readable(ChainMap[str, Any]):
    """Values for an expression, which cannot read secrets."""

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        _refuse_secret(name, value)
        return value


def _refuse_secret(name: str, value: Any) -> None:
    if holds_secret(value):
        raise ParamError(
            f"Param [{name}] holds a secret and cannot be read in an expression",
            remedy=f"Refer to it in a text, as ${{{name}}}.",
            param=name,
        )


def needs(param: Param, depth: int = 0) -> Iterator[str]:
    """Yield the names that a param refers to, including the members of a MAP."""
    if depth > NESTING:
        raise ParamError(f"Maps are nested deeper than [{NESTING}]")
    if param.expression is not None:
        yield from _inputs(param.expression)
    elif isinstance(param, MapParam):
        for member in (param.value or {}).values():
            yield from needs(member, depth + 1)
    else:
        yield from literal_references(param)


def _inputs(expression: str) -> list[str]:
    try:
        return sorted(inputs(parse(complete(expression))) - {_PARAMS})
    except ExpressionError as error:
        raise type(error)(
            f"Expression validator throws an exception for expr=[{expression}]: {error.message}",
            kind="MaestroInvalidExpressionException",
            cause=error.kind,
        ) from error


@contextmanager
def _placing(param: Param, of: str, name: str) -> Iterator[None]:
    """Add field, line and column to an error about a reference, if that adds something."""
    try:
        yield
    except ParamError as error:
        for field_, text in literal_texts(param, of):
            index = reference_index(text, name)
            if index is not None and (field_ != of or "\n" in text):
                line, column = line_and_column(text, index)
                where = f"{field_}, line {line}, column {column}"
                raise ParamError(f"{error.message} ({where})", remedy=error.remedy, **error.context) from error
        raise


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Add the name of the param to every error."""
    try:
        yield
    except ParamError as error:
        if error.context.get("param") == name:
            raise
        raise ParamError(
            f"Param [{name}]: {error.message}", remedy=error.remedy, **{**error.context, "param": name}
        ) from error
    except ExpressionError as error:
        raise type(error)(
            f"Param [{name}]: {error.message}", remedy=error.remedy, **{**error.context, "param": name}
        ) from error
