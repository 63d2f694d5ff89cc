"""What a restart keeps and what it runs again, decided before anything runs. Pure."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from calve.definition.model import Step, TypedStep
from calve.definition.params import Parameter
from calve.engine.instances import Dag
from calve.engine.model import Attempt, Restart, RunPolicy, StepStatus

CAPTURES = frozenset({"IpCapture", "ICDC"})
_COMMIT = "IpCommit"
_WHOLE = frozenset({RunPolicy.RESTART_FROM_BEGINNING, RunPolicy.START_FRESH_NEW_RUN})


class Fate(StrEnum):
    """What a restart does to a step."""

    KEPT = "KEPT"
    RUNS_AGAIN = "RUNS_AGAIN"
    RUNS = "RUNS"
    """The step has not run in this instance."""
    SKIPPED = "SKIPPED"
    REMOVED = "REMOVED"
    """The version with which the instance continues does not have the step."""

    @property
    def runs(self) -> bool:
        """Tell whether the step gets a new attempt in the restart."""
        return self in {Fate.RUNS_AGAIN, Fate.RUNS, Fate.SKIPPED}


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """What a restart does to a step, and why."""

    step_id: str
    fate: Fate
    reason: str
    obstacle: str = ""
    """Why the step cannot run again, if it cannot."""


@dataclass(frozen=True, slots=True)
class RestartPlan:
    """What a restart does, step by step."""

    from_version: int
    to_version: int
    steps: tuple[PlannedStep, ...]
    refusal: str = ""
    """Why the restart would be refused, and what to do instead."""


@dataclass(frozen=True, slots=True)
class VersionChanges:
    """What changed about the steps of a run since their attempts ran, by step; empty if the version is the same."""

    changes: Mapping[str, str] = field(default_factory=dict)
    """The changes of a step, in words."""
    edges: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    """Which successors are allowed, for steps whose conditions were evaluated again."""


NO_CHANGES = VersionChanges()


def run_again(
    dag: Dag, attempts: Mapping[str, Attempt], policy: RunPolicy, restart: Restart, news: VersionChanges = NO_CHANGES
) -> frozenset[str]:
    """Return the steps that a restart runs again, given the newest attempt of each step over all earlier runs."""
    if policy in _WHOLE:
        return frozenset(dag.successors)
    if policy is RunPolicy.RESTART_FROM_SPECIFIC and not restart.is_latest:
        return dag.with_descendants(restart.step_path[:1])
    # Keep the ancestors of a kept step too; otherwise the steps after it would not wait for those that run again.
    before = dag.with_ancestors(step_id for step_id in restart.keep if step_id in dag.successors)
    kept = frozenset(step_id for step_id in before if step_id in attempts and attempts[step_id].status.is_complete)
    first = {step_id for step_id in dag.successors if _begins(step_id, attempts, policy, restart, news)} - kept
    if restart.is_latest:
        first |= set(_flipped(dag, attempts, news)) - kept
    return dag.with_descendants(first, but=kept)


def _begins(
    step_id: str, attempts: Mapping[str, Attempt], policy: RunPolicy, restart: Restart, news: VersionChanges
) -> bool:
    """Tell whether a step runs again for a reason of its own, not because a step before it does."""
    attempt = attempts.get(step_id)
    if attempt is None or not attempt.status.is_complete or step_id in restart.skip:
        return True
    is_named = policy is RunPolicy.RESTART_FROM_SPECIFIC and step_id in restart.step_path[:1]
    return is_named or (step_id in news.changes and attempt.status is not StepStatus.UNSATISFIED)


def _flipped(dag: Dag, attempts: Mapping[str, Attempt], news: VersionChanges) -> Iterator[str]:
    """Yield the steps that ran although their conditions are now false, or did not run although they are now true."""
    for step_id, sources in dag.predecessors.items():
        if step_id not in attempts or not sources or any(source not in attempts for source in sources):
            continue
        is_allowed = any(news.edges.get(source, attempts[source].edges).get(step_id, False) for source in sources)
        if is_allowed is (attempts[step_id].status is StepStatus.UNSATISFIED):
            yield step_id


def plan_steps(
    dag: Dag, attempts: Mapping[str, Attempt], policy: RunPolicy, restart: Restart, news: VersionChanges = NO_CHANGES
) -> tuple[PlannedStep, ...]:
    """Return what a restart does to each step, in the order of the definition; removed steps come last."""
    again = run_again(dag, attempts, policy, restart, news)
    found = [_planned(step_id, dag, attempts, policy, restart, news, again) for step_id in dag.successors]
    gone = [step_id for step_id in attempts if step_id not in dag.successors]
    return (*found, *(PlannedStep(step_id, Fate.REMOVED, "the newest version has no such step") for step_id in gone))


def _planned(
    step_id: str,
    dag: Dag,
    attempts: Mapping[str, Attempt],
    policy: RunPolicy,
    restart: Restart,
    news: VersionChanges,
    again: Collection[str],
) -> PlannedStep:
    attempt = attempts.get(step_id)
    if step_id in restart.skip and step_id in again:
        return PlannedStep(step_id, Fate.SKIPPED, "as asked")
    if attempt is None:
        return PlannedStep(step_id, Fate.RUNS, "has not run")
    if step_id not in again:
        return PlannedStep(step_id, Fate.KEPT, f"{attempt.status}, {_unchanged(step_id, restart, news)}")
    return PlannedStep(step_id, Fate.RUNS_AGAIN, _reason(step_id, dag, attempt, policy, restart, news, again))


def _unchanged(step_id: str, restart: Restart, news: VersionChanges) -> str:
    if step_id in restart.keep:
        return "kept as asked"
    return f"though changed ({news.changes[step_id]})" if step_id in news.changes else "unchanged"


def _reason(
    step_id: str,
    dag: Dag,
    attempt: Attempt,
    policy: RunPolicy,
    restart: Restart,
    news: VersionChanges,
    again: Collection[str],
) -> str:
    if not attempt.status.is_complete:
        return f"was {attempt.status}"
    if step_id in news.changes and attempt.status is not StepStatus.UNSATISFIED:
        return f"changed: {news.changes[step_id]}"
    if policy in _WHOLE or step_id in restart.step_path[:1]:
        return "as asked"
    before = next((source for source in dag.predecessors[step_id] if source in again), None)
    return f"comes after {before}" if before else "its conditions have a different result"


def obstacles(
    steps: Mapping[str, Step], dag: Dag, attempts: Mapping[str, Attempt], again: Collection[str]
) -> dict[str, str]:
    """Return the steps that cannot run again with another version, and why: their work cannot be undone.

    A step that has published its rows does nothing when it runs again, so that no row counts twice: a change of
    its definition would have no effect, and nobody would notice. A step that used a capture cannot use it
    again after the capture was committed.
    """
    found: dict[str, str] = {}
    for step_id in (step_id for step_id in dag.successors if step_id in again and step_id in attempts):
        step, attempt = steps[step_id], attempts[step_id]
        if attempt.status is not StepStatus.SUCCEEDED:
            continue
        spent = _spent(step_id, step, attempts)
        if spent:
            found[step_id] = f"it worked on the capture of {spent}, which is committed"
        elif isinstance(step, TypedStep) and step.targets and _is_published(attempt):
            found[step_id] = f"it has published what it wrote to {', '.join(step.targets)}"
    return found


def _is_published(attempt: Attempt) -> bool:
    """Tell whether the rows that a step wrote to its targets are visible; some steps hold them until the commit."""
    return attempt.params.get("published", {}).get("result") is not False


def _spent(step_id: str, step: Step, attempts: Mapping[str, Attempt]) -> str | None:
    """Return the capture step whose capture a step used, if that capture is committed."""
    for commit in attempts.values():
        if commit.type != _COMMIT or commit.status is not StepStatus.SUCCEEDED:
            continue
        capture_id = str(Parameter.from_stored(commit.params["ip_commit"]).result["capture_step"])
        if capture_id == step_id or (commit.step_id != step_id and _refers(step, capture_id)):
            return capture_id
    return None


def _refers(step: Step, capture_id: str) -> bool:
    """Tell whether a step, or one inside it, refers to an output of a capture step."""
    written = {name: value for name, value in step.as_json().items() if name != "transition"}
    return _holds(written, re.compile(rf"(?<![\w.-]){re.escape(capture_id)}(?:\.|__|['\"])"))


def _holds(value: object, reference: re.Pattern[str]) -> bool:
    match value:
        case str():
            return reference.search(value) is not None
        case Mapping():
            return any(_holds(member, reference) for member in value.values())
        case list():
            return any(_holds(member, reference) for member in value)
        case _:
            return False
