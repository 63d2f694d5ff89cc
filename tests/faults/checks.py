"""The referee: tells from a history whether something was lost, recorded twice, too early or beyond a limit. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from tests.faults.history import AttemptFact, History, Move, RunFact

from calve.engine import HOLDING, RunStatus, StepStatus

WORK = "Shell"
"""The type of the steps that workers carry out."""
_STEPS = list(StepStatus)
_RUNS = list(RunStatus)
Place = tuple[str, str | None, int | None]
"""A run, or an attempt of it."""


def violations(history: History) -> list[str]:
    """Return everything that must not be."""
    return [
        *_starts(history),
        *_moves(history),
        *_attempts(history),
        *_order(history),
        *_children(history),
        *_results(history),
        *_limits(history),
        *(f"left behind: {what}" for what in history.left),
    ]


def _starts(history: History) -> Iterator[str]:
    """Every request led to one instance, numbers have no gaps, and all are over."""
    made = Counter(run.request_id for run in history.runs if run.request_id in history.requests)
    for request, workflow_id in history.requests.items():
        if made[request] != 1:
            yield f"request {request} of {workflow_id} led to {made[request]} instances"
    numbers: dict[str, list[int]] = defaultdict(list)
    for run in history.runs:
        if not run.is_inline:
            numbers[run.workflow_id].append(run.instance_id)
        if not run.status.is_terminal:
            yield f"{_name(run)} is {run.status}"
    for workflow_id, found in numbers.items():
        if sorted(found) != list(range(1, len(found) + 1)):
            yield f"the instances of {workflow_id} are numbered {sorted(found)}"


def _moves(history: History) -> Iterator[str]:
    """What was recorded of each run and attempt is one way without a break, forwards, to where it stands now."""
    ways: dict[Place, list[Move]] = defaultdict(list)
    for move in history.moves:
        ways[move.run_uuid, move.step_id, move.attempt_id].append(move)
    stands: dict[Place, str] = {(run.uuid, None, None): run.status for run in history.runs}
    stands |= {(each.run_uuid, each.step_id, each.attempt_id): each.status for each in history.attempts}
    for place in ways.keys() - stands.keys():
        yield f"{place} has moved, but is not there"
    for place, status in stands.items():
        yield from _way(place, ways.get(place, []), status)


def _way(place: Place, moves: Sequence[Move], status: str) -> Iterator[str]:
    at: str | None = None if place[1] is None else StepStatus.NOT_CREATED
    for move in moves:
        if move.before != at:
            yield f"{place} moved from {move.before} to {move.after}, but was {at}"
        elif at is not None and not _is_forwards(place, at, move.after):
            yield f"{place} moved back from {at} to {move.after}"
        at = move.after
    if at != status:
        yield f"{place} is {status}, but its last recorded state is {at}"


def _is_forwards(place: Place, before: str, after: str) -> bool:
    if place[1] is None:
        run = RunStatus(before)
        return not run.is_terminal and _RUNS.index(RunStatus(after)) > _RUNS.index(run)
    step = StepStatus(before)
    return not step.is_terminal and _STEPS.index(StepStatus(after)) > _STEPS.index(step)


def _attempts(history: History) -> Iterator[str]:
    """The attempts of a step are numbered without gaps, and each but the last failed and was superseded."""
    for (run_uuid, step_id), found in _by_step(history).items():
        if [each.attempt_id for each in found] != list(range(1, len(found) + 1)):
            yield f"the attempts of {step_id} in {run_uuid} are {[each.attempt_id for each in found]}"
        for each in found[:-1]:
            if not each.is_superseded or not each.status.is_retryable:
                yield f"attempt {each.attempt_id} of {step_id} in {run_uuid} is {each.status}, and yet another followed"
        if not found[-1].status.is_final or found[-1].is_superseded:
            yield f"the last attempt of {step_id} in {run_uuid} is {found[-1].status}"


def _order(history: History) -> Iterator[str]:
    """A step began only after all steps before it were complete, and every step of a run that succeeded is there."""
    begun: dict[Place, int] = {}
    complete: dict[tuple[str, str], int] = {}
    for number, move in enumerate(history.moves):
        if move.step_id is not None:
            begun.setdefault((move.run_uuid, move.step_id, move.attempt_id), number)
            if StepStatus(move.after).is_complete:
                complete[move.run_uuid, move.step_id] = number
    for run in history.runs:
        for step_id, sources in run.predecessors.items():
            first = begun.get((run.uuid, step_id, 1))
            if first is None:
                if run.status is RunStatus.SUCCEEDED:
                    yield f"{_name(run)} succeeded without {step_id}"
                continue
            for source in sources:
                if complete.get((run.uuid, source), first) >= first:
                    yield f"{step_id} of {_name(run)} began before {source} was complete"


def _children(history: History) -> Iterator[str]:
    """Each attempt that runs other steps has started each of its children once."""
    children: dict[str, list[RunFact]] = defaultdict(list)
    for run in history.runs:
        if run.parent_attempt is not None:
            children[run.parent_attempt].append(run)
    known = {each.uuid: each for each in history.attempts}
    for parent, found in children.items():
        if parent not in known:
            yield f"{_name(found[0])} has a parent that is not there: {parent}"
        numbers = sorted(run.instance_id for run in found)
        is_whole = numbers == list(range(1, len(found) + 1)) if found[0].is_inline else len(found) == 1
        if not is_whole:
            yield f"attempt {parent} has the children {numbers} of {found[0].workflow_id}"


def _results(history: History) -> Iterator[str]:
    """What an attempt keeps came from one of its own calls; whatever was called was on record before."""
    known = {each.uuid: each for each in history.attempts}
    for uuid in history.journal.keys() - known.keys():
        yield f"attempt {uuid} was carried out, but is not on record"
    for each in history.attempts:
        if each.type == WORK and each.status in {StepStatus.SUCCEEDED, StepStatus.USER_FAILED}:
            yield from _result(each, history.journal.get(each.uuid, ()))


def _result(attempt: AttemptFact, words: Sequence[str]) -> Iterator[str]:
    if not words:
        yield f"attempt {attempt.uuid} is {attempt.status}, but was never carried out"
    for key in ("by", "polled", "kept"):
        if attempt.artifacts.get(key, words[0] if words else None) not in (words or (None,)):
            yield f"attempt {attempt.uuid} keeps a result that none of its calls gave"
    if "by" not in attempt.artifacts:
        yield f"attempt {attempt.uuid} is {attempt.status} without a result"


def _limits(history: History) -> Iterator[str]:
    """At no recorded moment were more instances or steps of a workflow under way than may be."""
    runs = {run.uuid: run for run in history.runs}
    types = {(each.run_uuid, each.step_id): each.type for each in history.attempts}
    instances: Counter[str] = Counter()
    steps: Counter[str] = Counter()
    for move in history.moves:
        run = runs.get(move.run_uuid)
        if run is None or run.owner_workflow not in history.limits:
            continue
        if move.step_id is not None and types.get((run.uuid, move.step_id)) == WORK:
            steps[run.owner_workflow] += _change(move, HOLDING)
        elif move.step_id is None and not run.is_inline:
            instances[run.owner_workflow] += _change(move, {RunStatus.IN_PROGRESS})
        limits = history.limits[run.owner_workflow]
        if instances[run.owner_workflow] > limits.instances or steps[run.owner_workflow] > limits.steps:
            yield f"{run.owner_workflow} went beyond {limits} with {_name(run)}"


def _change(move: Move, under_way: frozenset[StepStatus] | set[RunStatus]) -> int:
    return (move.after in under_way) - (move.before in under_way)


def _by_step(history: History) -> dict[tuple[str, str], list[AttemptFact]]:
    found: dict[tuple[str, str], list[AttemptFact]] = defaultdict(list)
    for each in sorted(history.attempts, key=lambda each: each.attempt_id):
        found[each.run_uuid, each.step_id].append(each)
    return found


def _name(run: RunFact) -> str:
    return f"{run.workflow_id}/{run.instance_id}/{run.run_id}"
