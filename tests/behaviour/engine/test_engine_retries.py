"""Steps that are tried again, and steps that take too long."""

from itertools import pairwise
from pathlib import Path

import pytest
from tests.engines import BUSY, DONE, INFRASTRUCTURE_ERROR, PLATFORM_ERROR, START, USER_ERROR, Playground

from calve.engine import Breakpoint, Outcome, RunStatus, State, StepContext, StepStatus
from calve.errors import SourceBusy, TableMissing

S = StepStatus


def job(keys: str) -> str:
    """Return a workflow with one step, some of whose keys are given."""
    return f"Workflow:\n  id: w\n  jobs:\n    - job:\n        id: a\n        type: Sleep\n        {keys}\n"


def waits(playground: Playground) -> list[float]:
    """Return after how many seconds each attempt of the step was tried again."""
    run = playground.state.instances()[0]
    ended = playground.state.attempts(run.uuid, "a")
    return [(later.times["create"] - sooner.times["end"]) / 1_000 for sooner, later in pairwise(ended)]


def play(playground: Playground, times: int) -> None:
    """Move the clock to each moment at which something is due."""
    for _ in range(times):
        due = playground.state.next_due(playground.clock())
        playground.advance((due or 0) / 1_000)


def test_a_failed_step_is_tried_again_and_earlier_attempts_stay(playground: Playground) -> None:
    """Each attempt has its own row, its own times, its own log."""
    playground.push(job("retry_policy: {error_retry_limit: 2}"))
    playground.script.parts["a"] = [USER_ERROR, USER_ERROR, DONE]
    run = playground.start()
    assert playground.statuses(run) == {"a": S.USER_FAILED}
    assert playground.fresh(run).status is RunStatus.IN_PROGRESS
    play(playground, 2)
    attempts = playground.state.attempts(run.uuid, "a")
    assert [attempt.status for attempt in attempts] == [S.USER_FAILED, S.USER_FAILED, S.SUCCEEDED]
    assert [attempt.attempt_id for attempt in attempts] == [1, 2, 3]
    assert [attempt.is_superseded for attempt in attempts] == [True, True, False]
    assert len({attempt.uuid for attempt in attempts}) == 3
    assert [attempt.params["step_attempt_id"]["result"] for attempt in attempts] == [1, 2, 3]
    assert playground.fresh(run).status is RunStatus.SUCCEEDED


def test_a_server_may_ask_for_a_later_try(playground: Playground) -> None:
    """The next attempt is not made before; a shorter time than the policy's changes nothing."""
    playground.push(job("retry_policy: {error_retry_limit: 2}"))
    asked = [Outcome(State.USER_ERROR, retry_after=seconds) for seconds in (299.5, 1.0)]
    playground.script.parts["a"] = [*asked, DONE]
    run = playground.start()
    play(playground, 2)
    assert waits(playground) == [300, 120]
    assert playground.fresh(run).status is RunStatus.SUCCEEDED


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (
            TableMissing("There is no table db.t.", remedy="Make it."),
            S.FATALLY_FAILED,
            "There is no table db.t. Make it.",
        ),
        (SourceBusy("Others wrote."), S.PLATFORM_FAILED, "Others wrote. Try again."),
        (
            PermissionError(13, "Permission denied", "/x"),
            S.FATALLY_FAILED,
            "PermissionError: [Errno 13] Permission denied: '/x'",
        ),
        (OSError(28, "No space left on device"), S.PLATFORM_FAILED, "OSError: [Errno 28] No space left on device"),
        (RuntimeError("why"), S.PLATFORM_FAILED, "RuntimeError: why"),
    ],
)
def test_what_a_runtime_raises_is_tried_again_if_it_may_pass(
    playground: Playground, error: Exception, status: StepStatus, said: str
) -> None:
    """What cannot succeed fails at once, whatever the retry policy says."""

    def fail(_: StepContext) -> Outcome:
        raise error

    playground.push(job("retry_policy: {error_retry_limit: 9, platform_retry_limit: 9}"))
    playground.script.parts["a"] = fail
    run = playground.start()
    [attempt] = playground.state.attempts(run.uuid, "a")
    assert (attempt.status, said in [entry["message"] for entry in attempt.timeline]) == (status, True)


def test_an_attempt_whose_folder_cannot_be_made_fails_at_once(playground: Playground, tmp_path: Path) -> None:
    """It says which folder, and what to do."""
    (tmp_path / "file").touch()
    playground.executor.folder = tmp_path / "file"
    playground.push(job("retry_policy: {platform_retry_limit: 9}"))
    playground.script.parts["a"] = lambda context: Outcome(State.DONE, message=str(context.folder))
    run = playground.start()
    [attempt] = playground.state.attempts(run.uuid, "a")
    assert attempt.status is S.FATALLY_FAILED
    assert any("The folder of the attempt cannot be written" in entry["message"] for entry in attempt.timeline)


def test_the_default_waits_a_minute_and_then_twice_as_long(playground: Playground) -> None:
    """Two retries of an error, then it is fatal."""
    playground.push(job("failure_mode: fail_after_running"))
    playground.script.parts["a"] = USER_ERROR
    run = playground.start()
    play(playground, 3)
    assert waits(playground) == [60, 120]
    assert [attempt.status for attempt in playground.state.attempts(run.uuid)] == [
        S.USER_FAILED,
        S.USER_FAILED,
        S.FATALLY_FAILED,
    ]
    assert "Retry in 60 s." in [entry["message"] for entry in playground.state.attempts(run.uuid)[0].timeline]


@pytest.mark.parametrize(
    ("policy", "outcome", "expected"),
    [
        (
            """{error_retry_limit: 4, backoff: {type: exponential_backoff, error_retry_backoff_in_secs: 10,
            error_retry_exponent: 3, error_retry_limit_in_secs: 100}}""",
            USER_ERROR,
            [10, 30, 90, 100],
        ),
        (
            "{platform_retry_limit: 3, backoff: {type: fixed_backoff, platform_retry_backoff_in_secs: 7}}",
            PLATFORM_ERROR,
            [7, 7, 7],
        ),
        (
            "{timeout_retry_limit: 2, backoff: {type: fixed_backoff, timeout_retry_backoff_in_secs: 5}}",
            Outcome(State.TIMED_OUT),
            [5, 5],
        ),
    ],
)
def test_the_policy_says_how_often_and_how_long(
    playground: Playground, policy: str, outcome: Outcome, expected: list[int]
) -> None:
    """For each of the three reasons."""
    playground.push(job(f"retry_policy: {policy}"))
    playground.script.parts["a"] = outcome
    playground.start()
    play(playground, len(expected) + 1)
    assert waits(playground) == expected


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("{platform_retry_limit: 4}", [0, 60, 120, 240]),
        ("{platform_retry_limit: 2, backoff: {type: fixed_backoff, platform_retry_backoff_in_secs: 7}}", [7, 7]),
        ("{platform_retry_limit: 2, backoff: {type: fixed_backoff, error_retry_backoff_in_secs: 7}}", [0, 60]),
    ],
)
def test_the_first_retry_after_a_failure_of_the_infrastructure_is_immediate(
    playground: Playground, policy: str, expected: list[int]
) -> None:
    """Within a second, not for all steps at once; a policy that says how long to wait is followed."""
    playground.push(job(f"retry_policy: {policy}"))
    playground.script.parts["a"] = INFRASTRUCTURE_ERROR
    run = playground.start()
    play(playground, len(expected) + 1)
    first, *others = waits(playground)
    assert [int(first), *others] == expected
    messages = [entry["message"] for entry in playground.state.attempts(run.uuid)[0].timeline]
    assert ("Retry immediately." in messages) is (expected[0] == 0)


def test_each_reason_has_its_own_count(playground: Playground) -> None:
    """An error does not use up the retries of the platform."""
    playground.push(job("retry_policy: {error_retry_limit: 1, platform_retry_limit: 1, timeout_retry_limit: 1}"))
    late = Outcome(State.TIMED_OUT)
    playground.script.parts["a"] = [USER_ERROR, PLATFORM_ERROR, late, late]
    run = playground.start()
    play(playground, 3)
    attempts = playground.state.attempts(run.uuid)
    assert [attempt.status for attempt in attempts] == [
        S.USER_FAILED,
        S.PLATFORM_FAILED,
        S.TIMEOUT_FAILED,
        S.TIMED_OUT,
    ]
    assert attempts[-1].retries == {"error": 1, "platform": 1, "timeout": 1}
    assert playground.fresh(run).status is RunStatus.TIMED_OUT


def test_limits_may_come_from_workflow_params(playground: Playground) -> None:
    """Evaluated when they are needed."""
    playground.push(
        "Workflow:\n  id: w\n  tries: 1\n  jobs:\n"
        "    - job: {id: a, type: Sleep, retry_policy: {error_retry_limit: '${tries}'}}\n"
    )
    playground.script.parts["a"] = USER_ERROR
    run = playground.start(params={"tries": 3})
    play(playground, 4)
    assert len(playground.state.attempts(run.uuid)) == 4


def test_a_limit_that_is_not_a_number_fails_the_step_as_the_engines_failure(playground: Playground) -> None:
    """When the policy is asked for."""
    playground.push(
        "Workflow:\n  id: w\n  tries: '1'\n  jobs:\n"
        "    - job: {id: a, type: Sleep, retry_policy: {error_retry_limit: '${tries}'}}\n"
    )
    playground.script.parts["a"] = USER_ERROR
    run = playground.start(params={"tries": "many"})
    assert playground.statuses(run) == {"a": S.INTERNALLY_FAILED}


@pytest.mark.parametrize("failure", [State.USER_ERROR, State.PLATFORM_ERROR])
def test_work_that_calls_itself_hopeless_is_not_tried_again(playground: Playground, failure: State) -> None:
    """By the artifact that Maestro's programs use."""
    playground.push(job("retry_policy: {error_retry_limit: 9, platform_retry_limit: 9}"))
    playground.script.parts["a"] = Outcome(failure, artifacts={"maestro_retry": {"type": "RETRY", "retryable": False}})
    run = playground.start()
    assert playground.statuses(run) == {"a": S.FATALLY_FAILED}
    assert len(playground.state.attempts(run.uuid)) == 1


def test_a_step_knows_how_often_it_was_tried_again(playground: Playground) -> None:
    """By params.getFromStep, in the attempt that follows."""
    playground.push(job("'!tried<long>': \"params.getFromStep('MAESTRO_STEP_ERROR_RETRIES')\""))
    playground.script.parts["a"] = [USER_ERROR, DONE]
    run = playground.start()
    play(playground, 1)
    assert [attempt.params["tried"]["result"] for attempt in playground.state.attempts(run.uuid)] == [0, 1]


def test_a_step_that_takes_too_long_is_ended(playground: Playground) -> None:
    """Its work is terminated, and it is TIMED_OUT."""
    playground.push(job("timeout: 10min"))
    playground.script.parts["a"] = BUSY
    run = playground.start()
    assert playground.attempt(run, "a").timeout_at == START + 600_000
    playground.advance(599)
    assert playground.statuses(run) == {"a": S.RUNNING}
    playground.advance(1)
    assert playground.statuses(run) == {"a": S.TIMED_OUT}
    assert playground.script.ended == ["a"]
    assert playground.fresh(run).status is RunStatus.TIMED_OUT


def test_an_approval_that_takes_too_long_is_ended_too(playground: Playground) -> None:
    """It has no worker who would see to it."""
    playground.push(job("timeout: 10min").replace("Sleep", "Approval\n        approval: {message: May I?}"))
    run = playground.start()
    playground.advance(599)
    assert playground.statuses(run) == {"a": S.RUNNING}
    playground.advance(1)
    assert playground.statuses(run) == {"a": S.TIMED_OUT}


def test_a_timeout_may_be_tried_again_with_the_whole_time(playground: Playground) -> None:
    """Each attempt has its own."""
    playground.push(job("timeout: 10min\n        retry_policy: {timeout_retry_limit: 1}"))
    playground.script.parts["a"] = [BUSY, DONE]
    run = playground.start()
    playground.advance(600)
    assert playground.statuses(run) == {"a": S.TIMEOUT_FAILED}
    play(playground, 1)
    assert playground.statuses(run) == {"a": S.SUCCEEDED}


def test_waiting_for_a_permit_is_not_counted(playground: Playground) -> None:
    """The time begins when the step does."""
    playground.push(job("timeout: 10min\n        tags: [few]"))
    playground.engine.limit_tag("few", 0)
    playground.script.parts["a"] = BUSY
    run = playground.start()
    playground.advance(100_000)
    assert playground.statuses(run) == {"a": S.WAITING_FOR_PERMITS}
    playground.engine.limit_tag("few", 1)
    playground.settle()
    assert playground.statuses(run) == {"a": S.RUNNING}
    assert playground.attempt(run, "a").timeout_at == playground.clock() + 600_000


def test_waiting_for_signals_or_for_people_is_not_counted(playground: Playground) -> None:
    """Nor is a pause."""
    playground.push(job("timeout: 10min\n        signal_dependencies: [ready]"))
    playground.engine.pause(Breakpoint("w", "a"))
    playground.script.parts["a"] = BUSY
    run = playground.start()
    playground.advance(100_000)
    assert playground.statuses(run) == {"a": S.PAUSED}
    playground.engine.resume(playground.address(run, "a"))
    playground.advance(100_000)
    assert playground.statuses(run) == {"a": S.WAITING_FOR_SIGNALS}
    playground.engine.bypass(playground.address(run, "a"))
    playground.advance(599)
    assert playground.statuses(run) == {"a": S.RUNNING}
    playground.advance(600)
    assert playground.statuses(run) == {"a": S.TIMED_OUT}


def test_a_run_that_takes_too_long_ends_with_all_its_steps(playground: Playground) -> None:
    """Those that run, wait, or would be tried again."""
    playground.push("""
Workflow:
  id: w
  timeout: 1h
  jobs:
    - job: {id: a, type: Sleep}
    - job: {id: b, type: Sleep, signal_dependencies: [never]}
    - job: {id: c, type: Sleep, retry_policy: {backoff: {type: fixed_backoff, error_retry_backoff_in_secs: 80000}}}
""")
    playground.script.parts |= {"a": BUSY, "c": USER_ERROR}
    run = playground.start()
    playground.advance(3_599)
    assert playground.statuses(run) == {"a": S.RUNNING, "b": S.WAITING_FOR_SIGNALS, "c": S.USER_FAILED}
    playground.advance(1)
    assert playground.statuses(run) == {"a": S.TIMED_OUT, "b": S.TIMED_OUT, "c": S.TIMED_OUT}
    ended = playground.fresh(run)
    assert (ended.status, ended.run_status) == (RunStatus.TIMED_OUT, RunStatus.TIMED_OUT)


def test_a_run_may_take_ten_days_if_nothing_else_is_said(playground: Playground) -> None:
    """Then it ends, too."""
    playground.push(job("name: A"))
    playground.script.parts["a"] = BUSY
    run = playground.start()
    assert run.timeout_at == START + 10 * 86_400_000


def test_a_timeout_that_makes_no_sense_fails_step_or_run(playground: Playground) -> None:
    """It is known only when the params are."""
    playground.push(
        "Workflow:\n  id: w\n  limit: '1h'\n  jobs:\n    - job: {id: a, type: Sleep, timeout: '${limit}'}\n"
    )
    run = playground.start(params={"limit": "never"})
    assert playground.statuses(run) == {"a": S.INTERNALLY_FAILED}
    playground.push(
        "Workflow:\n  id: v\n  limit: '1h'\n  timeout: '${limit}'\n  jobs:\n    - job: {id: a, type: Sleep}\n"
    )
    assert playground.start("v", params={"limit": "never"}).status is RunStatus.FAILED
