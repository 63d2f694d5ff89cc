"""The action map: every status, every action."""

from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import product

import pytest
from tests.engines import BUSY, Playground

from calve.engine import RUN_ACTIONS, STEP_ACTIONS, Action, Address, RunStatus, StepStatus
from calve.engine.commands import act, possible_for
from calve.engine.model import Attempt, Changes, Run, action_refused
from calve.errors import ActionRefused

S = StepStatus
STOP, KILL, SKIP, RESTART = Action.STOP, Action.KILL, Action.SKIP, Action.RESTART

MAESTRO: dict[StepStatus, AbstractSet[Action]] = {
    S.NOT_CREATED: set(),
    S.CREATED: {Action.PAUSE, STOP, KILL},
    S.INITIALIZED: {Action.PAUSE, STOP, KILL, SKIP},
    S.PAUSED: {Action.RESUME, STOP, KILL, SKIP},
    S.WAITING_FOR_SIGNALS: {STOP, KILL, SKIP, Action.BYPASS_STEP_DEPENDENCIES},
    **dict.fromkeys(
        (
            S.EVALUATING_PARAMS,
            S.WAITING_FOR_PERMITS,
            S.STARTING,
            S.RUNNING,
            S.FINISHING,
            S.USER_FAILED,
            S.PLATFORM_FAILED,
            S.TIMEOUT_FAILED,
        ),
        frozenset({STOP, KILL, SKIP}),
    ),
    **dict.fromkeys((S.DISABLED, S.UNSATISFIED), frozenset({RESTART})),
    **dict.fromkeys(
        (
            S.SKIPPED,
            S.SUCCEEDED,
            S.COMPLETED_WITH_ERROR,
            S.FATALLY_FAILED,
            S.INTERNALLY_FAILED,
            S.STOPPED,
            S.TIMED_OUT,
        ),
        frozenset({RESTART, SKIP}),
    ),
}
"""As its documentation has it."""


def test_the_map_of_steps_is_maestros() -> None:
    """Nothing is missing, nothing more is possible."""
    assert {status: set(actions) for status, actions in STEP_ACTIONS.items()} == MAESTRO
    assert set(STEP_ACTIONS) == set(StepStatus)


def test_the_map_of_instances_is_maestros() -> None:
    """What is not over can be ended, what is over can run again."""
    assert {status: set(actions) for status, actions in RUN_ACTIONS.items()} == {
        RunStatus.CREATED: {STOP, KILL},
        RunStatus.IN_PROGRESS: {STOP, KILL},
        RunStatus.PAUSED: {STOP, KILL},
        RunStatus.FAILED: {RESTART, Action.UNBLOCK},
        RunStatus.TIMED_OUT: {RESTART},
        RunStatus.STOPPED: {RESTART},
        RunStatus.SUCCEEDED: {RESTART},
    }


def test_an_approval_can_be_decided_while_it_runs() -> None:
    """And nothing else can."""
    asking = Attempt("u", "r", "r", "a", 1, 1, "Approval", S.RUNNING)
    assert {Action.APPROVE, Action.REJECT} < set(possible_for(asking))
    assert Action.APPROVE not in possible_for(replace(asking, status=S.PAUSED))
    assert Action.APPROVE not in possible_for(replace(asking, type="Sleep"))


def test_a_refusal_names_what_is_possible() -> None:
    """For people and for machines."""
    refused = action_refused("w instance 1", STOP, S.SUCCEEDED, (RESTART, SKIP))
    assert refused.message == "w instance 1 is SUCCEEDED: STOP is not possible."
    assert refused.remedy == "Possible actions: RESTART, SKIP."
    assert refused.context == {"status": "SUCCEEDED", "action": "STOP", "possible": ["RESTART", "SKIP"]}
    assert action_refused("x", STOP, S.NOT_CREATED, ()).remedy == "No action is possible in this status."


def put(playground: Playground, status: StepStatus) -> Run:
    """Return a run whose step stands in a status, whatever led there."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}, {job: {id: b, type: Sleep}}]}")
    playground.script.parts |= {"a": BUSY, "b": BUSY}
    run = playground.start()
    moved = replace(playground.attempt(run, "a"), status=status, due_at=None)
    playground.state.commit(Changes(runs=[playground.fresh(run)], attempts=[moved]))
    return run


def ask(playground: Playground, place: Address, action: Action) -> None:
    """Ask an action of a step."""
    if action is RESTART:
        playground.engine.restart(place)
    else:
        act(playground.tools, place, action)


@pytest.mark.parametrize("status", [status for status in StepStatus if status is not S.NOT_CREATED])
def test_each_action_is_done_or_refused_as_the_map_says(playground: Playground, status: StepStatus) -> None:
    """Refusals name what is possible; what is possible takes effect."""
    run = put(playground, status)
    place = playground.address(run, "a")
    for action in Action:
        if action in MAESTRO[status] and action is not RESTART:
            continue
        if action is RESTART and status.is_restartable:
            continue
        with pytest.raises(ActionRefused) as refused:
            ask(playground, place, action)
        assert set(refused.value.context["possible"]) == MAESTRO[status] - {RESTART if action is RESTART else None}


@pytest.mark.parametrize(
    ("status", "action"),
    [
        (status, action)
        for status, action in product(StepStatus, (STOP, KILL, SKIP))
        if action in MAESTRO[status] and not status.is_final
    ],
)
def test_an_end_that_is_possible_takes_effect(playground: Playground, status: StepStatus, action: Action) -> None:
    """From every state in which an attempt can be met."""
    run = put(playground, status)
    act(playground.tools, playground.address(run, "a"), action)
    playground.settle()
    ends = {STOP: S.STOPPED, KILL: S.FATALLY_FAILED, SKIP: S.SKIPPED}
    assert playground.statuses(run)["a"] is ends[action]


@pytest.mark.parametrize("status", [S.CREATED, S.INITIALIZED])
def test_a_step_that_has_not_begun_can_be_paused(playground: Playground, status: StepStatus) -> None:
    """By an action, too."""
    run = put(playground, status)
    act(playground.tools, playground.address(run, "a"), Action.PAUSE)
    playground.settle()
    assert playground.statuses(run)["a"] is S.PAUSED


@pytest.mark.parametrize("status", [status for status in StepStatus if status.is_restartable])
def test_a_step_that_has_failed_runs_again_while_its_run_continues(playground: Playground, status: StepStatus) -> None:
    """As a new attempt."""
    run = put(playground, status)
    playground.engine.restart(playground.address(run, "a"))
    playground.settle()
    assert playground.statuses(run)["a"] is S.RUNNING
    assert playground.attempt(run, "a").attempt_id == 2
