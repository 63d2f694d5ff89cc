"""The dry run of a definition: problems found by resolving its params before a run."""

import re
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import Any, assert_never

from calve.definition.composites import count_iterations
from calve.definition.document import Node, all_steps, entry, items, text
from calve.definition.dry_run.resolution import CheckedFile, Failure, Missing, Resolution, UnknownOutput, resolve
from calve.definition.files import StepFiles
from calve.definition.model import (
    CronTrigger,
    Definition,
    ForeachStep,
    IntervalTrigger,
    PredefinedTrigger,
    Step,
    TimeTrigger,
    TypedStep,
)
from calve.definition.params import STEP_END_TIME, STEP_STATUS, parse_duration, parse_retry_policy, values_of
from calve.definition.problems import Problems, did_you_mean
from calve.definition.references import all_expressions
from calve.definition.schedules import cron_of, interval_of, predefined_of, zone_of
from calve.definition.vocabulary import Vocabulary
from calve.errors import CalveError
from calve.expressions import Clock, ParamCall, calls, complete, parse

_NOT_GIVEN = "give it when the workflow starts; for a literal dollar sign, as in a shell script, write $$"

_OF_EVERY_STEP = frozenset({STEP_STATUS, STEP_END_TIME})
"""What ``params.getFromStep`` returns of every step, besides its params."""


def dry_run(
    definition: Definition,
    document: Node,
    vocabulary: Vocabulary,
    problems: Problems,
    clock: Clock,
    files: StepFiles | None = None,
) -> None:
    """Report what will fail when a definition runs, as far as that is known before."""
    workflow = entry(document, "workflow") or document
    places = {str(text(entry(step, "id"))): step for _, step in all_steps(workflow)}
    resolution = resolve(definition, vocabulary, run={}, clock=clock, places=places, files=files)
    for missing in resolution.missing:
        _note_missing(missing, _place(missing.step_id, missing.keys, workflow, places), problems)
    for failure in resolution.failures:
        keys = () if failure.param is None else ("params", failure.param)
        _note_failure(failure, _place(failure.step_id, keys, workflow, places), problems)
    for file in resolution.files:
        _note_file(file, _place(file.step_id, ("params", file.field), workflow, places), problems)
    values = _Guesses(values_of(resolution.workflow))
    _try(lambda: _timeout(definition.workflow.timeout, values), entry(workflow, "timeout") or workflow, problems)
    for step in definition.workflow.all_steps():
        _try_step(step, places[step.id], values, problems)
        _try_iterations(step, places[step.id], resolution, problems)
    signals = {name for trigger in definition.workflow.signal_triggers for name in trigger.definitions}
    _try_calls(document, {"step": places, "signal": signals}, resolution, problems)
    for trigger, node in zip(definition.workflow.time_triggers, items(entry(workflow, "time_triggers")), strict=True):
        _try_trigger(trigger, node, problems)
    incremental = items(entry(workflow, "incremental_triggers"))
    for watching, node in zip(definition.workflow.incremental_triggers, incremental, strict=True):
        _try_span("max_delay", watching.max_delay, node, problems)
        _try_span("debounce", watching.debounce, node, problems)


class _Guesses(dict[str, Any]):
    """The values of params; one known only at run time is a number that fits everywhere."""

    def get(self, name: str, default: Any = "2") -> Any:
        return super().get(name, default)


def _place(step_id: str | None, keys: tuple[str, ...], workflow: Node, places: Mapping[str, Node]) -> Node:
    """Return the position of a part of a step or the workflow; that of the step or workflow if it is not written."""
    holder = places[step_id] if step_id is not None else workflow
    whole = entry(holder, *keys) if keys else holder
    if whole is not None or keys[0] != "params":
        return whole or holder
    # A field of a param: members of a MAP are params, each with a value of its own, those of a STRING_MAP are texts.
    fields = re.findall(r"[^.\[\]]+", keys[1])
    steps = [step for name in fields for step in ("value", int(name) if name.isdecimal() else name)]
    return holder.at(("params", *steps[1:]))


def _note_missing(missing: Missing, place: Node, problems: Problems) -> None:
    refers = f"{missing.what} refers to {missing.name}"
    where = f" ({missing.where})" if missing.where else ""
    if missing.unknown is not None:
        message, hint = _worded(missing.unknown, is_of_workflow=missing.step_id is None)
        problems.add(place, "unknown_output", f"{refers}: {message}{where}", hint=hint)
        return
    message = f"{refers}, which is not defined{where}"
    near = did_you_mean(missing.name, missing.known)
    hint = near if near.startswith("did you mean") else _NOT_GIVEN
    problems.warn(place, "param_not_given", message, hint=hint)


def _worded(unknown: UnknownOutput, *, is_of_workflow: bool) -> tuple[str, str]:
    """Return the message for a reference to a step, and a hint."""
    if is_of_workflow:
        return "params of the workflow are evaluated before any step runs", "move it to the step that uses it"
    if not unknown.path:
        step_id = unknown.step_id
        return f"{step_id} is a step, not a param", f"write {step_id}__NAME for an output of it"
    message = f"step {unknown.step_id} has no output {unknown.path}"
    return message, did_you_mean(unknown.path, unknown.known)


def _note_failure(failure: Failure, place: Node, problems: Problems) -> None:
    problems.add(place, failure.error.code, failure.error.message, hint=failure.error.remedy)


def _note_file(file: CheckedFile, place: Node, problems: Problems) -> None:
    """Warn about a file that cannot be checked: a worker on another machine may have it, or a step create it."""
    hint = "a worker looks for it in its project folder"
    if file.error is not None:
        problems.warn(place, "file_unreadable", f"{file.field}: {file.error.message}", hint=file.error.remedy)
    elif file.text is None:
        problems.warn(place, "file_missing", f"{file.field}: there is no file {file.path} here", hint=hint)
    elif not file.is_in_project:
        message = f"{file.field}: {file.path} is next to the definition, but not in the project folder"
        problems.warn(place, "file_elsewhere", message, hint=hint)


def _try(what: Callable[[], object], place: Node, problems: Problems) -> None:
    """Call something, and report the error that it raises."""
    try:
        what()
    except CalveError as error:
        problems.add(place, error.code, error.message, hint=error.remedy)


def _timeout(timeout: int | str | None, values: Mapping[str, Any]) -> int | None:
    return None if timeout is None else parse_duration(timeout, values)


def _try_step(step: Step, place: Node, values: Mapping[str, Any], problems: Problems) -> None:
    _try(lambda: _timeout(step.timeout, values), entry(place, "timeout") or place, problems)
    if isinstance(step, TypedStep):
        policy = step.retry_policy
        _try(lambda: parse_retry_policy(policy, values), entry(place, "retry_policy") or place, problems)


def _try_iterations(step: Step, place: Node, resolution: Resolution, problems: Problems) -> None:
    lists = resolution.steps.get(step.id, {}).get("loop_params")
    if isinstance(step, ForeachStep) and lists is not None and lists.result:  # if there are none, the run reports it
        _try(lambda: count_iterations(lists.result), entry(place, "params", "loop_params") or place, problems)


def _try_calls(
    document: Node, known: Mapping[str, Collection[str]], resolution: Resolution, problems: Problems
) -> None:
    """Report calls of ``params`` that name a step, an output or a signal that does not exist."""
    for node in all_expressions(document):
        for call in _calls(str(node.value)):
            what, name = _named_by(call)
            if name not in known.get(what, (name,)):
                message = f"params.{call.name} names the {what} {name}, which does not exist"
                problems.add(node, f"unknown_{what}", message, hint=did_you_mean(name, known[what]))
            elif unknown := _unknown_output(call, known["step"], resolution):
                message, hint = _worded(unknown, is_of_workflow=False)
                problems.add(node, "unknown_output", f"params.{call.name}: {message}", hint=hint)


def _unknown_output(call: ParamCall, steps: Collection[str], resolution: Resolution) -> UnknownOutput | None:
    match call:
        case ParamCall("getFromStep", (str(step_id), str(name))) if step_id in steps and name not in _OF_EVERY_STEP:
            return resolution.unknown(step_id, name)
        case ParamCall("getFromForeach", (_, str(step_id), str(name))) if step_id in steps:
            return resolution.unknown(step_id, name)
        case _:
            return None


def _named_by(call: ParamCall) -> tuple[str, str]:
    """Return what a call names, a step or a signal, and its id; empty if the expression computes it."""
    match call:
        case ParamCall("getFromStep", (str(step_id), _)):
            return "step", step_id
        case ParamCall("getFromSubworkflow" | "getFromForeach", (str(step_id), *_)):
            return "step", step_id
        case ParamCall("getFromSignal", (str(signal), _)):
            return "signal", signal
        case _:
            return "", ""


def _calls(source: str) -> tuple[ParamCall, ...]:
    """Return the calls of ``params`` in an expression, which is known to be valid."""
    return calls(parse(complete(source))) if "params" in source else ()


def _try_trigger(trigger: TimeTrigger, node: Node, problems: Problems) -> None:
    _try(lambda: zone_of(trigger.timezone), entry(node, "timezone") or node, problems)
    _try_span("fuzzy_max_delay", trigger.fuzzy_max_delay, node, problems)
    match trigger:
        case CronTrigger():
            _try(lambda: cron_of(trigger.cron), entry(node, "cron") or node, problems)
        case PredefinedTrigger():
            _try(lambda: predefined_of(trigger.expression), entry(node, "expression") or node, problems)
        case IntervalTrigger():
            _try(lambda: _interval(trigger.interval), entry(node, "interval") or node, problems)
        case _:
            assert_never(trigger)


def _try_span(name: str, span: int | str | None, node: Node, problems: Problems) -> None:
    """Report an invalid duration of a trigger, which cannot refer to params."""
    try:
        _timeout(span, {})
    except CalveError as error:
        hint = "write a number of seconds, or a text such as 15 minutes; a trigger cannot refer to params"
        problems.add(entry(node, name) or node, error.code, f"{name}: {error.message}", hint=hint)


def _interval(interval: int | str) -> object:
    return interval_of(timedelta(milliseconds=parse_duration(interval, {})))
