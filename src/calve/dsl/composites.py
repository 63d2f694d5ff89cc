"""Steps that run other steps or workflows: subworkflow, template, foreach, while_."""

# The keywords that all steps share are described once, at ``step``.
# ruff: noqa: D417

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, cast

from calve.definition.problems import did_you_mean
from calve.dsl.fields import FailureMode, Tags, described
from calve.dsl.graphs import Graph, Step
from calve.dsl.places import here
from calve.dsl.signals import SignalDependency, SignalOutput
from calve.dsl.triggers import Duration
from calve.dsl.values import Items, Param, Reference, Text, Value, placed_param, refer


class Loop(Step):
    """A loop: the steps that are described inside its ``with`` run again and again.

    ``loop["name"]`` refers to one of its loop params, for the steps inside.
    """

    __slots__ = ()

    def __enter__(self) -> Self:
        self.graph.check_open(here())
        self._inside.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inside.leave()

    def __getitem__(self, name: str) -> Reference:
        known = [*self.fields["params"]["loop_params"]["value"], "loop_index"]
        if name not in known:
            raise here().refuse(f"{self.id} has no loop param {name}", remedy=did_you_mean(name, known))
        return refer(name)

    @property
    def _inside(self) -> Graph:
        return cast("Graph", self.inner)  # every loop is made with one

    def sequential(self) -> None:
        """Let the steps inside run one after the other, in the order of their description."""
        self._inside.is_sequential = True


def subworkflow(
    step_id: str,
    /,
    *,
    workflow_id: Text | None = None,
    version: Text | int | None = None,
    sync: bool | None = None,
    explicit_params: bool | None = None,
    name: str | None = None,
    description: str | None = None,
    failure_mode: FailureMode | None = None,
    tags: Tags = (),
    timeout: Duration | None = None,
    signal_dependencies: Sequence[SignalDependency] = (),
    signal_outputs: Sequence[SignalOutput] = (),
    params: Mapping[str, Value] | None = None,
    **more: Value,
) -> Step:
    """Describe a step that runs another workflow.

    Args:
        step_id: The id of the step.
        workflow_id: The workflow to run; the one whose id is the step's, unless told.
        version: ``"active"``, ``"latest"``, ``"default"`` or a number; ``"active"`` unless told.
        sync: Wait until it has ended; True unless told.
        explicit_params: Pass on only the params of the step, not all of the workflow; False unless told.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """
    fields = {"sync": sync, "explicit_params": explicit_params}
    return described(Step, "subworkflow", locals(), fields, _child(workflow_id or step_id, version))


def template(
    step_id: str,
    /,
    *,
    sub_type: str,
    sub_type_version: str | None = None,
    name: str | None = None,
    description: str | None = None,
    failure_mode: FailureMode | None = None,
    tags: Tags = (),
    timeout: Duration | None = None,
    signal_dependencies: Sequence[SignalDependency] = (),
    signal_outputs: Sequence[SignalOutput] = (),
    params: Mapping[str, Value] | None = None,
    **more: Value,
) -> Step:
    """Describe a step that stands for the steps of a workflow template.

    Args:
        step_id: The id of the step.
        sub_type: The template.
        sub_type_version: The version of the template.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """
    return described(Step, "template", locals(), {"sub_type": sub_type, "sub_type_version": sub_type_version}, {})


def foreach(
    step_id: str,
    /,
    *,
    loop_params: Mapping[str, Items | range],
    concurrency: int | None = None,
    strict_ordering: bool | None = None,
    name: str | None = None,
    description: str | None = None,
    failure_mode: FailureMode | None = None,
    tags: Tags = (),
    timeout: Duration | None = None,
    signal_dependencies: Sequence[SignalDependency] = (),
    signal_outputs: Sequence[SignalOutput] = (),
    params: Mapping[str, Value] | None = None,
    **more: Value,
) -> Loop:
    """Describe a loop over lists; the steps inside its ``with`` run once for every combination of their items.

    Args:
        step_id: The id of the step.
        loop_params: The lists to go through, by name; of several, every combination, the first varying fastest.
        concurrency: How many iterations run at once at most.
        strict_ordering: Let no iteration get further ahead of the oldest one under way than ``concurrency`` says.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """
    fields = {"concurrency": concurrency, "strict_ordering": strict_ordering}
    return described(Loop, "foreach", locals(), fields, _looped(loop_params), Graph(f"the foreach {step_id}"))


def while_(
    step_id: str,
    /,
    *,
    condition: str,
    loop_params: Mapping[str, str | int | float | bool | Reference | Param],
    name: str | None = None,
    description: str | None = None,
    failure_mode: FailureMode | None = None,
    tags: Tags = (),
    timeout: Duration | None = None,
    signal_dependencies: Sequence[SignalDependency] = (),
    signal_outputs: Sequence[SignalOutput] = (),
    params: Mapping[str, Value] | None = None,
    **more: Value,
) -> Loop:
    """Describe a loop; the steps inside its ``with`` run again while its condition holds.

    Args:
        step_id: The id of the step.
        condition: An expression over the loop params.
        loop_params: The first values, by name; a param of that name of a step inside gives the next.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """
    fields = {"condition": condition}
    return described(Loop, "while", locals(), fields, _looped(loop_params), Graph(f"the while {step_id}"))


def _looped(loop_params: Mapping[str, Any]) -> dict[str, Any]:
    return {"loop_params": {"type": "MAP", "value": {name: placed_param(value) for name, value in loop_params.items()}}}


def _child(workflow_id: Text, version: Text | int | None) -> dict[str, Any]:
    own = {"subworkflow_id": placed_param(workflow_id)}
    if version is not None:
        own["subworkflow_version"] = placed_param(str(version) if isinstance(version, int) else version)
    return own
