"""The dry run of a definition: its params tried before anybody starts it."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, assert_never

from calve.definition.document import Node
from calve.definition.model.steps import Step, TypedStep
from calve.definition.model.triggers import CronTrigger, IntervalTrigger, PredefinedTrigger, TimeTrigger
from calve.definition.model.workflow import Definition
from calve.definition.params.durations import parse_duration
from calve.definition.params.parameter import values_of
from calve.definition.params.retries import parse_retry_policy
from calve.definition.problems import Problems, did_you_mean
from calve.definition.resolving import Failure, Missing, resolve
from calve.definition.schedules import cron_of, interval_of, predefined_of, zone_of
from calve.definition.sources import expressions_of
from calve.definition.vocabulary import Vocabulary
from calve.definition.walking import all_steps, entry, items, text
from calve.errors import CalveError
from calve.expressions import Clock, ParamCall, calls, complete, parse


def dry_run(definition: Definition, document: Node, vocabulary: Vocabulary, problems: Problems, clock: Clock) -> None:
    """Note what will go wrong with a definition when it runs, as far as that can be told now."""
    workflow = entry(document, "workflow") or document
    places = {str(text(entry(step, "id"))): step for _, step in all_steps(workflow)}
    resolution = resolve(definition, vocabulary, run={}, clock=clock, places=places)
    for missing in resolution.missing:
        _note_missing(missing, _place(missing.step_id, missing.param, workflow, places), definition, problems)
    for failure in resolution.failures:
        _note_failure(failure, _place(failure.step_id, failure.param, workflow, places), problems)
    values = _Guesses(values_of(resolution.workflow))
    _try(lambda: _timeout(definition.workflow.timeout, values), entry(workflow, "timeout") or workflow, problems)
    for step in definition.workflow.all_steps():
        _try_step(step, places, values, problems)
    for trigger, node in zip(definition.workflow.time_triggers, items(entry(workflow, "time_triggers")), strict=True):
        _try_trigger(trigger, node, problems)


class _Guesses(dict[str, Any]):
    """The values of params; one that only the run can tell is a number that fits everywhere."""

    def get(self, name: str, default: Any = "2") -> Any:
        return super().get(name, default)


def _place(step_id: str | None, param: str | None, workflow: Node, places: Mapping[str, Node]) -> Node:
    """Return where a param is written; where it is not, its step or the workflow."""
    holder = places[step_id] if step_id is not None else workflow
    return (entry(holder, "params", param) if param is not None else None) or holder


def _note_missing(missing: Missing, place: Node, definition: Definition, problems: Problems) -> None:
    if missing.is_output:
        message = f"{missing.param} refers to {missing.name}, which that step does not give"
        problems.add(place, "unknown_output", message)
        return
    message = f"{missing.param} refers to {missing.name}, which nothing here defines"
    near = did_you_mean(missing.name, definition.workflow.params)
    hint = near if near.startswith("did you mean") else "give it when the workflow starts"
    problems.warn(place, "param_not_given", message, hint=hint)


def _note_failure(failure: Failure, place: Node, problems: Problems) -> None:
    problems.add(place, failure.error.code, failure.error.message, hint=failure.error.remedy)


def _try(what: Callable[[], object], place: Node, problems: Problems) -> None:
    """Do something, and note the error that it ends in."""
    try:
        what()
    except CalveError as error:
        problems.add(place, error.code, error.message, hint=error.remedy)


def _timeout(timeout: int | str | None, values: Mapping[str, Any]) -> int | None:
    return None if timeout is None else parse_duration(timeout, values)


def _try_step(step: Step, places: Mapping[str, Node], values: Mapping[str, Any], problems: Problems) -> None:
    place = places[step.id]
    _try(lambda: _timeout(step.timeout, values), entry(place, "timeout") or place, problems)
    if isinstance(step, TypedStep):
        policy = step.retry_policy
        _try(lambda: parse_retry_policy(policy, values), entry(place, "retry_policy") or place, problems)
    for node in expressions_of(place):
        for call in _calls(str(node.value)):
            named = _step_named_by(call)
            if named is not None and named not in places:
                message = f"params.{call.name} names the step {named}, which is not there"
                problems.add(node, "unknown_step", message, hint=did_you_mean(named, places))


def _calls(source: str) -> tuple[ParamCall, ...]:
    """Return the calls of ``params`` in an expression; it can be parsed, or there would be no dry run."""
    return calls(parse(complete(source))) if "params" in source else ()


def _step_named_by(call: ParamCall) -> str | None:
    match call:
        case ParamCall("getFromStep", (step_id, _)) | ParamCall("getFromSubworkflow" | "getFromForeach", (step_id, *_)):
            return step_id
        case _:
            return None


def _try_trigger(trigger: TimeTrigger, node: Node, problems: Problems) -> None:
    _try(lambda: zone_of(trigger.timezone), entry(node, "timezone") or node, problems)
    _try(lambda: _timeout(trigger.fuzzy_max_delay, {}), entry(node, "fuzzy_max_delay") or node, problems)
    match trigger:
        case CronTrigger():
            _try(lambda: cron_of(trigger.cron), entry(node, "cron") or node, problems)
        case PredefinedTrigger():
            _try(lambda: predefined_of(trigger.expression), entry(node, "expression") or node, problems)
        case IntervalTrigger():
            _try(lambda: _interval(trigger.interval), entry(node, "interval") or node, problems)
        case _:
            assert_never(trigger)


def _interval(interval: int | str) -> object:
    return interval_of(timedelta(milliseconds=parse_duration(interval, {})))
