"""``step``, which describes a step of any type, and the keywords that all step functions share."""

# The annotations are texts, because the signatures of the other step functions are built from them.
# ruff: noqa: TC001, TC003

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from calve.dsl.graph import Graph, Loop, Step, active
from calve.dsl.location import here
from calve.dsl.retries import Retry
from calve.dsl.signals import SignalDependency, SignalOutput
from calve.dsl.triggers import Duration
from calve.dsl.values import Tags, Value, all_params, given_fields

FailureMode: TypeAlias = Literal["FAIL_AFTER_RUNNING", "FAIL_IMMEDIATELY", "IGNORE_FAILURE"]


def step(
    type: str,  # noqa: A002 - the definition's word
    step_id: str,
    /,
    *,
    sub_type: str | None = None,
    sub_type_version: str | None = None,
    name: str | None = None,
    description: str | None = None,
    failure_mode: FailureMode | None = None,
    tags: Tags = (),
    timeout: Duration | None = None,
    retry_policy: Retry | None = None,
    signal_dependencies: Sequence[SignalDependency] = (),
    signal_outputs: Sequence[SignalOutput] = (),
    targets: Sequence[str] = (),
    params: Mapping[str, Value] | None = None,
    **more: Value,
) -> Step:
    """Describe a step of any type.

    Args:
        type: The step type, for example one that a package adds.
        step_id: The id of the step.
        sub_type: The job template to take params from.
        sub_type_version: The version of the template.
        name: A title for people.
        description: What the step is for; Markdown.
        failure_mode: What its failure does to the other steps. Default: those that run may end first.
        tags: Tags, which group steps and limit how many of them run at once.
        timeout: How long it may run: seconds, or a text such as ``"2 hours"``.
        retry_policy: How often it is tried again: ``retry(…)``.
        signal_dependencies: Signals it waits for: ``signal_dependency(…)``.
        signal_outputs: Signals it sends when it has succeeded: ``signal_output(…)``.
        targets: The tables it writes, exactly once.
        params: Params of the step by name, whatever the name.
        **more: Params of the step whose names are not keywords.
    """
    given = locals()
    fields = {"type": type, "sub_type": sub_type, "sub_type_version": sub_type_version}
    return add_step("step", given, fields, {}, given.keys() - {"type", "step_id", "more"})


PARAMETERS: Final = inspect.signature(step).parameters
SHARED: Final = tuple(
    name
    for name, item in PARAMETERS.items()
    if item.kind is item.KEYWORD_ONLY and name not in {"sub_type", "sub_type_version"}
)
"""The keywords that all steps share."""
LOOPS: Final = frozenset({"foreach", "while"})
"""The kinds of steps that contain steps."""


def add_step(
    kind: str,
    given: Mapping[str, Any],
    fields: Mapping[str, Any],
    own: Mapping[str, Any],
    keywords: Collection[str],
) -> Step:
    """Add a step to the workflow that is being described.

    Args:
        kind: Which of the five kinds of steps it is.
        given: Its id, the values of the keywords that all steps share, and ``more``.
        fields: Its fields besides those that all steps share.
        own: The params that its type knows, as a definition spells them.
        keywords: The keywords that its function knows.
    """
    location = here()
    step_id = given["step_id"]
    graph = active(f"the step {step_id}", location)
    shared = {name: given.get(name) for name in SHARED if name != "params"}
    written = given_fields({"id": step_id, **shared, **fields})
    if params := all_params(own, given, keywords):
        written["params"] = params
    if kind in LOOPS:
        made: Step = Loop(step_id, kind, written, location, graph, Graph(f"the {kind} {step_id}"))
    else:
        made = Step(step_id, kind, written, location, graph)
    graph.steps.append(made)
    return made
