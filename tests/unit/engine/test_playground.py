"""What the tests of the engine stand on."""

from tests.engines import BUSY, Playground, live, wait_for_end

from calve.engine import RunStatus, StepStatus

TWO = """
Workflow:
  id: w
  jobs:
    - job: {id: a, type: Sleep}
    - job: {id: b, type: Sleep}
  dag: sequential
"""


def test_turns_are_taken_until_nothing_is_due(playground: Playground) -> None:
    """Without threads, and on a clock that stands still."""
    playground.push(TWO)
    run = playground.start()
    assert run.status is RunStatus.SUCCEEDED
    assert playground.script.calls == ["a", "b"]


def test_work_continues_until_the_script_says_otherwise(playground: Playground) -> None:
    """A step that is busy stays RUNNING."""
    playground.push(TWO)
    playground.script.parts["a"] = BUSY
    run = playground.start()
    assert playground.statuses(run) == {"a": StepStatus.RUNNING}


def test_a_real_worker_does_the_same(playground: Playground) -> None:
    """In threads."""
    playground.push(TWO)
    started = playground.begin()
    with live(playground):
        assert wait_for_end(playground, started.run).status is RunStatus.SUCCEEDED
