"""Exactly-once delivery of a step, with a delivery that only remembers what it was asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.unit.steps.contexts import FakeContext

from calve.capture import DeliveredUpTo
from calve.delivery import Delivery, Published, StagedTarget, Staging
from calve.engine import Outcome, State, StepContext
from calve.errors import DeliverySuperseded, StepFailed, StoreUnavailable, TargetMoved
from calve.lake import Lake, TableName
from calve.steps.failures import conflict, infrastructure_error, user_error
from calve.steps.spark.delivery import TargetDelivery
from calve.steps.spark.jobs import JobResult

NAME = TableName("lake", ("db",), "t")


@dataclass
class Remembering:
    """Deliveries that do as they are told, and remember it."""

    refusals: list[Exception] = field(default_factory=list)
    """What publishing raises, one after another."""
    is_delivered: bool = False
    done: list[str] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)

    def stage(self, targets: Sequence[str], delivery: Delivery, attempt: str) -> Staging:
        """Stage."""
        self.done.append("stage")
        self.deliveries.append(delivery)
        target = StagedTarget(NAME, "uuid", 1, 1, is_delivered=self.is_delivered)
        return Staging(delivery, attempt, f"b{len(self.deliveries)}", (target,) * len(targets))

    def publish(self, staging: Staging) -> list[Published]:
        """Publish, or refuse."""
        if self.refusals:
            self.done.append("refuse")
            raise self.refusals.pop(0)
        self.done.append(f"publish {staging.branch}")
        return [Published(NAME, 7)]

    def hold(self, staging: Staging) -> None:
        """Hold."""
        self.done.append(f"hold {staging.branch}")

    def discard(self, staging: Staging) -> None:
        """Discard."""
        self.done.append(f"discard {staging.branch}")

    def delivered(self, capture_id: str) -> bool:
        """Tell that nothing is."""
        return capture_id == ""

    def delivered_up_to(self, declared: Sequence[tuple[str, str]], consumer: str) -> DeliveredUpTo | None:  # noqa: ARG002
        """Tell that nothing is."""
        return None

    def publish_held(self, capture_id: str) -> list[Published]:
        """Publish nothing."""
        del capture_id
        return []


@dataclass
class Working:
    """Jobs that remember their branches."""

    outcome: Outcome = field(default_factory=lambda: Outcome(State.DONE, {"row_count": 3}))
    tables: frozenset[str] = frozenset()
    failure: StepFailed | None = None
    branched: frozenset[str] = frozenset()
    branches: list[str] = field(default_factory=list)
    failures: list[StepFailed] = field(default_factory=list)
    """What running raises, one after another."""

    def run(self, context: StepContext, config: Mapping[str, Any], branch: str) -> JobResult:
        """Run on a branch."""
        del context, config
        self.branches.append(branch)
        if self.failures:
            raise self.failures.pop(0)
        return JobResult(self.outcome, self.tables)

    def audit(self, context: StepContext, config: Mapping[str, Any], branch: str) -> None:
        """Audit the same branch."""
        del context, config
        assert branch == self.branches[-1]
        if self.failure is not None:
            raise self.failure


@dataclass
class Branched:
    """A lake in which some tables have the branch of the job."""

    working: Working
    name: str = ""

    def parse(self, table: str) -> TableName:
        """Return a table's name."""
        self.name = table
        return TableName("lake", ("db",), table.rpartition(".")[2])

    def catalog(self, _: str) -> "Branched":
        """Return the same."""
        return self

    def load(self, _: TableName) -> Any:
        """Return a table with the newest branch, or without."""
        refs: dict[str, Any] = {self.working.branches[-1]: {}} if self.name in self.working.branched else {}
        return SimpleNamespace(metadata={"refs": refs})


def deliver(context: FakeContext, config: Mapping[str, Any], deliveries: Remembering, working: Working) -> Outcome:
    """Deliver a job."""
    return TargetDelivery(deliveries, cast("Lake", Branched(working)), working).deliver(context, config)


@pytest.fixture
def context(tmp_path: Path) -> FakeContext:
    """Return the context of a step with a target."""
    return FakeContext(tmp_path, targets=("db.t",))


def test_a_job_writes_to_a_branch_that_is_published(context: FakeContext) -> None:
    """The outputs say so."""
    deliveries, working = Remembering(), Working()
    outcome = deliver(context, {"capture": "c1"}, deliveries, working)
    assert deliveries.done == ["stage", "publish b1"]
    assert working.branches == ["b1"]
    assert outcome.outputs == {"row_count": 3, "published": True, "branch": ""}
    assert [each["table"] for each in outcome.artifacts["published"]] == ["lake.db.t"]
    assert deliveries.deliveries[0].capture_id == "c1"
    assert "published to" in context.text


def test_what_was_delivered_is_not_done_again(context: FakeContext) -> None:
    """An earlier attempt got as far as that."""
    deliveries, working = Remembering(is_delivered=True), Working()
    outcome = deliver(context, {}, deliveries, working)
    assert (outcome.state, outcome.outputs["published"], working.branches) == (State.DONE, True, [])


def test_a_job_runs_again_if_others_wrote_to_its_target(context: FakeContext) -> None:
    """On a new branch; the old one is dropped."""
    deliveries, working = Remembering([TargetMoved()]), Working()
    outcome = deliver(context, {}, deliveries, working)
    assert deliveries.done == ["stage", "refuse", "discard b1", "stage", "publish b2"]
    assert outcome.outputs["published"] is True


def test_a_job_runs_again_if_the_commit_of_another_made_one_of_it_fail(context: FakeContext) -> None:
    """On a new branch, in the same attempt, but not for ever; other failures of the infrastructure end the attempt."""
    deliveries, working = Remembering(), Working(failures=[conflict("Cannot add snapshot")])
    outcome = deliver(context, {}, deliveries, working)
    assert deliveries.done == ["stage", "discard b1", "stage", "publish b2"]
    assert (outcome.state, "Cannot add snapshot" in context.text) == (State.DONE, True)
    for failure, runs in ((conflict("x"), 3), (infrastructure_error("x"), 1)):
        working = Working(failures=[failure] * 9)
        with pytest.raises(StepFailed) as failed:
            deliver(context, {}, Remembering(), working)
        assert failed.value.context["state"] == State.INFRASTRUCTURE_ERROR
        assert len(working.branches) == runs


def test_others_who_always_come_first_are_a_matter_for_a_retry(context: FakeContext) -> None:
    """After three times."""
    deliveries, working = Remembering([TargetMoved() for _ in range(9)]), Working()
    with pytest.raises(StepFailed, match="each of the 3 times") as failed:
        deliver(context, {}, deliveries, working)
    assert failed.value.context["state"] == State.INFRASTRUCTURE_ERROR
    assert working.branches == ["b1", "b2", "b3"]


def test_an_audit_that_fails_leaves_nothing_behind(context: FakeContext) -> None:
    """Nobody sees what was written."""
    deliveries, working = Remembering(), Working(failure=user_error("not true"))
    with pytest.raises(StepFailed, match="not true"):
        deliver(context, {}, deliveries, working)
    assert deliveries.done == ["stage", "discard b1"]
    assert context.kept == [{"published": []}]


def test_a_job_that_fails_publishes_nothing(context: FakeContext) -> None:
    """Its own outcome stands."""
    deliveries, working = Remembering(), Working(outcome=Outcome(State.USER_ERROR, message="no"))
    assert deliver(context, {}, deliveries, working).message == "no"
    assert deliveries.done == ["stage", "discard b1"]
    assert context.kept == [{"published": []}]


def test_what_a_target_may_have_taken_is_not_called_unpublished(context: FakeContext) -> None:
    """An earlier try may have reached one of them, or publishing itself failed."""
    with pytest.raises(StepFailed, match="away"):
        deliver(context, {}, Remembering([StoreUnavailable("away")]), Working())
    assert context.kept == []


def test_an_interrupted_step_publishes_nothing(context: FakeContext) -> None:
    """Also if the job was over just before."""
    deliveries, working = Remembering(), Working()
    context.interruption.set()
    with pytest.raises(StepFailed, match="interrupted"):
        deliver(context, {}, deliveries, working)
    assert deliveries.done == ["stage", "discard b1"]


def test_what_is_left_for_the_commit_is_held(context: FakeContext) -> None:
    """Others may look at the branch until then."""
    deliveries, working = Remembering(), Working()
    outcome = deliver(context, {"publish": "commit", "capture": "c1"}, deliveries, working)
    assert deliveries.done == ["stage", "hold b1"]
    assert (outcome.outputs["published"], outcome.outputs["branch"]) == (False, "b1")


def test_only_a_capture_can_be_waited_for(context: FakeContext) -> None:
    """Without one, nothing would ever publish it."""
    with pytest.raises(StepFailed, match="no capture"):
        deliver(context, {"publish": "commit", "capture": ""}, Remembering(), Working())


def test_a_table_that_took_the_branch_but_is_no_target_is_named(context: FakeContext) -> None:
    """Else its rows would be lost without a word; one that was written to as always is the user's affair."""
    both = frozenset({"lake.db.u", "lake.db.v", "lake.db.t"})
    deliveries, working = Remembering(), Working(tables=both, branched=frozenset({"lake.db.u", "lake.db.t"}))
    with pytest.raises(StepFailed, match=r"to lake\.db\.u went to the step's branch"):
        deliver(context, {}, deliveries, working)
    assert deliveries.done == ["stage", "discard b1"]


@pytest.mark.parametrize(
    ("error", "state"), [(DeliverySuperseded(), State.FATAL_ERROR), (StoreUnavailable(), State.INFRASTRUCTURE_ERROR)]
)
def test_a_delivery_that_is_refused_is_final_and_a_database_that_is_unavailable_is_not(
    context: FakeContext, error: Exception, state: State
) -> None:
    """The engine retries the latter."""
    with pytest.raises(StepFailed) as failed:
        deliver(context, {}, Remembering([error]), Working())
    assert failed.value.context["state"] == state
