"""Steps that need no program: noop, sleep, http, approval; and ``step`` for any other type."""

# The keywords that all steps share are described once, at ``step``.
# ruff: noqa: D417

from collections.abc import Mapping, Sequence
from typing import Literal

from calve.dsl.fields import FailureMode, Tags, described, typed
from calve.dsl.graphs import Step
from calve.dsl.retries import Retry
from calve.dsl.signals import SignalDependency, SignalOutput
from calve.dsl.triggers import Duration
from calve.dsl.values import Flag, Number, Param, Reference, Text, Texts, Value, ValueMap, Whole


def noop(
    step_id: str,
    /,
    *,
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
    """Describe a step that does nothing and succeeds; a place where branches meet or part.

    Args:
        step_id: The id of the step.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """
    return typed("NoOp", locals())


def sleep(
    step_id: str,
    /,
    *,
    sleep_seconds: Whole | None = None,
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
    """Describe a step that waits, without holding a worker.

    Args:
        step_id: The id of the step.
        sleep_seconds: How long to wait, in seconds; 3 unless told.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """
    return typed("Sleep", locals())


def http(
    step_id: str,
    /,
    *,
    url: Text,
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"] | Reference | Param | None = None,
    headers: ValueMap | None = None,
    body: Text | ValueMap | None = None,
    query: ValueMap | None = None,
    auth: ValueMap | None = None,
    timeout_seconds: Number | None = None,
    verify: Flag | None = None,
    state_expr: Text | None = None,
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
    """Describe a step that sends one HTTP request and judges the answer.

    Args:
        step_id: The id of the step.
        url: Where to send it; the host must be on the allow-list of the settings.
        method: The HTTP method; ``"GET"`` unless told.
        headers: Headers by name.
        body: The body: a text as it is, or a map, which is sent as JSON.
        query: What to append to the address after the question mark.
        auth: How to sign in: a user name with a password, or a token.
        timeout_seconds: How long to wait for the answer; 30 unless told.
        verify: Check the server's certificate; True unless told.
        state_expr: An expression over status_code and response_body that gives the step's state: DONE, USER_ERROR,
            PLATFORM_ERROR, FATAL_ERROR or CONTINUE. Without it 2xx is DONE, 408, 425, 429, 502, 503 and 504 are
            PLATFORM_ERROR, the rest of 4xx is FATAL_ERROR, and all else USER_ERROR.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """
    return typed("Http", locals())


def approval(
    step_id: str,
    /,
    *,
    message: Text,
    approvers: Texts | None = None,
    min_approvals: Whole | None = None,
    timeout: Text | int | None = None,
    on_timeout: Literal["reject", "approve"] | Reference | Param | None = None,
    on_reject: Literal["fail", "succeed"] | Reference | Param | None = None,
    name: str | None = None,
    description: str | None = None,
    failure_mode: FailureMode | None = None,
    tags: Tags = (),
    step_timeout: Duration | None = None,
    retry_policy: Retry | None = None,
    signal_dependencies: Sequence[SignalDependency] = (),
    signal_outputs: Sequence[SignalOutput] = (),
    targets: Sequence[str] = (),
    params: Mapping[str, Value] | None = None,
    **more: Value,
) -> Step:
    """Describe a step that waits until a person has decided, without holding a worker.

    Args:
        step_id: The id of the step.
        message: What is to be decided; Markdown.
        approvers: Who may decide; anybody who may run the workflow, if none is named.
        min_approvals: How many people must agree; 1 unless told.
        timeout: How long to wait: seconds, or a text such as 2 days. For ever, if not given.
        on_timeout: What counts when nobody decided in time; ``"reject"`` unless told.
        on_reject: What a rejection does: fail the step, or succeed and let edges look at decision; ``"fail"`` unless
            told.
        step_timeout: How long the step may take at all; ``timeout`` is the approval's own.
        **more: The keywords that all steps share (see ``step``), and params of the step.
    """
    return typed("Approval", locals(), timeout=step_timeout)


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
        type: The step type, one that a package has added say.
        step_id: The id of the step.
        sub_type: The job template to take params from.
        sub_type_version: The version of the template.
        name: What people call the step.
        description: What it is for; Markdown.
        failure_mode: What its failure does to the others; they may end first, unless told.
        tags: Tags, which group steps and limit how many of them run at once.
        timeout: How long it may take: seconds, or a text such as ``"2 hours"``.
        retry_policy: How often it is tried again: ``retry(…)``.
        signal_dependencies: Signals it waits for: ``signal_dependency(…)``.
        signal_outputs: Signals it sends when it has succeeded: ``signal_output(…)``.
        targets: The tables it writes, exactly once.
        params: Params of the step by name, whatever the name.
        **more: Params of the step whose names are no keywords.
    """
    return described(
        Step, "step", locals(), {"type": type, "sub_type": sub_type, "sub_type_version": sub_type_version}, {}
    )
