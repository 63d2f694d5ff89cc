"""Sleep waits without holding a worker."""

from pathlib import Path

from tests.unit.steps.contexts import FakeContext

from calve.engine import State
from calve.steps.sleep import Sleep


class _Clock:
    now = 1_000_000

    def __call__(self) -> int:
        return self.now


def test_it_asks_to_be_called_again_when_the_time_is_over(tmp_path: Path) -> None:
    """The first call keeps when to wake up."""
    clock = _Clock()
    outcome = Sleep(clock).execute(FakeContext(tmp_path, {"sleep_seconds": 60}))
    assert (outcome.state, outcome.poll_after) == (State.CONTINUE, 60.0)
    assert outcome.artifacts == {"sleep_until": 1_060_000}


def test_a_call_that_comes_early_waits_the_rest(tmp_path: Path) -> None:
    """The time does not start anew; a worker that died in between changes nothing."""
    clock = _Clock()
    context = FakeContext(tmp_path, {"sleep_seconds": 60}, artifacts={"sleep_until": 1_060_000}, is_first=False)
    clock.now += 45_000
    assert Sleep(clock).execute(context).poll_after == 15.0
    clock.now += 15_000
    assert Sleep(clock).execute(context).state is State.DONE


def test_no_time_at_all_is_over_at_once(tmp_path: Path) -> None:
    """As is a step whose clock went on while no worker was there."""
    assert Sleep(_Clock()).execute(FakeContext(tmp_path, {"sleep_seconds": 0})).state is State.DONE


def test_three_seconds_are_the_default(tmp_path: Path) -> None:
    """As in Maestro."""
    assert Sleep(_Clock()).execute(FakeContext(tmp_path)).poll_after == 3.0


def test_a_reference_gives_the_time_as_text(tmp_path: Path) -> None:
    """A number in a text counts; another text, or less than nothing, does not."""
    assert Sleep(_Clock()).execute(FakeContext(tmp_path, {"sleep_seconds": "5"})).poll_after == 5.0
    wrong = Sleep(_Clock()).execute(FakeContext(tmp_path, {"sleep_seconds": "soon"}))
    assert (wrong.state, "sleep_seconds" in wrong.message) == (State.FATAL_ERROR, True)
    less = Sleep(_Clock()).execute(FakeContext(tmp_path, {"sleep_seconds": -1}))
    assert less.message == "sleep_seconds is -1; the minimum is 0."


def test_there_is_nothing_to_end(tmp_path: Path) -> None:
    """A sleep that is interrupted leaves nothing behind."""
    context = FakeContext(tmp_path)
    Sleep(_Clock()).terminate(context)
    assert context.kept == []
