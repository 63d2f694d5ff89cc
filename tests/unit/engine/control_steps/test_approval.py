"""Approval: enough people, in time."""

import pytest
from tests.engines import Playground

from calve.engine import StepStatus
from calve.errors import ActionRefused

ASK = """
Workflow:
  id: w
  jobs:
    - job: {{id: ask, type: Approval, approval: {{message: Go on?, {options}}}}}
    - job: {{id: after, type: NoOp, '!who': ask__decided_by, '!what': ask__decision, '!why': ask__comment}}
  dag: sequential
"""


def ask(options: str = "min_approvals: 1") -> str:
    """Return a workflow that asks."""
    return ASK.format(options=options)


def test_a_person_approves(playground: Playground) -> None:
    """Until then nothing is in the queue; after that, who it was stands in the outputs."""
    playground.push(ask())
    run = playground.start()
    assert playground.statuses(run) == {"ask": StepStatus.RUNNING}
    assert sum(playground.state.counts().values()) == 0
    playground.engine.approve(playground.address(run, "ask"), by="ann", comment="looks good")
    playground.settle()
    assert playground.statuses(run) == {"ask": StepStatus.SUCCEEDED, "after": StepStatus.SUCCEEDED}
    assert [playground.result(run, "after", name) for name in ("who", "what", "why")] == [
        "ann",
        "approved",
        "looks good",
    ]
    assert "approved by ann: looks good" in playground.told(run, "ask")


def test_several_people_have_to_approve(playground: Playground) -> None:
    """The same one twice counts once."""
    playground.push(ask("min_approvals: 2"))
    run = playground.start()
    for _ in range(2):
        playground.engine.approve(playground.address(run, "ask"), by="ann")
        playground.settle()
    assert playground.statuses(run) == {"ask": StepStatus.RUNNING}
    playground.engine.approve(playground.address(run, "ask"), by="bob")
    playground.settle()
    assert playground.result(run, "after", "who") == "ann, bob"


def test_decisions_that_come_together_all_count(playground: Playground) -> None:
    """None is lost because the engine had no time to look at the first."""
    playground.push(ask("min_approvals: 2"))
    run = playground.start()
    playground.engine.approve(playground.address(run, "ask"), by="ann")
    playground.engine.approve(playground.address(run, "ask"), by="bob")
    playground.settle()
    assert playground.result(run, "after", "who") == "ann, bob"


def test_only_those_who_are_asked_may_decide(playground: Playground) -> None:
    """Others are refused, and told whom to ask."""
    playground.push(ask("approvers: [ann, bob]"))
    run = playground.start()
    with pytest.raises(ActionRefused, match="eve may not decide"):
        playground.engine.approve(playground.address(run, "ask"), by="eve")
    playground.engine.reject(playground.address(run, "ask"), by="bob")
    playground.settle()
    assert playground.statuses(run) == {"ask": StepStatus.FATALLY_FAILED}


def test_one_who_rejects_is_enough(playground: Playground) -> None:
    """Whatever others have said; the step fails."""
    playground.push(ask("min_approvals: 2"))
    run = playground.start()
    playground.engine.approve(playground.address(run, "ask"), by="ann")
    playground.engine.reject(playground.address(run, "ask"), by="bob", comment="no")
    playground.settle()
    assert playground.statuses(run) == {"ask": StepStatus.FATALLY_FAILED}
    assert playground.result(run, "ask", "decision") == "rejected"
    assert "rejected by bob: no" in playground.told(run, "ask")


def test_who_changes_their_mind_is_heard(playground: Playground) -> None:
    """The last word counts, as long as the step waits."""
    playground.push(ask())
    run = playground.start()
    playground.engine.reject(playground.address(run, "ask"), by="ann")
    playground.engine.approve(playground.address(run, "ask"), by="ann")
    playground.settle()
    assert playground.statuses(run)["ask"] is StepStatus.SUCCEEDED


def test_a_rejection_may_be_an_answer_too(playground: Playground) -> None:
    """The step succeeds, and edges look at the decision."""
    playground.push(ask("on_reject: succeed"))
    run = playground.start()
    playground.engine.reject(playground.address(run, "ask"), by="ann")
    playground.settle()
    assert playground.statuses(run)["after"] is StepStatus.SUCCEEDED
    assert playground.result(run, "after", "what") == "rejected"


@pytest.mark.parametrize(
    ("choice", "status", "decision"),
    [
        ("reject", StepStatus.FATALLY_FAILED, "rejected"),
        ("approve", StepStatus.SUCCEEDED, "approved"),
    ],
)
def test_nobody_decides_in_time(playground: Playground, choice: str, status: StepStatus, decision: str) -> None:
    """What the step says counts then, and nobody is named."""
    playground.push(ask(f"timeout: 1 hour, on_timeout: {choice}"))
    run = playground.start()
    playground.advance(3_599)
    assert playground.statuses(run) == {"ask": StepStatus.RUNNING}
    playground.advance(1)
    assert playground.statuses(run)["ask"] is status
    assert playground.result(run, "ask", "decision") == decision
    assert playground.result(run, "ask", "decided_by") == ""


def test_a_timeout_that_makes_no_sense_fails_the_step(playground: Playground) -> None:
    """It may come from a param, so it is known only now."""
    playground.push(ask("timeout: '${much}'").replace("  id: w", "  id: w\n  much: soon"))
    run = playground.start()
    assert playground.statuses(run) == {"ask": StepStatus.FATALLY_FAILED}
    assert "soon" in playground.told(run, "ask")


def test_a_decision_that_waits_does_not_keep_the_step_from_being_stopped(playground: Playground) -> None:
    """An action is carried out whatever was decided before."""
    playground.push(ask("min_approvals: 2"))
    run = playground.start()
    playground.engine.approve(playground.address(run, "ask"), by="ann")
    playground.engine.stop(playground.address(run, "ask"))
    playground.settle()
    assert playground.statuses(run) == {"ask": StepStatus.STOPPED}


def test_a_decision_may_come_before_the_question(playground: Playground) -> None:
    """The step runs as soon as its tag lets it; the engine looks at it a moment later."""
    playground.push(ask().replace("type: Approval,", "type: Approval, tags: [slow],"))
    playground.engine.limit_tag("slow", 1)
    run = playground.begin().run
    playground.do(playground.claim()[0])
    assert playground.statuses(run) == {"ask": StepStatus.RUNNING}
    playground.engine.approve(playground.address(run, "ask"), by="ann")
    playground.settle()
    assert playground.result(run, "after", "who") == "ann"
