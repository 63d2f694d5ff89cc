"""The run strategies, as decisions about a line of instances."""

import pytest

from calve.definition.model import Rule, RunStrategy
from calve.engine.model import QUEUE_BATCH, Arrival, QueueView, arrive, check_change, leaving, needs_all, never_begins
from calve.errors import RequestInvalid

BUSY = QueueView(queued=("q1", "q2"), active=("a1",))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Rule.SEQUENTIAL, Arrival()),
        (Rule.STRICT_SEQUENTIAL, Arrival()),
        (Rule.PARALLEL, Arrival()),
        (Rule.FIRST_ONLY, Arrival(is_refused=True)),
        (Rule.LAST_ONLY, Arrival(stopped=("q1", "q2", "a1"))),
        (Rule.SERIAL_LATEST_ONLY, Arrival(stopped=("q1", "q2"))),
    ],
)
def test_what_an_arrival_does_to_the_others(rule: Rule, expected: Arrival) -> None:
    """To those in the queue, and to those that run."""
    assert arrive(RunStrategy(rule=rule), BUSY) == expected


@pytest.mark.parametrize("rule", list(Rule))
def test_the_first_of_all_disturbs_nobody(rule: Rule) -> None:
    """An empty line takes anybody."""
    assert arrive(RunStrategy(rule=rule), QueueView()) == Arrival()


def test_as_many_leave_as_there_is_room_for() -> None:
    """At most a batch at once, the oldest first."""
    line = tuple(f"q{n}" for n in range(100))
    parallel = RunStrategy(rule=Rule.PARALLEL, workflow_concurrency=70)
    assert leaving(parallel, QueueView(line, ("a",) * 67)) == ("q0", "q1", "q2")
    assert leaving(parallel, QueueView(line)) == line[:QUEUE_BATCH]
    assert leaving(parallel, QueueView(line, ("a",) * 80)) == ()
    assert leaving(RunStrategy(rule=Rule.SEQUENTIAL), QueueView(line, ("a",))) == ()


def test_a_failure_blocks_strict_sequential_only() -> None:
    """Nobody else looks at it."""
    view = QueueView(("q1",), is_blocked=True)
    assert leaving(RunStrategy(rule=Rule.STRICT_SEQUENTIAL), view) == ()
    assert leaving(RunStrategy(rule=Rule.SEQUENTIAL), view) == ("q1",)


def test_two_rules_look_at_the_whole_queue() -> None:
    """Those that stop what waits in it."""
    assert {rule for rule in Rule if needs_all(rule)} == {Rule.LAST_ONLY, Rule.SERIAL_LATEST_ONLY}


@pytest.mark.parametrize("after", list(Rule))
@pytest.mark.parametrize("before", list(Rule))
def test_a_change_is_refused_that_the_line_contradicts(before: Rule, after: Rule) -> None:
    """Two that are not over, for the rules of one; a failure, for the strict one."""
    is_contradicted = before is not after and after in {Rule.FIRST_ONLY, Rule.LAST_ONLY, Rule.STRICT_SEQUENTIAL}
    view = QueueView(("q1",), ("a1",), is_blocked=True)
    change = (RunStrategy(rule=before), RunStrategy(rule=after))
    if is_contradicted:
        with pytest.raises(RequestInvalid):
            check_change(*change, view)
    else:
        check_change(*change, view)
    check_change(*change, QueueView(("q1",)))


@pytest.mark.parametrize("rule", [rule for rule in Rule if rule is not Rule.PARALLEL])
def test_an_instance_inside_one_of_its_own_workflow_never_begins(rule: Rule) -> None:
    """If that one waits for it; whoever else is there may end."""
    strategy = RunStrategy(rule=rule)
    assert never_begins(strategy, ["a1"], ["a1"], [])
    assert never_begins(strategy, ["other", "a1"], ["a1"], [])
    assert not never_begins(strategy, ["other"], ["a1"], [])
    assert not never_begins(strategy, ["other"], ["a1"], ["other"])


def test_as_many_can_be_inside_each_other_as_run_at_once() -> None:
    """Those that wait for others in the queue keep their places too."""
    strategy = RunStrategy(rule=Rule.PARALLEL, workflow_concurrency=2)
    assert not never_begins(strategy, ["a1", "other"], ["a1"], [])
    assert never_begins(strategy, ["a1", "a2"], ["a1", "a2"], [])
    assert never_begins(strategy, ["a1", "other"], ["a1"], ["other"])
