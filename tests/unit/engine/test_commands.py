"""Actions on instances that others change at the same time."""

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest
from tests.engines import BUSY, Playground, Unreliable

from calve.engine import Address, Breakpoint, Engine, RunStatus, StepStatus
from calve.engine.commands import AGAIN, for_all
from calve.engine.model import Run
from calve.errors import ActionRefused, Conflict

if TYPE_CHECKING:
    from calve.engine.ports import EngineState

S = StepStatus


@pytest.fixture
def run(playground: Playground) -> Run:
    """Start an instance whose step is busy."""
    playground.push("Workflow: {id: w, run_strategy: parallel, jobs: [{job: {id: a, type: Sleep, n: 1}}]}")
    playground.script.parts["a"] = BUSY
    return playground.start()


@pytest.fixture
def store(playground: Playground) -> Unreliable:
    """Give a store that fails when it is told to."""
    return Unreliable(playground.state)


@pytest.fixture
def engine(playground: Playground, store: Unreliable) -> Engine:
    """Give an engine on that store."""
    return Engine(replace(playground.tools, state=cast("EngineState", store)))


def test_an_action_is_asked_again_when_the_instance_moved(
    playground: Playground, engine: Engine, store: Unreliable, run: Run
) -> None:
    """As it stands then; not for ever."""
    store.faults["commit"] = [Conflict(), Conflict()]
    engine.stop(playground.address(run))
    playground.settle()
    assert playground.fresh(run).status is RunStatus.STOPPED
    other = playground.start()
    store.faults["commit"] = [Conflict() for _ in range(AGAIN)]
    with pytest.raises(Conflict, match="keeps changing"):
        engine.stop(playground.address(other))


def test_outputs_are_handed_in_again_when_the_instance_moved(
    playground: Playground, engine: Engine, store: Unreliable, run: Run
) -> None:
    """Not for ever either."""
    key = playground.attempt(run, "a").uuid
    store.faults["commit"] = [Conflict(), Conflict()]
    engine.put_outputs(key, {"n": 2})
    assert playground.result(run, "a", "n") == 2
    store.faults["commit"] = [Conflict() for _ in range(AGAIN)]
    with pytest.raises(Conflict, match="keeps changing"):
        engine.put_outputs(key, {"n": 3})


def test_an_instance_that_ends_meanwhile_is_omitted(playground: Playground, run: Run) -> None:
    """When all of a workflow are meant."""
    other = playground.start()

    def do(address: Address) -> Run:
        if address.instance_id == run.instance_id:
            raise ActionRefused
        return other

    assert for_all(playground.tools, "w", do) == [other]


def test_an_attempt_that_moved_on_by_itself_is_not_resumed(
    playground: Playground, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    """Whether that was seen, or came in between, or its run is gone."""
    playground.engine.pause(Breakpoint("w", "a"))
    paused = playground.attempt(playground.start(), "a")
    running = playground.attempt(run, "a")
    gone = replace(paused, uuid="gone")
    monkeypatch.setattr(playground.state, "paused", lambda *_: [running, gone, paused])

    def refuse(*_: object, **__: object) -> Run:
        raise ActionRefused

    monkeypatch.setattr(Engine, "resume", refuse)
    assert playground.engine.unpause(Breakpoint("w", "a")) == []


def test_a_breakpoint_that_is_removed_pauses_nothing_more(playground: Playground) -> None:
    """At once; what it has paused stays so."""
    playground.push("Workflow: {id: w, run_strategy: parallel, jobs: [{job: {id: a, type: NoOp}}]}")
    playground.engine.pause(Breakpoint("w", "a"))
    paused = playground.start()
    playground.engine.remove_breakpoint(Breakpoint("w", "a"))
    assert playground.start().status is RunStatus.SUCCEEDED
    assert playground.fresh(paused).status is RunStatus.IN_PROGRESS


def test_to_stop_what_is_being_killed_does_not_save_it(playground: Playground, run: Run) -> None:
    """Nothing is harsher than to kill."""
    playground.engine.kill(playground.address(run))
    playground.engine.stop(playground.address(run))
    playground.settle()
    assert playground.fresh(run).status is RunStatus.FAILED


def test_a_breakpoint_of_one_instance_lets_others_continue(playground: Playground) -> None:
    """Inside a loop too, whatever the number of the iteration; and so does its end."""
    inner = "{job: {id: a, type: Sleep}}"
    playground.push(
        "Workflow: {id: w, run_strategy: parallel, jobs: "
        f"[{{foreach: {{id: loop, loop_params: {{i: [1, 2]}}, jobs: [{inner}]}}}}]}}"
    )
    playground.engine.pause(Breakpoint("w", "a", instance_id=2))
    first, second = playground.start(), playground.start()
    assert (first.status, second.status) == (RunStatus.SUCCEEDED, RunStatus.IN_PROGRESS)
    assert len(playground.state.paused("w", "a")) == 2
    assert playground.engine.unpause(Breakpoint("w", "a", instance_id=1)) == []
    assert len(playground.engine.unpause(Breakpoint("w", "a", instance_id=2))) == 2
    playground.settle()
    assert playground.fresh(second).status is RunStatus.SUCCEEDED
