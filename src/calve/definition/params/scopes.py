"""Scopes: where the references of a param are looked up."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Protocol

from calve.definition.model import SEPARATOR
from calve.definition.params.interpolation import NOT_EVALUATED, step_reference, walk
from calve.definition.params.parameter import Parameter, values_of
from calve.errors import ExpressionError, ParamError
from calve.expressions import ParamFunctions

Params = Mapping[str, Parameter]


@dataclass(frozen=True, slots=True)
class Own:
    """A reference to a param of the same scope, which may have to be evaluated first."""

    name: str


@dataclass(frozen=True, slots=True)
class Known:
    """A reference with a known value."""

    value: Any


@dataclass(frozen=True, slots=True)
class Reader:
    """The param whose references are looked up, and what it can refer to in its own scope."""

    name: str
    declared: Collection[str]
    evaluated: Collection[str]
    functions: ParamFunctions | None

    def sees(self, name: str) -> bool:
        """Tell whether a name is that of a param of the same scope."""
        return name in self.declared or name in self.evaluated


class Scope(Protocol):
    """Looks up the references of its params."""

    @property
    def title(self) -> str:
        """Its name in messages."""
        ...

    @property
    def outer(self) -> Params:
        """The params that ``params.get`` can read besides those that the expression names."""
        ...

    def find(self, name: str, reader: Reader) -> Own | Known:
        """Return what ``name`` means to the param ``reader``.

        Raises:
            ParamError: it is unknown.
        """
        ...


@dataclass(frozen=True, slots=True)
class WorkflowScope:
    """The params of a workflow: they see each other, and the signals that started the instance."""

    workflow_id: str

    @property
    def title(self) -> str:
        """Its name in messages."""
        return f"workflow [{self.workflow_id}]"

    @property
    def outer(self) -> Params:
        """Empty: an expression of a workflow sees only what it names."""
        return {}

    def find(self, name: str, reader: Reader) -> Own | Known:
        """Return what ``name`` means to the param ``reader``."""
        if reader.sees(name):
            return Own(name)
        if SEPARATOR in name:
            return Known(_signal_param(name, *_split(name, ()), reader.functions))
        raise _not_found(reader, name, self.title)


@dataclass(frozen=True, slots=True)
class StepScope:
    """The params of a step: they see each other, the workflow's, and those of the steps before."""

    step_id: str
    workflow: Params = field(default_factory=dict)
    steps: Mapping[str, Params] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Its name in messages."""
        return f"step [{self.step_id}]"

    @property
    def outer(self) -> Params:
        """The workflow's."""
        return self.workflow

    def find(self, name: str, reader: Reader) -> Own | Known:
        """Return what ``name`` means to the param ``reader``.

        A param of the workflow wins over one of the step that has no value yet: so ``i + 1`` can define ``i``.
        """
        if SEPARATOR in name:
            return self._separated(name, reader)
        if name in reader.evaluated:
            return Own(name)
        if name in self.workflow:
            return Known(_result(self.workflow[name].result, name, "the workflow"))
        if name in reader.declared:
            return Own(name)
        step_id, path = step_reference(name, {*self.steps, self.step_id}) or ("", "")
        if step_id in self.steps:
            return Known(self._of_step(step_id, path))
        if step_id and reader.sees(path):
            return Own(path)
        raise ParamError(
            f"Param [{reader.name}]: Cannot find the referenced param [{name}] in step [{self.step_id}] "
            "or upstream steps or the workflow",
            remedy="Give it when the workflow starts. For a literal dollar sign, as in a shell script, write $$.",
            param=reader.name,
        )

    def _separated(self, name: str, reader: Reader) -> Own | Known:
        step_id, param = _split(name, {*self.steps, self.step_id})
        if step_id == self.step_id:
            if reader.sees(param):
                return Own(param)
            raise _not_found(reader, name, self.title)
        if step_id in self.steps:
            return Known(self._of_step(step_id, param))
        return Known(_signal_param(name, step_id, param, reader.functions))

    def _of_step(self, step_id: str, path: str) -> Any:
        found = walk(values_of(self.steps[step_id]), path)
        if found is None:
            near = get_close_matches(path, self.steps[step_id], n=1)
            raise ParamError(
                f"Cannot find the referenced param name [{path}] in step [{step_id}]",
                remedy=f"Did you mean {near[0]}?" if near else "",
                reference=path,
            )
        return _result(found, path, f"step [{step_id}]")


def _not_found(reader: Reader, name: str, scope: str) -> ParamError:
    return ParamError(f"Param [{reader.name}] referenced a non-existing param [{name}] in {scope}", param=reader.name)


def _result(value: Any, name: str, where: str) -> Any:
    if value is NOT_EVALUATED:
        raise ParamError(
            f"Referenced param [{name}] in {where} is not evaluated yet. "
            "Note that a step can only reference its upstream step's param.",
            reference=name,
        )
    return value


def _split(name: str, steps: Collection[str]) -> tuple[str, str]:
    """Return the step or signal, and its param, in a name with ``__``."""
    end = name.index(SEPARATOR)
    if end != name.rindex(SEPARATOR):
        # An id may end in an underscore, so three in a row can be split in two ways.
        short, long = name[:end], name[: end + 1]
        if short in steps and long in steps:
            raise ParamError(
                f"reference [{name}] cannot be parsed due to ambiguity (both step ids [{short}] and [{long}] exist "
                "in the workflow)",
                reference=name,
            )
        if short not in steps and long not in steps:
            raise ParamError(
                f"reference [{name}] cannot be parsed as cannot find either step id [{short}] or [{long}] "
                "in the workflow",
                reference=name,
            )
        end += short not in steps
    return name[:end], name[end + len(SEPARATOR) :]


def _signal_param(name: str, signal: str, param: str, functions: ParamFunctions | None) -> Any:
    failed = ParamError(
        f"Failed to evaluate the param with a definition: [{name}]. Please check if there is a typo in the expression.",
        reference=name,
    )
    if functions is None:
        raise failed
    try:
        return functions.call("getFromSignal", (signal, param))
    except ExpressionError as error:
        raise failed from error
