"""Delivers the rows of a job to its targets exactly once: written to a branch, audited, published in one commit each.

The job writes to a branch of its attempt (``spark.wap.branch``). If others write to a target meanwhile, and the job did
more than append, or if their commit made one of the job fail, the job runs again on their version. A job whose rows
were already delivered does not run.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from calve.delivery import Delivery, Published, Staging
from calve.engine import Outcome, State, StepContext
from calve.errors import BranchLost, CalveError, LeaseLost, StepFailed, TargetMoved
from calve.lake import Lake
from calve.steps.failures import (
    failure_of,
    fatal,
    infrastructure_error,
    interrupted,
    is_conflict,
    message_of,
    user_error,
)
from calve.steps.services import Deliveries
from calve.steps.spark.jobs import JobResult

T = TypeVar("T")
RUNS = 3
"""The maximum number of runs of a job whose targets others write to."""


class AuditedJobs(Protocol):
    """Runs and audits a step's job: ``calve.steps.spark.jobs.Jobs``."""

    def run(self, context: StepContext, config: Mapping[str, Any], branch: str) -> JobResult:
        """Run the job, which writes to a branch."""
        ...

    def audit(self, context: StepContext, config: Mapping[str, Any], branch: str) -> None:
        """Check what it wrote to the branch."""
        ...


@dataclass(frozen=True, slots=True)
class TargetDelivery:
    """Delivers the jobs of steps with targets."""

    deliveries: Deliveries
    lake: Lake
    jobs: AuditedJobs

    def deliver(self, context: StepContext, config: Mapping[str, Any]) -> Outcome:
        """Open a branch, run the job on it, audit it and publish it.

        Raises:
            StepFailed: the job, its audit or the delivery failed; no reader of a target sees what it wrote.
        """
        delivery = _delivery(context, config)
        for number in range(1, RUNS + 1):
            staging = _or_failure(lambda: self.deliveries.stage(context.targets, delivery, context.key))
            if staging.is_delivered:
                context.log("-- the targets already contain these rows, so the job does not run\n")
                return Outcome(State.DONE, {"published": True, "branch": "", "row_count": 0})
            try:
                return self._run_on(staging, context, config)
            except (TargetMoved, BranchLost) as moved:
                context.log(f"-- {message_of(moved)}\n")
                self._discard(staging, context)
            except StepFailed as failure:
                if not is_conflict(failure):
                    raise
                context.log(f"-- {message_of(failure)}\n")
            if number < RUNS and not context.is_interrupted():
                context.log(f"-- the job runs again, on the version of others: {number + 1} of {RUNS}\n")
        if context.is_interrupted():
            raise interrupted("The step")
        raise infrastructure_error(f"Others wrote to the targets each of the {RUNS} times that the job ran.")

    def _run_on(self, staging: Staging, context: StepContext, config: Mapping[str, Any]) -> Outcome:
        """Run the job on the attempt's branch and publish it; drop the branch if anything fails."""
        branch = staging.branch
        context.log(f"-- writing to the branch {branch} of {', '.join(context.targets)}\n")
        try:
            result = self.jobs.run(context, config, branch)
            if result.outcome.state is State.DONE:
                self._check_strays(staging, result.written)
                self.jobs.audit(context, config, branch)
                if context.is_interrupted():
                    raise interrupted("The step")
        except StepFailed:
            self._give_up(staging, context)
            raise
        if result.outcome.state is not State.DONE:
            self._give_up(staging, context)
            return result.outcome
        try:
            return self._publish(staging, context, config, result.outcome)
        except StepFailed:
            self._discard(staging, context)
            raise

    def _give_up(self, staging: Staging, context: StepContext) -> None:
        """Drop the branch of a failed job, and record in the artifacts that nothing of it was published."""
        self._discard(staging, context)
        if not any(target.is_delivered for target in staging.targets):
            context.keep({"published": []})

    def _publish(self, staging: Staging, context: StepContext, config: Mapping[str, Any], outcome: Outcome) -> Outcome:
        if _waits_for_commit(config):
            _or_failure(lambda: self.deliveries.hold(staging))
            context.log(f"-- held on the branch {staging.branch} until the capture is committed\n")
            return replace(outcome, outputs={**outcome.outputs, "published": False, "branch": staging.branch})
        published = _or_failure(lambda: self.deliveries.publish(staging))
        for one in published:
            context.log(f"-- {_log_line(one)}\n")
        artifacts = {**outcome.artifacts, "published": [one.as_json() for one in published]}
        return replace(outcome, outputs={**outcome.outputs, "published": True, "branch": ""}, artifacts=artifacts)

    def _check_strays(self, staging: Staging, written: Iterable[str]) -> None:
        """Refuse rows on the branch of a table that is not a target: they would never be published."""
        targets = {str(target.name) for target in staging.targets}
        strays = sorted(table for table in set(written) - targets if self._has_branch(table, staging.branch))
        if strays:
            raise user_error(
                f"What the step wrote to {', '.join(strays)} went to the step's branch, because write.wap.enabled is "
                "set there.",
                remedy="Name the table among the step's targets, or unset write.wap.enabled on it.",
            )

    def _has_branch(self, table: str, branch: str) -> bool:
        try:
            name = self.lake.parse(table)
            metadata = self.lake.catalog(name.catalog).load(name).metadata
        except CalveError:
            return False
        return branch in metadata.get("refs", {})

    def _discard(self, staging: Staging, context: StepContext) -> None:
        try:
            self.deliveries.discard(staging)
        except LeaseLost:
            raise
        except CalveError as error:
            context.log(f"-- the branch {staging.branch} is left behind: {error.message}\n")


def _delivery(context: StepContext, config: Mapping[str, Any]) -> Delivery:
    capture_id = str(config.get("capture") or "") or None
    if _waits_for_commit(config) and capture_id is None:
        raise fatal(
            "spark.publish is commit, but the step works on no capture whose commit could publish it.",
            remedy="Name the capture in spark.capture, or leave spark.publish out.",
        )
    run = context.title.rpartition("/")[0]
    return Delivery(context.place.stream, capture_id, run, context.place.part)


def _waits_for_commit(config: Mapping[str, Any]) -> bool:
    return config.get("publish") == "commit"


def _log_line(one: Published) -> str:
    if one.is_repeated:
        return f"{one.target} already contained these rows"
    how = ", after what others appended meanwhile" if one.is_reappended else ""
    return f"published to {one.target}, snapshot {one.snapshot_id}{how}"


def _or_failure(use_case: Callable[[], T]) -> T:
    """Turn an error of delivery into a failure of the step, except errors that another run of the job can fix."""
    try:
        return use_case()
    except (TargetMoved, BranchLost, LeaseLost, StepFailed):
        raise
    except CalveError as error:
        raise failure_of(error) from error
