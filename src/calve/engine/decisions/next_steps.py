"""What happens next in a run, decided from the statuses of its steps. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from calve.definition.model import FailureMode
from calve.engine.instances import Dag
from calve.engine.model import LAST, Attempt, RunStatus, StepStatus, final_status

_NOT_RUN = "Not run: "


class StepState(Protocol):
    """What a decision needs to know about the newest attempt of a step."""

    @property
    def status(self) -> StepStatus:
        """Its status."""
        ...

    @property
    def edges(self) -> Mapping[str, bool]:
        """Which successors its conditions allow, once it has ended."""
        ...


@dataclass(frozen=True, slots=True)
class Create:
    """A step is ready: it runs, or is UNSATISFIED because every condition that leads to it is false."""

    step_id: str
    is_satisfied: bool


@dataclass(frozen=True, slots=True)
class StopOthers:
    """A step with failure mode FAIL_IMMEDIATELY failed, so that the others must stop."""

    step_id: str


@dataclass(frozen=True, slots=True)
class Finish:
    """The run ends: nothing more can happen in it."""

    status: RunStatus


Move = Create | StopOthers | Finish


def decide(
    dag: Dag, states: Mapping[str, StepState], modes: Mapping[str, FailureMode], *, is_ending: bool = False
) -> Iterator[Move]:
    """Yield the next moves of a run; none while it waits for unfinished steps.

    Args:
        dag: all steps of the run.
        states: the newest attempt of every step that has one.
        modes: the failure modes of the steps that have one.
        is_ending: whether the run was ended by an action, so that no further step begins.
    """
    failed_at_once = _failed_at_once(states, modes)
    under_way = [step_id for step_id, state in states.items() if not state.status.is_final]
    if failed_at_once is not None and under_way:
        yield StopOthers(failed_at_once)
        return
    created = [] if is_ending or failed_at_once is not None else list(_ready(dag, states))
    if created:
        yield from created
    elif not under_way:
        yield Finish(final_status(state.status for state in states.values()))


def _ready(dag: Dag, states: Mapping[str, StepState]) -> Iterator[Create]:
    for step_id, sources in dag.predecessors.items():
        if step_id in states:
            continue
        before = [states[source] for source in sources if source in states]
        # Complete, not just ended: the successors of a failed step do not run.
        if len(before) == len(sources) and all(state.status.is_complete for state in before):
            allowed = not sources or any(state.edges.get(step_id, False) for state in before)
            yield Create(step_id, allowed)


def _failed_at_once(states: Mapping[str, StepState], modes: Mapping[str, FailureMode]) -> str | None:
    return next(
        (
            step_id
            for step_id, state in states.items()
            if state.status is StepStatus.FATALLY_FAILED and modes.get(step_id) is FailureMode.FAIL_IMMEDIATELY
        ),
        None,
    )


def why_not_run(dag: Dag, attempts: Mapping[str, Attempt], step_id: str) -> str:
    """Return why a step does not run: what each step before it found, or which conditions are false."""
    found = [_why_not(dag, attempts[source], step_id) for source in dag.predecessors[step_id]]
    return f"{_NOT_RUN}{'; '.join(dict.fromkeys(found))}"


def _why_not(dag: Dag, source: Attempt, step_id: str) -> str:
    said = str(source.timeline[-1]["message"]) if source.timeline else ""
    if source.status is StepStatus.UNSATISFIED and said.startswith(_NOT_RUN):
        return said.removeprefix(_NOT_RUN)
    if source.status is StepStatus.UNSATISFIED:
        return f"{source.step_id} did not run"
    if LAST in source.artifacts:
        return f"{source.step_id}: {source.artifacts[LAST] or 'there is nothing to do'}"
    return f"{source.step_id} -> {step_id}: {dag.successors[source.step_id][step_id]} is false"
