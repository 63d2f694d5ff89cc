"""What a name means: where a param's references are looked up."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Protocol

from calve.definition.model.names import SEPARATOR
from calve.definition.params.interpolation import NOT_EVALUATED, step_reference, walk
from calve.definition.params.parameter import Parameter, values_of
from calve.errors import ExpressionError, ParamError
from calve.expressions import ParamFunctions

Params = Mapping[str, Parameter]


@dataclass(frozen=True, slots=True)
class Own:
    """The name is that of a param of the same scope, which may have to be evaluated first."""

    name: str


@dataclass(frozen=True, slots=True)
class Known:
    """The name has a value."""

    value: Any


class Scope(Protocol):
    """Says what the references of its params mean."""

    @property
    def title(self) -> str:
        """What messages call it."""
        ...

    @property
    def outer(self) -> Params:
        """The params that an expression may ask ``params`` for besides those that it names."""
        ...

    def find(
        self,
        name: str,
        reader: str,
        *,
        declared: Collection[str],
        evaluated: Collection[str],
        functions: ParamFunctions | None,
    ) -> Own | Known:
        """Return what ``name`` means to the param ``reader``.

        Raises:
            ParamError: it means nothing.
        """
        ...


@dataclass(frozen=True, slots=True)
class WorkflowScope:
    """The params of a workflow: they see each other, and the signals that started the instance."""

    workflow_id: str

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"workflow [{self.workflow_id}]"

    @property
    def outer(self) -> Params:
        """None: an expression of a workflow sees what it names."""
        return {}

    def find(
        self,
        name: str,
        reader: str,
        *,
        declared: Collection[str],
        evaluated: Collection[str],
        functions: ParamFunctions | None,
    ) -> Own | Known:
        """Return what ``name`` means to the param ``reader``."""
        if name in declared or name in evaluated:
            return Own(name)
        if SEPARATOR in name:
            return Known(_signal_param(name, *_split(name, ()), functions))
        raise ParamError(
            f"Param [{reader}] referenced a non-existing param [{name}] in workflow [{self.workflow_id}]", param=reader
        )


@dataclass(frozen=True, slots=True)
class StepScope:
    """The params of a step: they see each other, the workflow's, and those of the steps before."""

    step_id: str
    workflow: Params = field(default_factory=dict)
    steps: Mapping[str, Params] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"step [{self.step_id}]"

    @property
    def outer(self) -> Params:
        """The workflow's."""
        return self.workflow

    def find(
        self,
        name: str,
        reader: str,
        *,
        declared: Collection[str],
        evaluated: Collection[str],
        functions: ParamFunctions | None,
    ) -> Own | Known:
        """Return what ``name`` means to the param ``reader``.

        A param of the workflow comes before one of the step that has no value yet: so ``i + 1`` can define ``i``.
        """
        if SEPARATOR in name:
            return self._separated(name, reader, (declared, evaluated), functions)
        if name in evaluated:
            return Own(name)
        if name in self.workflow:
            return Known(_result(self.workflow[name].result, name, "the workflow"))
        if name in declared:
            return Own(name)
        step_id, path = step_reference(name, {*self.steps, self.step_id}) or ("", "")
        if step_id in self.steps:
            return Known(self._of_step(step_id, path))
        if step_id and (path in declared or path in evaluated):
            return Own(path)
        raise ParamError(
            f"Param [{reader}]: Cannot find the referenced param [{name}] in step [{self.step_id}] "
            "or upstream steps or the workflow",
            remedy="Give it when the workflow starts. A dollar sign of your own, for a shell say, is written $$.",
            param=reader,
        )

    def _separated(
        self, name: str, reader: str, own: tuple[Collection[str], ...], functions: ParamFunctions | None
    ) -> Own | Known:
        step_id, param = _split(name, {*self.steps, self.step_id})
        if step_id == self.step_id:
            if any(param in names for names in own):
                return Own(param)
            raise ParamError(
                f"Param [{reader}] referenced a non-existing param [{name}] in step [{step_id}]", param=reader
            )
        if step_id in self.steps:
            return Known(self._of_step(step_id, param))
        return Known(_signal_param(name, step_id, param, functions))

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


def _result(value: Any, name: str, where: str) -> Any:
    if value is NOT_EVALUATED:
        raise ParamError(
            f"Referenced param [{name}] in {where} is not evaluated yet. "
            "Note that a step can only reference its upstream step's param.",
            reference=name,
        )
    return value


def _split(name: str, steps: Collection[str]) -> tuple[str, str]:
    """Return the step, or signal, and its param that a name with ``__`` in it means."""
    end = name.index(SEPARATOR)
    if end != name.rindex(SEPARATOR):
        # An id may end in an underscore, so that three in a row can be cut in two ways.
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
