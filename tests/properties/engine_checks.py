"""What must be true of the engine's tables at any moment, and whether the model can explain what changed."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.properties.engine_model import (
    FINAL,
    ITERATION,
    SHAPES,
    WINDOW,
    Model,
    Shape,
    ended_as,
    fails_at_once,
    is_ready,
    is_satisfied,
    worst,
)
from tests.properties.engine_workers import Picture

from calve.engine import RunStatus, StepStatus

S = StepStatus
LOOP = "maestro_foreach"
AS_STEP = {
    RunStatus.SUCCEEDED: S.SUCCEEDED,
    RunStatus.FAILED: S.FATALLY_FAILED,
    RunStatus.STOPPED: S.STOPPED,
    RunStatus.TIMED_OUT: S.TIMED_OUT,
}
"""How a step ends whose child ended so."""


def shape_of(run: Any) -> Shape:
    """Return what the steps of a run look like."""
    return ITERATION if run.inline_step else SHAPES[run.workflow_id]


def is_over(run: Any) -> bool:
    """Tell whether a run has ended."""
    return RunStatus(run.status).is_terminal


@dataclass
class Checks:
    """Looks at the tables again and again."""

    model: Model
    _seqs: dict[str, int] = field(default_factory=dict)
    _statuses: dict[str, str] = field(default_factory=dict)
    """The statuses of runs and attempts when they were last looked at."""
    _held: int = 0
    """How many attempts held the tag's permit then: they keep it when its limit is lowered."""

    def look(self, picture: Picture, now: int) -> None:
        """Fail if something is not as it must be."""
        self.picture, self.now = picture, now
        for run in picture.runs.values():
            self._check_run(run)
        for attempt in picture.attempts.values():
            self._check_attempt(attempt)
        for workflow_id in SHAPES:
            self._check_strategy(workflow_id)
        self._check_numbers()
        self._check_permits()
        self._check_events()

    # How things stand.

    def statuses(self, run: Any) -> dict[str, StepStatus]:
        """Return where the steps of a run stand, those too that it took over from the run before."""
        carried = {
            step: self.picture.attempts[uuid].status
            for step, uuid in json.loads(run.carried).items()
            if uuid in self.picture.attempts
        }
        own = {step: attempt.status for step, attempt in self.picture.newest(run.uuid).items()}
        return {step: S(status) for step, status in (carried | own).items()}

    def is_cut(self, run: Any) -> bool:
        """Tell whether a step of a run has failed that lets no other go on; not one that a restart took over."""
        own = {step: S(attempt.status) for step, attempt in self.picture.newest(run.uuid).items()}
        return fails_at_once(shape_of(run), own)

    def around(self, run: Any) -> Iterator[str]:
        """Yield the attempts and runs in which a run stands."""
        while run.parent_run is not None:
            yield from (run.parent_attempt, run.parent_run)
            run = self.picture.runs[run.parent_run]

    def n_of(self, run: Any) -> int:
        """Return the ``n`` that a run's conditions see."""
        return self.model.ns.get(run.uuid, 0)

    # Runs.

    def _check_run(self, run: Any) -> None:
        assert run.seq >= self._seqs.get(run.uuid, 0), "a run went back"
        self._seqs[run.uuid] = run.seq
        shape, statuses = shape_of(run), self.statuses(run)
        for step, status in statuses.items():
            assert is_ready(shape, step, statuses), f"{step} began before its time: {statuses}"
            is_unsatisfied = not is_satisfied(shape, step, statuses, self.n_of(run))
            assert (status is S.UNSATISFIED) is is_unsatisfied, f"{step} is {status}: {statuses}"
        if run.uuid in self.model.carried and run.started_at is not None:
            assert json.loads(run.carried).keys() == self.model.carried[run.uuid], "a restart takes over other steps"
        before = self._statuses.get(run.uuid)
        if before is not None and RunStatus(before).is_terminal:
            assert run.status == before, f"a run that was {before} became {run.status}"
        elif is_over(run):
            self._check_end(run, shape, statuses)
        if not is_over(run):
            problem = self._stuck(run, shape, statuses)
            assert problem is None, f"{run.workflow_id}/{run.instance_id}/{run.run_id} {statuses}: {problem}"
        self._statuses[run.uuid] = run.status

    def _check_end(self, run: Any, shape: Shape, statuses: dict[str, StepStatus]) -> None:
        model, around = self.model, list(self.around(run))
        assert set(statuses.values()) <= FINAL, f"it is over before its steps: {statuses}"
        if run.uuid in model.refused:
            allowed = {RunStatus.STOPPED}
        elif model.is_asked(run.uuid, *around):
            allowed = model.run_ends(run.uuid)
            if model.is_asked(*around):
                allowed |= {RunStatus.STOPPED, RunStatus.FAILED, worst(statuses.values())}
        else:
            allowed = {worst(statuses.values())}
            left = [step for step in shape.edges if step not in statuses and is_ready(shape, step, statuses)]
            assert self.is_cut(run) or not left, f"it is over, and {left} have not run"
        assert RunStatus(run.status) in allowed, f"a run is {run.status}, not one of {allowed}: {statuses}"

    def _stuck(self, run: Any, shape: Shape, statuses: dict[str, StepStatus]) -> str | None:
        """Say why a run would never move on; None if it will."""
        has_turn = run.uuid in self.picture.tasks
        own = self.picture.newest(run.uuid)
        for attempt in own.values():
            if self._needs_worker(shape, attempt) and attempt.uuid not in self.picture.tasks:
                return f"{attempt.step_id} runs, and there is no task for it"
        if run.is_queued or has_turn:
            return None
        if run.status == RunStatus.CREATED:
            return "it has left the queue, and has no task"
        under_way = [attempt for attempt in own.values() if S(attempt.status) not in FINAL]
        if not under_way:
            return "nothing is under way"
        left = [step for step in shape.edges if step not in statuses and is_ready(shape, step, statuses)]
        if left and run.action is None and not self.is_cut(run):
            return f"{left} could begin"
        return next((problem for attempt in under_way if (problem := self._waits(run, shape, attempt))), None)

    @staticmethod
    def _needs_worker(shape: Shape, attempt: Any) -> bool:
        is_own = attempt.step_id in shape.composite | shape.immediate
        return attempt.status == S.RUNNING and not is_own

    def _waits(self, run: Any, shape: Shape, attempt: Any) -> str | None:
        """Say why an attempt waits in vain, in a run that has no task; None if it does not."""
        is_asked = run.action is not None or attempt.action is not None
        if self._needs_worker(shape, attempt):
            task = self.picture.tasks[attempt.uuid]
            is_late = is_asked and task.owner is None and task.due_at > self.now
            return f"{attempt.step_id} is to end, and nobody is called" if is_late else None
        if attempt.status == S.RUNNING and attempt.step_id in shape.composite:
            return self._waits_for_children(attempt, is_asked=is_asked)
        if attempt.status == S.PAUSED and not is_asked:
            return None
        if attempt.status == S.WAITING_FOR_PERMITS and not is_asked and self._is_full(attempt):
            return None
        return f"{attempt.step_id} is {attempt.status}, and nothing will move it"

    def _waits_for_children(self, attempt: Any, *, is_asked: bool) -> str | None:
        children = self.picture.children(attempt.uuid)
        live = [child for child in children if not is_over(child)]
        if not live:
            return f"{attempt.step_id} waits for children that are over"
        artifact = json.loads(attempt.artifacts).get(LOOP)
        is_failing = any(is_over(child) and child.status != RunStatus.SUCCEEDED for child in children)
        if artifact and not is_asked and not is_failing and artifact["launched"] < artifact["total"]:
            return f"{attempt.step_id} has room for more" if len(live) < WINDOW else None
        return None

    def _is_full(self, attempt: Any) -> bool:
        """Tell whether one of the permits that an attempt waits for is taken, or about to be."""
        for mine in (claim for claim in self.picture.claims if claim.attempt_uuid == attempt.uuid):
            limit = mine.max_held if mine.max_held is not None else self._tag_limit(mine.permit)
            rivals = [claim for claim in self.picture.claims if claim.permit == mine.permit]
            taken = sum(claim.is_held or claim.run_uuid in self.picture.tasks for claim in rivals)
            if limit is not None and taken >= limit:
                return True
        return False

    def _tag_limit(self, permit: str) -> int | None:
        return self.picture.limits.get(permit.removeprefix("tag:"))

    # Attempts.

    def _check_attempt(self, attempt: Any) -> None:
        before, self._statuses[attempt.uuid] = self._statuses.get(attempt.uuid), attempt.status
        if before == attempt.status or not S(attempt.status).is_terminal:
            assert before is None or before == attempt.status or S(before) not in FINAL, f"{before} was not the end"
            return
        assert before is None or S(before) not in FINAL, f"an attempt that was {before} became {attempt.status}"
        run = self.picture.runs[attempt.run_uuid]
        allowed = self._allowed(attempt, run)
        where = f"{run.workflow_id}/{run.instance_id}/{run.run_id}/{attempt.step_id}/{attempt.attempt_id}"
        assert S(attempt.status) in allowed, f"{where} is {attempt.status}, not one of {allowed}"

    def _allowed(self, attempt: Any, run: Any) -> set[StepStatus]:
        """Return the ends of an attempt that what has been asked and said can explain."""
        shape, step, model = shape_of(run), attempt.step_id, self.model
        statuses, around = self.statuses(run), list(self.around(run))
        allowed = model.step_ends([attempt.uuid, run.uuid, *around], shape.modes.get(step))
        if not is_satisfied(shape, step, statuses, self.n_of(run)):
            return {S.UNSATISFIED}
        if self.is_cut(run):
            allowed.add(S.STOPPED)
        if model.skipped.get(run.uuid) == step:
            allowed.add(S.SKIPPED)
        said = model.said.get(attempt.uuid)
        if step in shape.composite:
            children = self.picture.children(attempt.uuid)
            if any(child.uuid in model.by_hand for child in children):
                return set(S)
            if not children and model.by_hand:  # someone else runs the child again just now
                allowed.add(S.FATALLY_FAILED)
            ends = {S.SUCCEEDED} | {AS_STEP[RunStatus(child.status)] for child in children if is_over(child)}
            return allowed | {AS_STEP[worst(ends)]}
        if step in shape.immediate:
            return allowed | {S.SUCCEEDED}
        if said is None or said.was_asked:
            return allowed
        end = ended_as(shape, step, said)
        return {end} | (allowed if end not in FINAL or model.is_asked(*around) else set())

    # What is counted.

    def _check_strategy(self, workflow_id: str) -> None:
        shape = SHAPES[workflow_id]
        runs = [run for run in self.picture.runs.values() if run.workflow_id == workflow_id]
        live = [run for run in runs if not is_over(run)]
        active, queued = [run for run in live if not run.is_queued], [run for run in live if run.is_queued]
        assert len(active) <= shape.limit, f"{workflow_id}: {len(active)} instances run"
        is_blocked = shape.rule == "STRICT_SEQUENTIAL" and any(run.is_blocking for run in runs)
        assert not queued or len(active) == shape.limit or is_blocked, f"{workflow_id}: instances wait for nothing"
        first = [run for run in runs if run.run_id == 1]
        begun = [run.instance_id for run in first if run.started_at is not None]
        waiting = [run.instance_id for run in first if run.is_queued]
        assert not begun or not waiting or max(begun) < min(waiting), f"{workflow_id}: not first come, first served"
        numbers = sorted({run.instance_id for run in runs})
        assert numbers == list(range(1, len(numbers) + 1)), f"{workflow_id}: instances {numbers}"

    def _check_numbers(self) -> None:
        attempts: dict[tuple[str, str], list[Any]] = {}
        for attempt in self.picture.attempts.values():
            attempts.setdefault((attempt.run_uuid, attempt.step_id), []).append(attempt)
        for mine in attempts.values():
            assert [attempt.attempt_id for attempt in mine] == list(range(1, len(mine) + 1))
            assert all(attempt.is_superseded for attempt in mine[:-1])
            assert all(S(attempt.status).is_terminal for attempt in mine[:-1])
        for attempt in self.picture.attempts.values():
            live = [child for child in self.picture.children(attempt.uuid) if not is_over(child)]
            assert len(live) <= WINDOW, "more iterations than the window allows"

    def _check_permits(self) -> None:
        attempts = self.picture.attempts
        for claim in self.picture.claims:
            wanted = S.RUNNING if claim.is_held else S.WAITING_FOR_PERMITS
            assert attempts[claim.attempt_uuid].status == wanted, f"{claim} of {attempts[claim.attempt_uuid].status}"
        holding = {(claim.permit, claim.attempt_uuid) for claim in self.picture.claims if claim.is_held}
        held = Counter(permit for permit, _ in holding)
        for attempt in attempts.values():
            run = self.picture.runs[attempt.run_uuid]
            if self._needs_worker(shape_of(run), attempt):
                assert (f"workflow:{run.owner_workflow}", attempt.uuid) in holding, "a step runs without a permit"
                assert all((f"tag:{tag}", attempt.uuid) in holding for tag in json.loads(attempt.tags))
        for workflow_id, shape in SHAPES.items():
            assert held[f"workflow:{workflow_id}"] <= shape.step_limit, f"too many steps of {workflow_id} run"
        limit = self.picture.limits.get("few", 1_000)
        assert held["tag:few"] <= max(limit, self._held), "too many steps with the tag run"
        self._held = held["tag:few"]

    def _check_events(self) -> None:
        """Each change of a status is told once, and each end once."""
        last: dict[tuple[str, str | None, int | None], str] = {}
        ends: Counter[tuple[str, str | None, int | None]] = Counter()
        for event in self.picture.events:
            place = (event.run_uuid, event.step_id, event.attempt_id)
            first = None if event.step_id is None else S.NOT_CREATED.value
            assert event.before == last.get(place, first), f"{place} went from {event.before} to {event.after}"
            last[place] = event.after
            is_end = S(event.after) in FINAL if event.step_id else RunStatus(event.after).is_terminal
            ends[place] += is_end
        assert max(ends.values(), default=0) <= 1, "an end was recorded twice"
        now: dict[tuple[str, str | None, int | None], str] = {
            (row.run_uuid, row.step_id, row.attempt_id): row.status for row in self.picture.attempts.values()
        }
        now |= {(run.uuid, None, None): run.status for run in self.picture.runs.values()}
        assert last == now, "what was told last is not what is"
