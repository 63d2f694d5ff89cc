"""Runs that are kept in memory."""

from dataclasses import replace

from tests.engines import BUSY, Playground

from calve.engine import Cache, RunStatus
from calve.engine.instances import RunState, UnitOfWork


def state_of(playground: Playground) -> RunState:
    """Return a run in memory."""
    playground.push("Workflow: {id: w, run_strategy: parallel, jobs: [{job: {id: a, type: Sleep}}]}")
    playground.script.parts["a"] = BUSY
    run = playground.start()
    return UnitOfWork(playground.tools, playground.clock()).state(run.uuid, is_fresh=True)


def test_what_is_kept_is_not_moved_by_who_uses_it(playground: Playground) -> None:
    """Everybody gets a copy."""
    cache, state = Cache(), state_of(playground)
    cache.put(state)
    first = cache.get(state.run.uuid)
    assert first is not None
    first.attempts.clear()
    second = cache.get(state.run.uuid)
    assert second is not None
    assert second.attempts.keys() == {"a"}


def test_a_run_that_is_over_is_not_kept(playground: Playground) -> None:
    """Nobody will move it again."""
    cache, state = Cache(), state_of(playground)
    cache.put(state)
    state.run = replace(state.run, status=RunStatus.SUCCEEDED)
    cache.put(state)
    assert cache.get(state.run.uuid) is None


def test_only_so_many_are_kept(playground: Playground) -> None:
    """Those used last."""
    cache = Cache(size=2)
    states = [state_of(playground) for _ in range(3)]
    cache.put(states[0])
    cache.put(states[1])
    cache.get(states[0].run.uuid)
    cache.put(states[2])
    assert [cache.get(state.run.uuid) is not None for state in states] == [True, False, True]
    cache.drop(states[0].run.uuid)
    assert cache.get(states[0].run.uuid) is None
