"""How many steps run at once: of a workflow, of a tree, of a tag."""

import pytest
from tests.engines import BUSY, Playground

from calve.engine import Outcome, Run, State, StepStatus
from calve.errors import RequestInvalid

pytestmark = pytest.mark.each_store

S = StepStatus


def jobs(number: int, keys: str = "") -> str:
    """Return steps that stand beside each other."""
    return "  jobs:\n" + "".join(f"    - job: {{id: s{n}, type: Sleep{keys}}}\n" for n in range(number))


def busy(playground: Playground, number: int = 10) -> None:
    """Let steps run until someone ends them."""
    playground.script.parts |= {f"s{n}": BUSY for n in range(number)}


def running(playground: Playground, *runs: Run) -> list[int]:
    """Return how many steps run, of each run."""
    return [list(playground.statuses(run).values()).count(S.RUNNING) for run in runs]


def end_one(playground: Playground, run: Run) -> None:
    """End a step that runs."""
    step_id = next(step_id for step_id, status in playground.statuses(run).items() if status is S.RUNNING)
    playground.engine.skip(playground.address(run, step_id))
    playground.settle()


def test_a_workflow_runs_twenty_steps_at_once_unless_it_says_otherwise(playground: Playground) -> None:
    """Over all its instances."""
    playground.push("Workflow:\n  id: w\n  run_strategy: parallel\n  step_concurrency: 3\n" + jobs(2))
    busy(playground)
    first, second = playground.start(), playground.start()
    assert running(playground, first, second) == [2, 1]
    assert playground.statuses(second) == {"s0": S.RUNNING, "s1": S.WAITING_FOR_PERMITS}
    end_one(playground, first)
    assert running(playground, first, second) == [1, 2]
    playground.push("Workflow:\n  id: v\n" + jobs(22))
    busy(playground, 22)
    assert running(playground, playground.start("v")) == [20]


def test_a_tree_of_runs_has_a_limit_of_its_own(playground: Playground) -> None:
    """Each instance by itself."""
    playground.push("Workflow:\n  id: w\n  run_strategy: parallel\n  instance_step_concurrency: 1\n" + jobs(3))
    busy(playground)
    first, second = playground.start(), playground.start()
    assert running(playground, first, second) == [1, 1]
    end_one(playground, first)
    assert running(playground, first) == [1]


def test_steps_that_only_run_others_need_no_permit(playground: Playground) -> None:
    """Else a loop could wait for itself."""
    playground.push("""
Workflow:
  id: w
  step_concurrency: 1
  jobs:
    - foreach:
        id: loop
        ranges: {i: {from: 0, to: 3}}
        jobs:
          - job: {id: s0, type: Sleep}
""")
    run = playground.start()
    assert playground.statuses(run) == {"loop": S.SUCCEEDED}


def test_a_tag_limits_steps_of_all_workflows(playground: Playground) -> None:
    """Without a limit it means nothing."""
    for name in ("v", "w"):
        playground.push(f"Workflow:\n  id: {name}\n" + jobs(2, ", tags: [warehouse]"))
    busy(playground)
    playground.engine.limit_tag("warehouse", 3)
    first, second = playground.start("v"), playground.start("w")
    assert running(playground, first, second) == [2, 1]
    assert [(permit.tag, permit.max_allowed, permit.held) for permit in playground.state.tag_permits()] == [
        ("warehouse", 3, 3)
    ]
    end_one(playground, first)
    assert running(playground, first, second) == [1, 2]


def test_raising_a_limit_wakes_who_waits(playground: Playground) -> None:
    """Lowering it takes nothing from those who have it."""
    playground.push("Workflow:\n  id: w\n" + jobs(5, ", tags: [few]"))
    busy(playground)
    playground.engine.limit_tag("few", 1)
    run = playground.start()
    assert running(playground, run) == [1]
    playground.engine.limit_tag("few", 4)
    playground.settle()
    assert running(playground, run) == [4]
    playground.engine.limit_tag("few", 2)
    playground.settle()
    assert running(playground, run) == [4]
    end_one(playground, run)
    end_one(playground, run)
    assert running(playground, run) == [2]
    assert list(playground.statuses(run).values()).count(S.WAITING_FOR_PERMITS) == 1
    end_one(playground, run)
    assert running(playground, run) == [2]


def test_lifting_a_limit_wakes_all(playground: Playground) -> None:
    """Nobody waits for a permit that nobody counts."""
    playground.push("Workflow:\n  id: w\n" + jobs(3, ", tags: [few]"))
    busy(playground)
    playground.engine.limit_tag("few", 0)
    run = playground.start()
    assert running(playground, run) == [0]
    assert playground.state.delete_tag_permit("few")
    playground.settle()
    assert running(playground, run) == [3]
    assert not playground.state.delete_tag_permit("few")


def test_those_who_wait_come_by_priority_and_then_by_age(playground: Playground) -> None:
    """The more critical first, of equals the older."""
    for name, criticality in (("slow", "low"), ("older", "medium"), ("newer", "medium"), ("urgent", "critical")):
        playground.push(
            f"Workflow:\n  id: {name}\n  criticality: {criticality}\n"
            f"  jobs:\n    - job: {{id: {name}, type: Sleep, tags: [one]}}\n"
        )
    playground.engine.limit_tag("one", 0)
    for name in ("slow", "older", "newer", "urgent"):
        playground.start(name)
    for _ in range(4):
        playground.engine.limit_tag("one", 1)
        playground.settle()
    assert playground.script.calls == ["urgent", "older", "newer", "slow"]


def test_a_step_with_two_tags_needs_both(playground: Playground) -> None:
    """It holds neither while it waits for the other."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: both, type: Sleep, tags: [x, y]}
    - job: {id: one, type: Sleep, tags: [x]}
""")
    playground.script.parts |= {"both": BUSY, "one": BUSY}
    playground.engine.limit_tag("x", 1)
    playground.engine.limit_tag("y", 0)
    run = playground.start()
    assert playground.statuses(run) == {"both": S.WAITING_FOR_PERMITS, "one": S.RUNNING}
    playground.engine.limit_tag("y", 1)
    playground.settle()
    assert playground.statuses(run)["both"] is S.WAITING_FOR_PERMITS
    playground.engine.stop(playground.address(run, "one"))
    playground.settle()
    assert playground.statuses(run)["both"] is S.RUNNING


@pytest.mark.parametrize("action", ["stop", "kill", "skip"])
def test_a_step_that_waits_for_a_permit_can_be_ended(playground: Playground, action: str) -> None:
    """It leaves the line."""
    playground.push("Workflow:\n  id: w\n" + jobs(1, ", tags: [few]"))
    playground.engine.limit_tag("few", 0)
    run = playground.start()
    getattr(playground.engine, action)(playground.address(run, "s0"))
    playground.settle()
    assert playground.statuses(run)["s0"].is_final


def test_a_step_that_waits_for_a_retry_holds_no_permit(playground: Playground) -> None:
    """Others may use it meanwhile."""
    playground.push("Workflow:\n  id: w\n  step_concurrency: 1\n" + jobs(2))
    playground.script.parts |= {"s0": Outcome(State.USER_ERROR), "s1": BUSY}
    run = playground.start()
    assert playground.statuses(run) == {"s0": S.USER_FAILED, "s1": S.RUNNING}
    playground.advance(60)
    assert playground.statuses(run) == {"s0": S.WAITING_FOR_PERMITS, "s1": S.RUNNING}


def test_a_limit_must_make_sense(playground: Playground) -> None:
    """Between nothing and a thousand."""
    for limit in (-1, 1_001):
        with pytest.raises(RequestInvalid, match="between 0 and 1000"):
            playground.engine.limit_tag("few", limit)
