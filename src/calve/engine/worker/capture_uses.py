"""The outcomes of the steps that use the rows of a capture, which its commit checks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from calve.definition import CapturedRows, Effect, Mark, Node, Use, readable
from calve.definition.model import SubworkflowStep
from calve.engine.instances import RunState, UnitOfWork
from calve.engine.model import Attempt, Run, RunStatus, StepStatus
from calve.engine.ports import StepEnd

PAGE = 1_000
_LOOPS = ("maestro_foreach", "maestro_while")
_NOWHERE = Node(None, Mark(1, 1), "")
_FINE = frozenset({StepStatus.SUCCEEDED, StepStatus.UNSATISFIED})
_NOT_RUN = frozenset({StepStatus.NOT_CREATED, StepStatus.UNSATISFIED})
_NOT_FINE = frozenset(status for status in StepStatus if status.is_final) - _FINE


def undelivered(work: UnitOfWork, state: RunState, commit: str, capture: str) -> tuple[StepEnd, ...]:
    """Return the steps whose rows would be lost if a capture were committed now.

    These are the steps that used it and did not succeed, unless a later step of the same run did their work. If no
    step used it at all, they are those that should have.
    """
    rows = _rows_of(work, state)
    if capture not in rows.captures:
        return ()
    uses = rows.uses(capture)
    needed = rows.deliverers(capture, uses)
    level = _Level(work, state, rows, uses, needed, rows.rows_in(capture), rows.steps[commit].loops, commit)
    return tuple(level.failed()) or level.unused()


def _rows_of(work: UnitOfWork, state: RunState) -> CapturedRows:
    workflow = _NOWHERE.made(state.blueprint.workflow.as_json())
    return CapturedRows(workflow, work.tools.vocabulary.types, readable(work.tools.files))


@dataclass(frozen=True)
class _Level:
    """A run, or an iteration inside it, with those of its steps that use the rows."""

    work: UnitOfWork
    state: RunState
    rows: CapturedRows
    uses: Mapping[str, Use]
    needed: Iterable[str]
    """The uses of which at least one must run."""
    params: Mapping[str, frozenset[str]]
    """The params of each step that refer to the rows."""
    loops: tuple[str, ...] = ()
    commit: str | None = None

    def status(self, step_id: str) -> StepStatus:
        """Return the status of a step."""
        attempt = self.state.attempts.get(step_id)
        return attempt.status if attempt else StepStatus.NOT_CREATED

    def failed(self) -> Iterator[StepEnd]:
        """Yield the uses that did not succeed and whose work no later use did."""
        ends = {step_id: tuple(self._ends(step_id)) for step_id in self._users}
        for step_id, found in ends.items():
            later = (other for other in self._users if step_id in self._before[other])
            if not any(
                self.status(other) is StepStatus.SUCCEEDED and not ends[other] and self._stands_in(other, step_id)
                for other in later
            ):
                yield from found

    def unused(self) -> tuple[StepEnd, ...]:
        """Return the steps of which at least one should have run, if none has."""
        ends: list[StepEnd] = []
        for step_id in self._needed(self.loops):
            found = self._unused(step_id)
            if not found:
                return ()
            ends += found
        return tuple(ends)

    @cached_property
    def _users(self) -> Mapping[str, Sequence[Use]]:
        """The steps of this level that use the rows, themselves or in steps inside them."""
        found: dict[str, list[Use]] = {}
        for step_id, use in self.uses.items():
            if self.rows.is_inside(step_id, self.loops):
                found.setdefault(self.rows.lifted(step_id, self.loops), []).append(use)
        return found

    @cached_property
    def _before(self) -> Mapping[str, frozenset[str]]:
        return self.rows.level(self.loops).before

    def _stands_in(self, other: str, step_id: str) -> bool:
        uses = self._users
        return all(any(later.stands_in_for(use) for later in uses[other]) for use in uses[step_id])

    def _ends(self, step_id: str) -> Iterator[StepEnd]:
        """Yield the parts of a step that did not succeed: the step itself, or steps inside it."""
        attempt = self.state.attempts.get(step_id)
        if attempt is None:
            # Only in definitions pushed with an older version of calve can a use come after its commit.
            if self.commit in self._before[step_id]:
                yield StepEnd(step_id, StepStatus.NOT_CREATED)
        elif attempt.status not in _FINE:
            yield StepEnd(step_id, attempt.status)
        elif attempt.status is StepStatus.SUCCEEDED:
            yield from self._inside(step_id, attempt)

    def _inside(self, step_id: str, attempt: Attempt) -> Iterator[StepEnd]:
        is_child = isinstance(self.state.blueprint.steps[step_id], SubworkflowStep)
        is_composed = any(self.rows.steps[use.step_id].kind != "step" for use in self._inner(step_id))
        if is_child or is_composed or (self._inner(step_id) and self._has_failed_leaves):
            for run, level in self._levels(step_id, attempt):
                if is_child and run.status is not RunStatus.SUCCEEDED:  # the step did not wait for it
                    yield StepEnd(step_id, run.status)
                    return
                place = step_id if is_child else f"{step_id}/{run.instance_id}"
                yield from (StepEnd(f"{place}/{end.path}", end.status) for end in level.failed())

    def _unused(self, step_id: str) -> tuple[StepEnd, ...]:
        """Return the parts of a step that should have run and did not: the step itself, or steps inside it."""
        attempt = self.state.attempts.get(step_id)
        if attempt is None or attempt.status in _NOT_RUN:
            return (StepEnd(step_id, self.status(step_id)),)
        is_child = isinstance(self.state.blueprint.steps[step_id], SubworkflowStep)
        if not is_child and not self._inner(step_id):
            return ()
        ends = tuple(StepEnd(each, StepStatus.NOT_CREATED) for each in self._needed((*self.loops, step_id)))
        for _, level in self._levels(step_id, attempt):
            ends = level.unused()
            if not ends:
                return ()
        return tuple(StepEnd(f"{step_id}/{end.path}", end.status) for end in ends)

    def _inner(self, step_id: str) -> list[Use]:
        """Return the uses inside a loop."""
        return [use for use in self._users[step_id] if use.step_id != step_id]

    def _levels(self, step_id: str, attempt: Attempt) -> Iterator[tuple[Run, "_Level"]]:
        """Yield the runs inside a step: the iterations of a loop, or the run of a subworkflow."""
        if isinstance(self.state.blueprint.steps[step_id], SubworkflowStep):
            for run in self.work.tools.state.child_runs(attempt.uuid, limit=1):
                child = self._read(run)
                rows, names = _rows_of(self.work, child), self.params[step_id]
                uses = rows.uses_of_params(names)
                writing = [each for each, use in uses.items() if use.effect is not Effect.READS]
                yield run, _Level(self.work, child, rows, uses, writing or uses, rows.params_in(names))
            return
        loop = next(attempt.artifacts[key] for key in _LOOPS if key in attempt.artifacts)
        for run in self._iterations(loop["loop_workflow_id"], loop.get("total", loop.get("iteration"))):
            yield run, replace(self, state=self._read(run), loops=(*self.loops, step_id), commit=None)

    def _needed(self, loops: tuple[str, ...]) -> list[str]:
        """Return the steps of a level that are needed, or that contain needed steps."""
        inside = (each for each in self.needed if self.rows.is_inside(each, loops))
        return sorted({self.rows.lifted(each, loops) for each in inside})

    def _iterations(self, name: str, total: int) -> Iterator[Run]:
        """Yield the iterations of a loop, without those of an earlier run that had more iterations."""
        after = 0
        while runs := self.work.tools.state.latest_inline(name, after=after, limit=PAGE):
            yield from (run for run in runs if run.instance_id <= total)
            after = runs[-1].instance_id

    def _read(self, run: Run) -> RunState:
        """Return a run from the store, and do not keep it in memory: a loop may have very many iterations."""
        found = self.work.state(run.uuid, is_fresh=True)
        del self.work.states[run.uuid]
        return found

    @cached_property
    def _has_failed_leaves(self) -> bool:
        """Whether any leaf step of the whole tree did not succeed: one lookup in an index."""
        return not _NOT_FINE.isdisjoint(self.work.tools.state.rollup(self.state.run.root_uuid))
