"""What a restart repeats: the work of steps that nothing undoes, at any depth."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from calve.definition.model import ForeachStep, Step, TypedStep, WhileStep
from calve.engine.instances import APPROVAL, NO_OP, Address, Tools, find_run, loop_of, type_of
from calve.engine.model import Attempt, Run, RunPolicy, RunStatus
from calve.engine.restarts import CAPTURES, Fate, RestartPlan
from calve.engine.views.sources import MayRead, reads_all

_HARMLESS = frozenset({NO_OP, APPROVAL, "Sleep", "IpCommit", *CAPTURES})
"""Types of steps that do nothing, or whose work has an effect only once."""
_WRONG = (RunStatus.FAILED, RunStatus.TIMED_OUT, RunStatus.STOPPED)
_ITERATIONS = 20
"""How many iterations of a loop are examined; if more would run again, its definition says which steps may."""


def repeated_work(
    tools: Tools,
    address: Address,
    plan: RestartPlan,
    *,
    policy: RunPolicy | None = None,
    is_latest: bool = False,
    may_read: MayRead = reads_all,
) -> tuple[str, ...]:
    """Return the steps that have started their work, would repeat it, and have no targets, so that nothing undoes it.

    Steps inside others are paths without numbers: ``loop/mail``. A subworkflow that the caller may not read is
    returned itself, instead of the steps in it.
    """
    run = find_run(tools.state, Address(address.workflow_id, address.instance_id))
    again = frozenset(step.step_id for step in plan.steps if step.fate is Fate.RUNS_AGAIN)
    # Inside the other steps, only what is incomplete runs again; a newer version may run more.
    partly = again if policy is RunPolicy.RESTART_FROM_INCOMPLETE else frozenset(address.path)
    whole = again if is_latest or len(address.path) > 1 else again - partly
    return tuple(dict.fromkeys(_Repeats(tools, may_read).of_run(run, "", again, whole)))


@dataclass(frozen=True, slots=True)
class _Repeats:
    tools: Tools
    may_read: MayRead

    def of_run(self, run: Run, above: str, again: Collection[str], whole: Collection[str]) -> Iterator[str]:
        """Yield the steps of a run; those in ``whole`` repeat everything in them, others only what is incomplete."""
        snapshot = self.tools.state.load(run.uuid)
        steps = self.tools.blueprints.get(run.owner_workflow, run.version_id, run.inline_step).steps
        for attempt in snapshot.attempts if snapshot else ():
            step = steps.get(attempt.step_id)
            if step is not None and attempt.step_id in again:
                is_whole = attempt.status.is_complete or attempt.step_id in whole
                if not isinstance(step, TypedStep):
                    yield from self._below(attempt, step, above + step.id, is_whole=is_whole)
                elif "start" in attempt.times or (run.run_id, attempt.attempt_id) != (1, 1):
                    yield from _own((step,), above)

    def _below(self, attempt: Attempt, step: Step, path: str, *, is_whole: bool) -> Iterator[str]:
        children = self._children(attempt, is_whole=is_whole)
        for child in children[:_ITERATIONS]:
            if not self.may_read(child.owner_workflow):
                yield path
                return
            yield from self._inside(child, f"{path}/", is_whole=is_whole)
        if len(children) > _ITERATIONS and isinstance(step, ForeachStep | WhileStep):
            yield from _own(step.steps, f"{path}/")

    def _children(self, attempt: Attempt, *, is_whole: bool) -> list[Run]:
        loop, statuses = loop_of(attempt), () if is_whole else _WRONG
        if loop is not None:
            name = loop["loop_workflow_id"]
            return self.tools.state.iteration_runs(name, statuses=statuses, limit=_ITERATIONS + 1)
        return self.tools.state.child_runs(attempt.uuid, statuses=statuses, limit=1)

    def _inside(self, run: Run, above: str, *, is_whole: bool) -> Iterator[str]:
        snapshot = self.tools.state.load(run.uuid)
        attempts = snapshot.attempts if snapshot else ()
        again = [one.step_id for one in attempts if is_whole or not one.status.is_complete]
        return self.of_run(run, above, again, again if is_whole else ())


def _own(steps: Iterable[Step], above: str) -> Iterator[str]:
    """Yield the steps that repeat work of their own, as in the definition; a subworkflow may repeat anything."""
    for step in steps:
        if isinstance(step, ForeachStep | WhileStep):
            yield from _own(step.steps, f"{above}{step.id}/")
        elif type_of(step) not in _HARMLESS and not (isinstance(step, TypedStep) and step.targets):
            yield above + step.id
