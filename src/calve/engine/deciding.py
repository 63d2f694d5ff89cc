"""What happens next in a run, told from where its steps stand. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from calve.definition.model.steps import FailureMode
from calve.engine.dag import Dag
from calve.engine.model import Attempt
from calve.engine.statuses import RunStatus, StepStatus, final_status

LAST = "calve_last"
"""The artifact of an attempt after which nothing follows, whatever the conditions say: why that is."""


_NOT_RUN = "Not run: "


class StepState(Protocol):
    """The newest attempt of a step, as far as a decision looks at it."""

    @property
    def status(self) -> StepStatus:
        """Where it stands."""
        ...

    @property
    def edges(self) -> Mapping[str, bool]:
        """Which successors its conditions allow, once it has ended."""
        ...


@dataclass(frozen=True, slots=True)
class Create:
    """A step's turn has come: it runs, or nothing that leads to it holds."""

    step_id: str
    is_satisfied: bool


@dataclass(frozen=True, slots=True)
class StopOthers:
    """A step failed that lets no other go on."""

    step_id: str


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing more can happen."""

    status: RunStatus


Move = Create | StopOthers | Finish


def decide(
    dag: Dag, states: Mapping[str, StepState], modes: Mapping[str, FailureMode], *, is_ending: bool = False
) -> Iterator[Move]:
    """Yield the next moves of a run; none while it waits for steps that are under way.

    Args:
        dag: all steps of the run.
        states: the newest attempt of every step that has one.
        modes: the failure modes of the steps that have one.
        is_ending: whether somebody ended the run, so that no further step begins.
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


def why_not(dag: Dag, attempts: Mapping[str, Attempt], step_id: str) -> str:
    """Say why a step does not run: what each step before it found, or which conditions are false."""
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
