"""Whatever steps do and people ask, every run comes to an end, and its history makes sense."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from hypothesis import example, given, settings, strategies as st
from tests.engines import BUSY, DONE, FATAL_ERROR, PLATFORM_ERROR, USER_ERROR, Playground
from tests.scope import in_ci

from calve.engine import Action, Outcome, Run, RunStatus, State, StepStatus
from calve.engine.commands import act
from calve.engine.model import final_status
from calve.errors import ActionRefused, RequestInvalid, WorkflowMissing
from calve.store import open_store

DAYS = 5
"""How long a run may take."""
IDS = ("a", "b", "c", "d", "e")
OUTCOMES = (DONE, DONE, USER_ERROR, PLATFORM_ERROR, FATAL_ERROR, BUSY, Outcome(State.TIMED_OUT), Outcome(State.STOPPED))
ENDINGS = {Action.STOP: RunStatus.STOPPED, Action.KILL: RunStatus.FAILED}

modes = st.sampled_from(["fail_after_running", "fail_immediately", "ignore_failure"])
types = st.sampled_from(["Sleep", "Sleep", "NoOp"])
conditions = st.sampled_from(["true", "n > 1", "n < 1"])
edges = st.dictionaries(
    st.tuples(st.integers(0, 3), st.integers(1, 4)).filter(lambda pair: pair[0] < pair[1]), conditions, max_size=6
)
parts = st.fixed_dictionaries({name: st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=4) for name in IDS})
asked = st.lists(
    st.tuples(st.integers(0, 6), st.sampled_from([Action.STOP, Action.KILL, Action.SKIP]), st.sampled_from(["", *IDS])),
    max_size=4,
)


def definition(ways: Mapping[tuple[int, int], str], kinds: list[str], failing: list[str]) -> str:
    """Return a workflow of five steps."""
    lines = ["Workflow:", "  id: w", "  n: 2", f"  timeout: {DAYS} days", "  step_concurrency: 2", "  jobs:"]
    for position, name in enumerate(IDS):
        to = {IDS[target]: condition for (source, target), condition in ways.items() if source == position}
        way = ", ".join(f"'IF {condition} THEN {target}'" for target, condition in to.items())
        lines.append(
            f"    - job: {{id: {name}, type: {kinds[position]}, failure_mode: {failing[position]}, "
            f"retry_policy: {{error_retry_limit: 1, platform_retry_limit: 1}}, transition: [{way}]}}"
        )
    return "\n".join(lines)


def ask(playground: Playground, run: Run, action: Action, step_id: str) -> bool:
    """Ask something of a run or a step; tell whether it was taken."""
    try:
        act(playground.tools, playground.address(run, *([step_id] if step_id else [])), action)
    except (ActionRefused, WorkflowMissing, RequestInvalid):
        return False
    return True


def follow(playground: Playground, run: Run, asked: list[tuple[int, Action, str]]) -> Action | None:
    """Move a run on task by task, asking things in between; return what was asked of all of it."""
    of_run = None
    for tasks, action, step_id in asked:
        for _ in range(tasks):
            for task in playground.claim(runs=1, steps=1):
                playground.do(task)
        if ask(playground, run, action, step_id) and not step_id and of_run is not Action.KILL:
            of_run = action  # nothing is harsher than to kill
    for _ in range(200):
        playground.settle()
        if playground.fresh(run).status.is_terminal:
            return of_run
        playground.clock.now += (playground.state.next_due(playground.clock()) or 0) + 1
    raise AssertionError(f"it never ends: {playground.statuses(run)}")


def check_history(playground: Playground, run: Run, of_run: Action | None) -> None:
    """Fail unless a run's end follows from its steps, and its events from each other."""
    ended, attempts = playground.fresh(run), playground.state.attempts(run.uuid)
    newest = [attempt for attempt in attempts if not attempt.is_superseded]
    assert len(newest) == len({attempt.step_id for attempt in newest})
    assert all(attempt.status.is_final for attempt in newest)
    assert all(attempt.status.is_retryable for attempt in attempts if attempt.is_superseded)
    expected = final_status(each.status for each in newest) if of_run is None else ENDINGS[of_run]
    is_late = (ended.ended_at or 0) - (ended.started_at or 0) >= DAYS * 86_400_000
    assert ended.status is (RunStatus.TIMED_OUT if is_late and of_run is None else expected)
    stand: dict[tuple[str | None, int | None], str | None] = {}
    for event in playground.state.events(run_uuid=run.uuid):
        place = (event.step_id, event.attempt_id)
        assert event.before == stand.get(place, StepStatus.NOT_CREATED.value if event.step_id else None)
        stand[place] = event.after
    assert stand == {(None, None): ended.status} | {
        (attempt.step_id, attempt.attempt_id): attempt.status for attempt in attempts
    }


@settings(max_examples=in_ci(25, otherwise=60))
@example(
    ways={},
    kinds=["Sleep"] * 5,
    failing=["fail_after_running"] * 5,
    parts={name: [outcome] for name, outcome in zip(IDS, [FATAL_ERROR, BUSY, DONE, DONE, DONE], strict=True)},
    asked=[],
)
@given(
    ways=edges,
    kinds=st.lists(types, min_size=5, max_size=5),
    failing=st.lists(modes, min_size=5, max_size=5),
    parts=parts,
    asked=asked,
)
def test_every_run_comes_to_an_end_that_follows_from_its_steps(
    ways: Mapping[tuple[int, int], str],
    kinds: list[str],
    failing: list[str],
    parts: dict[str, list[Outcome]],
    asked: list[tuple[int, Action, str]],
) -> None:
    """And leaves nothing behind: no permit, no task."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/calve.db"
        with open_store(url) as store:
            playground = Playground(store, url, Path(folder))
            playground.push(definition(ways, kinds, failing))
            playground.script.parts |= parts
            run = playground.begin().run
            check_history(playground, run, follow(playground, run, asked))
            playground.settle()
            playground.check()
            assert sum(playground.state.counts().values()) == 0
