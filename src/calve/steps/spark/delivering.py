"""Delivers what a step writes to its targets exactly once: on a branch, audited, published in one commit a target.

The job writes to a branch of the attempt's own (``spark.wap.branch``). If others write to a target meanwhile and the
job did more than append, it runs again on what they wrote. What was delivered already is not done again.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from calve.delivery import Delivery, Published, Staging
from calve.engine.ports import Outcome, State, StepContext
from calve.errors import BranchLost, CalveError, LeaseLost, StepFailed, TargetMoved
from calve.steps.failures import fatal, of_error, of_platform, of_user, stopped, told
from calve.steps.services import Deliveries

T = TypeVar("T")
TRIES = 3
"""How often the job runs at most because others write to its targets."""


@dataclass(frozen=True, slots=True)
class Worked:
    """What came of running a job once."""

    outcome: Outcome
    tables: frozenset[str] = frozenset()
    """The tables that it wrote to, as far as is known."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is delivered: the work, given the branch to write to; and the look at it before anybody else sees it."""

    run: Callable[[str], Worked]
    audit: Callable[[str], None]
    has_branch: Callable[[str, str], bool]
    """Tells whether a table, as a job's plan names it, has a branch; False for one that is not there."""


def deliver(context: StepContext, config: Mapping[str, Any], deliveries: Deliveries, job: Job) -> Outcome:
    """Run a job so that its targets hold what it writes exactly once.

    Raises:
        StepFailed: the job, its audit or the delivery failed; nobody sees what it wrote.
    """
    delivery = _delivery(context, config)
    is_held = config.get("publish") == "commit"
    if is_held and delivery.capture_id is None:
        raise fatal(
            "spark.publish is commit, but the step works on no capture whose commit could publish it.",
            remedy="Name the capture in spark.capture, or leave spark.publish out.",
        )
    for number in range(1, TRIES + 1):
        staging = _asked(lambda: deliveries.stage(context.targets, delivery, context.key))
        if staging.is_delivered:
            context.log("-- the targets hold this already; nothing is run\n")
            return Outcome(State.DONE, {"published": True, "branch": "", "row_count": 0})
        try:
            return _once(context, deliveries, job, staging, is_held=is_held)
        except (TargetMoved, BranchLost) as moved:
            context.log(f"-- {told(moved)}\n")
            _discard(context, deliveries, staging)
            if number < TRIES and not context.is_interrupted():
                context.log(f"-- the job runs again, on what others wrote: {number + 1} of {TRIES}\n")
    if context.is_interrupted():
        raise stopped("The step")
    raise of_platform(f"Others wrote to the targets each of the {TRIES} times that the job ran.")


def _delivery(context: StepContext, config: Mapping[str, Any]) -> Delivery:
    run = context.title.rpartition("/")[0]
    return Delivery(context.place.stream, str(config.get("capture") or "") or None, run, context.place.part)


def _once(context: StepContext, deliveries: Deliveries, job: Job, staging: Staging, *, is_held: bool) -> Outcome:
    """Run the job on a branch, and publish it; drop the branch if it comes to nothing."""
    context.log(f"-- writing to the branch {staging.branch} of {', '.join(context.targets)}\n")
    try:
        worked = job.run(staging.branch)
        if worked.outcome.state is State.DONE:
            _check_strays(staging, worked.tables, job.has_branch)
            job.audit(staging.branch)
            if context.is_interrupted():
                raise stopped("The step")
            return _published(context, deliveries, staging, worked.outcome, is_held=is_held)
    except StepFailed:
        _discard(context, deliveries, staging)
        raise
    _discard(context, deliveries, staging)
    return worked.outcome


def _published(
    context: StepContext, deliveries: Deliveries, staging: Staging, outcome: Outcome, *, is_held: bool
) -> Outcome:
    if is_held:
        _asked(lambda: deliveries.hold(staging))
        context.log(f"-- held on the branch {staging.branch} until the capture is committed\n")
        more: dict[str, Any] = {"published": False, "branch": staging.branch}
    else:
        published = _asked(lambda: deliveries.publish(staging))
        for one in published:
            context.log(f"-- {_told(one)}\n")
        kept = {"published": [one.as_json() for one in published]}
        outcome = replace(outcome, artifacts={**outcome.artifacts, **kept})
        more = {"published": True, "branch": ""}
    return replace(outcome, outputs={**outcome.outputs, **more})


def _told(one: Published) -> str:
    if one.is_repeated:
        return f"{one.target} had it already"
    how = ", after what others appended meanwhile" if one.is_reappended else ""
    return f"published to {one.target}, snapshot {one.snapshot_id}{how}"


def _check_strays(staging: Staging, tables: Iterable[str], has_branch: Callable[[str, str], bool]) -> None:
    """Find tables that took the branch for theirs but are no targets: nobody would ever see what was written there."""
    declared = {str(target.name) for target in staging.targets}
    strays = sorted(table for table in set(tables) - declared if has_branch(table, staging.branch))
    if strays:
        raise of_user(
            f"What the step wrote to {', '.join(strays)} went to the step's branch, as write.wap.enabled is set there.",
            remedy="Name the table among the step's targets, or unset write.wap.enabled on it.",
        )


def _discard(context: StepContext, deliveries: Deliveries, staging: Staging) -> None:
    try:
        deliveries.discard(staging)
    except LeaseLost:
        raise
    except CalveError as error:
        context.log(f"-- the branch {staging.branch} is left behind: {error.message}\n")


def _asked(ask: Callable[[], T]) -> T:
    """Return the answer of the delivery; its errors become failures of the step, but for those that a re-run cures."""
    try:
        return ask()
    except (TargetMoved, BranchLost, LeaseLost, StepFailed):
        raise
    except CalveError as error:
        raise of_error(error) from error
