"""Addresses of instances, of their runs, and of steps in them at any depth."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from calve.engine.model import Attempt, Json, Run
from calve.engine.ports import Instances
from calve.errors import RequestInvalid, WorkflowMissing

_PATH = re.compile(r"(?:\D[^/]*/(?:\d{1,18}/)?)*\D[^/]*/")
"""Step ids, each optionally followed by an iteration number; the last part is a step id."""
_LOOPS = ("maestro_foreach", "maestro_while")


@dataclass(frozen=True, slots=True)
class Address:
    """An instance, or with a path a step in it: ``job``, ``loop/3/job``, ``subworkflow/job``."""

    workflow_id: str
    instance_id: int
    run_id: int | None = None
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        run = "" if self.run_id is None else f" run {self.run_id}"
        step = f" step {'/'.join(self.path)}" if self.path else ""
        return f"{self.workflow_id} instance {self.instance_id}{run}{step}"

    @property
    def steps(self) -> tuple[str, ...]:
        """The step ids of the path, outermost first."""
        return tuple(part for part in self.path if not part.isdecimal())

    @property
    def iterations(self) -> tuple[int, ...]:
        """The iteration numbers of the path, outermost first."""
        return tuple(int(part) for part in self.path if part.isdecimal())


@dataclass(frozen=True, slots=True)
class Found:
    """What an address refers to: the run that contains the step, and the step's newest attempt, if it has one."""

    run: Run
    step_id: str = ""
    attempt: Attempt | None = None


def find_run(instances: Instances, address: Address) -> Run:
    """Return the run of the instance that an address names, ignoring its path.

    Raises:
        WorkflowMissing: the instance or the run does not exist.
    """
    run = instances.run(address.workflow_id, address.instance_id, address.run_id)
    if run is None:
        number = f"instance {address.instance_id}"
        what = number if address.run_id is None else f"{number} with run {address.run_id}"
        raise WorkflowMissing(
            f"Workflow {address.workflow_id} has no {what}.",
            remedy=f"List its instances with: calve instances {address.workflow_id}.",
            workflow=address.workflow_id,
            instance=address.instance_id,
        )
    return run


def not_begun(address: Address) -> WorkflowMissing:
    """Return the error for a step without an attempt."""
    return WorkflowMissing(
        f"{address} has not started, or does not exist.",
        remedy=f"List the steps with: calve status {address.workflow_id} {address.instance_id}.",
        workflow=address.workflow_id,
        instance=address.instance_id,
    )


def find(instances: Instances, address: Address, enter: Callable[[Run], None] = lambda _: None) -> Found:
    """Return what an address refers to; call ``enter`` with each child run on the path, which may refuse it.

    Raises:
        WorkflowMissing: the instance does not exist, or a step on the way has not started.
        RequestInvalid: the path is invalid.
    """
    run = find_run(instances, address)
    if not address.path:
        return Found(run)
    if not _PATH.fullmatch(f"{'/'.join(address.path)}/"):
        raise RequestInvalid(
            f"{address}: the path of the step is invalid.", remedy="Write it like job, loop/3/job or subworkflow/job."
        )
    for part, following in pairwise(address.path):
        if not part.isdecimal():
            run = _inside(instances, run, part, following, address)
            enter(run)
    step_id = address.path[-1]
    return Found(run, step_id, instances.newest_attempt(run.workflow_id, run.instance_id, step_id))


def find_attempt(instances: Instances, address: Address, attempt_id: int | None = None) -> tuple[Run, Attempt]:
    """Return an attempt of a step, the newest if none is named, and the run that contains the step.

    Raises:
        WorkflowMissing: the instance, the step or the attempt does not exist.
        RequestInvalid: the path is invalid.
    """
    found = find(instances, address)
    if attempt_id is None and address.run_id is None and found.attempt is not None:
        return found.run, found.attempt
    known = _attempts(instances, found, address)
    chosen = [attempt for attempt in known if attempt_id in {None, attempt.attempt_id}]
    if not chosen:
        raise _no_attempt(address, attempt_id, known) if known else not_begun(address)
    return found.run, chosen[-1]


def _attempts(instances: Instances, found: Found, address: Address) -> list[Attempt]:
    """Return the attempts of a step in the run that an address names, or else in the last run that tried the step."""
    if address.run_id is not None and len(address.path) > 1:
        return _left(instances, found.run, found.step_id)
    if address.run_id is not None:
        return instances.attempts(found.run.uuid, found.step_id)
    return instances.attempts(found.attempt.run_uuid, found.step_id) if found.attempt is not None else []


def _no_attempt(address: Address, attempt_id: int | None, known: list[Attempt]) -> WorkflowMissing:
    numbers = ", ".join(str(attempt.attempt_id) for attempt in known)
    return WorkflowMissing(
        f"{address} has no attempt {attempt_id}.",
        remedy=f"It has {numbers}.",
        workflow=address.workflow_id,
        instance=address.instance_id,
    )


def _inside(instances: Instances, run: Run, step_id: str, following: str, address: Address) -> Run:
    """Return the child run of a step: the iteration that follows in the path, or the subworkflow's instance.

    If the address names an older run, return the child as that run left it.
    """
    is_old = address.run_id is not None and not run.is_latest
    if is_old:
        attempt = next(reversed(_left(instances, run, step_id)), None)
    else:
        attempt = instances.newest_attempt(run.workflow_id, run.instance_id, step_id)
    loop = None if attempt is None else loop_of(attempt)
    child = None
    if loop is not None and following.isdecimal():
        name, number = loop["loop_workflow_id"], int(following)
        child = _iteration(instances, run, name, number) if is_old else instances.run(name, number)
    elif loop is None and attempt is not None and not following.isdecimal():
        child = _subworkflow(instances, attempt, is_old=is_old)
    if child is None:
        raise WorkflowMissing(f"{address} does not exist: {step_id} contains nothing called {following}.")
    return child


def _left(instances: Instances, run: Run, step_id: str) -> list[Attempt]:
    """Return the attempts of a step in a run: its own, or those of the run from which it was carried over."""
    own = instances.attempts(run.uuid, step_id)
    kept = None if own or step_id not in run.carried else instances.attempt(run.carried[step_id])
    return own if kept is None else instances.attempts(kept.run_uuid, step_id)


def _iteration(instances: Instances, run: Run, name: str, number: int) -> Run | None:
    """Return the newest run of an iteration that was started by this run of the instance, or by an earlier one."""
    until = {one.uuid for one in instances.runs(run.workflow_id, run.instance_id) if one.run_id <= run.run_id}
    known = (one for one in instances.runs(name, number) if one.parent is not None and one.parent.run_uuid in until)
    return next(known, None)


def _subworkflow(instances: Instances, attempt: Attempt, *, is_old: bool) -> Run | None:
    """Return the instance of a subworkflow; for an old run, the run of it that the attempt started."""
    started = {} if attempt.is_leaf else attempt.artifacts.get("maestro_subworkflow", {})
    if is_old and "subworkflow_run_id" in started:
        place = ("subworkflow_id", "subworkflow_instance_id", "subworkflow_run_id")
        return instances.run(*(started[name] for name in place))
    return next(iter(instances.child_runs(attempt.uuid, limit=1)), None)


def loop_of(attempt: Attempt) -> Json | None:
    """Return what an attempt of a loop stores about its iterations; None if the attempt is not of a loop."""
    # The work of a leaf step may store artifacts under any name, also under these.
    artifacts = {} if attempt.is_leaf else attempt.artifacts
    return next((artifacts[key] for key in _LOOPS if key in artifacts), None)
