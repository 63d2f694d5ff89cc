"""What failed, what waits and how far it has come, as people read it."""

from datetime import datetime
from typing import Any

import pytest

from calve.cli.live_views import shown
from calve.cli.views import details, live_view, print_approvals, step_rows

NOW = 1_700_000_000_000
RUN: dict[str, Any] = {
    "workflow_id": "w",
    "workflow_instance_id": 7,
    "workflow_run_id": 1,
    "workflow_uuid": "u-7",
    "status": "IN_PROGRESS",
    "runtime_overview": {},
    "steps": [],
    "failures": [],
    "waiting": [],
    "waiting_count": 0,
    "progress": [],
}
FAILURE = {
    "path": "parts/3/load",
    "step_id": "load",
    "status": "FATALLY_FAILED",
    "step_attempt_id": 2,
    "message": "exit code 3.\ncannot read part 3",
    "links": {"log": "…/logs"},
}
RETRY = {
    "path": "load",
    "status": "USER_FAILED",
    "step_attempt_id": 1,
    "reason": "RETRY",
    "max_attempts": 3,
    "next_attempt_time": NOW + 28_000,
    "message": "exit code 1.\nno connection",
    "links": {"log": "…/logs"},
}
ASKS = {
    "path": "each/2/ok",
    "status": "RUNNING",
    "step_attempt_id": 1,
    "reason": "APPROVAL",
    "question": "Publish?\nAll of it?",
    "approvers": [],
    "min_approvals": 2,
    "decisions": [{"by": "ann", "is_approved": True}],
    "since": NOW - 60_000,
}


def _clock(at: int, form: str = "%H:%M:%S") -> str:
    return datetime.fromtimestamp(at / 1_000).astimezone().strftime(form)


def _run(**more: Any) -> dict[str, Any]:
    return {**RUN, **more}


def _step(step_id: str, status: str, **more: Any) -> dict[str, Any]:
    return {"step_id": step_id, "status": status, "step_attempt_id": 1, "runtime_state": {}, **more}


def _note(run: dict[str, Any], step: dict[str, Any]) -> str:
    (row,) = step_rows({**run, "steps": [step]}, NOW)
    return str(row[-1])


def test_a_failure_is_shown_with_its_cause_and_the_log_to_read() -> None:
    """Whatever lies around it; the step at the top names the first one."""
    run = _run(failures=[FAILURE])
    assert list(details(run, NOW)) == [
        "",
        "parts/3/load FATALLY_FAILED (attempt 2): exit code 3.",
        "  cannot read part 3",
        "  → calve logs w 7 parts/3/load",
    ]
    loop = _step("parts", "FATALLY_FAILED", iterations={"done": 5, "failed": 1, "total": 5}, message="5 have run")
    assert _note(run, loop) == "5/5, 1 failed  parts/3/load: exit code 3. cannot read part 3"
    assert _note(run, _step("part", "RUNNING", message="so far")) == "so far", "it only begins with the same letters"


def test_failures_that_are_not_named_are_counted() -> None:
    """So that nobody takes the first five for all."""
    counts = {"FATALLY_FAILED": {"cnt": 1_200}, "TIMED_OUT": {"cnt": 1}, "SUCCEEDED": {"cnt": 9}}
    run = _run(failures=[FAILURE], runtime_overview={"rollup_overview": {"overview": counts}})
    assert list(details(run, NOW))[-1] == "\n… and 1,200 more steps failed."


def test_a_retry_is_shown_with_the_time_of_the_next_one() -> None:
    """And which one it is of how many."""
    run = _run(waiting=[RETRY], waiting_count=3)
    then = f"The next attempt is at {_clock(NOW + 28_000)} (in 28 s)."
    assert list(details(run, NOW)) == [
        "",
        "load USER_FAILED: exit code 1.",
        "  no connection",
        f"  That was attempt 1 of 3. {then}",
        "  → calve logs w 7 load",
        "\n… and 2 more steps are waiting.",
    ]
    step = _step("load", "USER_FAILED", message="exit code 1.")
    assert _note(run, step) == f"attempt 1 of 3 failed: exit code 1. no connection {then}"


@pytest.mark.parametrize(
    ("later", "left"), [(-5_000, "now"), (400, "now"), (59_000, "in 59 s"), (600_000, "in 10 min")]
)
def test_the_time_that_is_left_is_told_roughly(later: int, left: str) -> None:
    """One that is past is due now: someone has to work."""
    (line,) = [
        line for line in details(_run(waiting=[{**RETRY, "next_attempt_time": NOW + later}]), NOW) if "next" in line
    ]
    assert line.endswith(f"({left}).")


def test_a_time_of_another_day_has_its_date() -> None:
    """Nobody takes tomorrow's time for today's."""
    at = NOW + 2 * 86_400_000
    text = "\n".join(details(_run(waiting=[{**RETRY, "next_attempt_time": at}]), NOW))
    assert f"at {_clock(at, '%Y-%m-%d %H:%M:%S')} (in 2 d)" in text


def test_an_approval_is_shown_with_the_commands_that_answer_it() -> None:
    """Who may decide, how many have, and what happens without an answer."""
    assert list(details(_run(waiting=[ASKS]), NOW)) == [
        "",
        "each/2/ok asks: Publish?",
        "  All of it?",
        "  May decide: anyone who may run w. Approved: 1 of 2 (ann).",
        "  → calve approve w 7 each/2/ok",
        "  → calve reject w 7 each/2/ok",
    ]
    until = {**ASKS, "approvers": ["ann", "bob"], "until": NOW + 1_000, "on_timeout": "approve", "decisions": []}
    text = "\n".join(details(_run(waiting=[until]), NOW))
    assert (
        f"May decide: ann, bob. Approved: 0 of 2. Without a decision it is approved at {_clock(NOW + 1_000)}." in text
    )
    loop = _step("each", "RUNNING", iterations={"done": 0, "failed": 0, "total": 2})
    assert _note(_run(waiting=[ASKS]), loop) == "0/2  each/2/ok asks: Publish? All of it?"


WAITS = [
    (
        {
            "reason": "SIGNALS",
            "signals": [{"name": "db.ready", "match_params": {"day": {"value": 5, "operator": ">="}}}],
        },
        "a waits for the signal db.ready (day >= 5)",
        ["  → calve bypass w 7 a"],
    ),
    (
        {"reason": "SIGNALS", "signals": [{"name": "x", "match_params": {}}]},
        "a waits for the signal x",
        ["  → calve bypass w 7 a"],
    ),
    ({"reason": "BREAKPOINT"}, "a is paused at a breakpoint", ["  → calve resume w a --instance 7"]),
    ({"reason": "PERMITS"}, "a waits for a permit", []),
    (
        {
            "reason": "PERMITS",
            "permits": [
                {"name": "tag:gold", "limit": 1, "held": 1},
                {"name": "workflow:w", "limit": 10, "held": 10},
                {"name": "tree:u", "limit": 2, "held": 2},
            ],
        },
        (
            "a waits for a permit: 1 of 1 steps of tag gold run, 10 of 10 steps of workflow w run, "
            "2 of 2 steps of this instance run"
        ),
        [],
    ),
    ({"reason": "SOMETHING"}, "a waits: SOMETHING", []),
]


@pytest.mark.parametrize(("wait", "said", "commands"), WAITS)
def test_what_a_step_waits_for_is_said(wait: dict[str, Any], said: str, commands: list[str]) -> None:
    """Also by a newer server, for reasons that are not known here."""
    run = _run(waiting=[{"path": "a", "status": "RUNNING", "step_attempt_id": 1, **wait}])
    assert list(details(run, NOW)) == ["", said, *commands]
    assert f"a {_note(run, _step('a', 'RUNNING'))}" == said


def test_progress_is_shown_with_its_step() -> None:
    """Or with the step around it."""
    run = _run(progress=[{"path": "a", "message": "stage 1 of 2"}, {"path": "b/1/c", "message": "stage 2 of 2"}])
    assert _note(run, _step("a", "RUNNING")) == "stage 1 of 2"
    assert _note(run, _step("b", "RUNNING")) == "b/1/c: stage 2 of 2"


def test_a_child_that_is_queued_reports_it() -> None:
    """Its step runs, but it does not."""
    child = {"workflow_id": "c", "workflow_instance_id": 2, "status": "CREATED", "is_queued": True}
    assert _note(RUN, _step("sub", "RUNNING", child=child)) == "c 2 CREATED (queued)"


def test_a_long_cause_is_cut_in_the_table() -> None:
    """All of it stands below."""
    run = _run(failures=[{**FAILURE, "message": "x" * 500}])
    note = _note(run, _step("parts", "RUNNING"))
    assert (len(note), note[-1]) == (len("parts/3/load: ") + 160, "…")


def test_a_terminal_shows_details_only_while_it_continues() -> None:
    """When it is over, the summary says it."""
    assert len(live_view(_run(failures=[FAILURE]), NOW).renderables) > 1
    assert len(live_view(_run(failures=[FAILURE], status="FAILED"), NOW).renderables) == 1


def test_approvals_are_listed_with_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """One block each."""
    asked = {**ASKS, "workflow_id": "w", "workflow_instance_id": 7}
    print_approvals([asked, {**asked, "path": "last", "question": "Sure?"}], NOW)
    assert capsys.readouterr().out.splitlines() == [
        f"w 7 each/2/ok asks, since {_clock(NOW - 60_000)}:",
        "  Publish?",
        "  All of it?",
        "  May decide: anyone who may run w. Approved: 1 of 2 (ann).",
        "  → calve approve w 7 each/2/ok",
        "  → calve reject w 7 each/2/ok",
        "",
        f"w 7 last asks, since {_clock(NOW - 60_000)}:",
        "  Sure?",
        "  May decide: anyone who may run w. Approved: 1 of 2 (ann).",
        "  → calve approve w 7 last",
        "  → calve reject w 7 last",
    ]


class Told:
    """A server of one run, whose events come one after the other."""

    def __init__(self, *events: dict[str, Any], said: str = "exit code 3.\ncannot read") -> None:
        self.left = list(events)
        self.said = said

    @property
    def operations(self) -> "Told":
        """Answer operations."""
        return self

    def past_events(self, workflow_id: str, instance_id: int, *, after: int) -> list[dict[str, Any]]:
        """Return what has happened since."""
        assert (workflow_id, instance_id) == ("w", 7)
        found = [{**event, "workflow_uuid": RUN["workflow_uuid"]} for event in self.left if event["seq"] > after]
        self.left = []
        return found

    def attempt(self, *_: object, run_id: int) -> dict[str, Any]:
        """Return an attempt with its message."""
        assert run_id == RUN["workflow_run_id"]
        return {"message": self.said} if self.said else {}

    def now(self) -> int:
        """Return the time."""
        return NOW


def _lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, told: Told, *runs: dict[str, Any]
) -> list[str]:
    monkeypatch.setattr("calve.cli.live_views._SELDOM", 0.0)
    with shown(told, is_quiet=False) as show:  # type: ignore[arg-type]  # it is all that is asked for
        for run in runs:
            show(run)
    return capsys.readouterr().err.splitlines()


def test_what_happens_inside_of_steps_is_reported_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no terminal is: questions with their commands, failures, retries; nothing when it is over."""
    going = _run(waiting=[ASKS, {**RETRY, "path": "parts/1/load"}], failures=[FAILURE])
    found = _lines(capsys, monkeypatch, Told(), RUN, going, going, {**going, "status": "FAILED"})
    at, deep = _clock(NOW), " " * 12
    assert found == [
        f"{at}  parts/3/load FATALLY_FAILED (attempt 2): exit code 3.",
        f"{deep}cannot read part 3",
        f"{deep}→ calve logs w 7 parts/3/load",
        f"{at}  each/2/ok asks: Publish?",
        f"{deep}All of it?",
        f"{deep}May decide: anyone who may run w. Approved: 1 of 2 (ann).",
        f"{deep}→ calve approve w 7 each/2/ok",
        f"{deep}→ calve reject w 7 each/2/ok",
        f"{at}  parts/1/load USER_FAILED: exit code 1.",
        f"{deep}no connection",
        f"{deep}That was attempt 1 of 3. The next attempt is at {_clock(NOW + 28_000)} (in 28 s).",
        f"{deep}→ calve logs w 7 parts/1/load",
    ]


def test_progress_is_a_line_for_each_change(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And none if there is nothing new."""
    one = _run(progress=[{"path": "a", "step_attempt_id": 1, "message": "stage 1 of 2"}])
    two = _run(progress=[{"path": "a", "step_attempt_id": 1, "message": "stage 2 of 2"}])
    at = _clock(NOW)
    found = _lines(capsys, monkeypatch, Told(), one, one, two, two)
    assert found == [f"{at}  a: stage 1 of 2", f"{at}  a: stage 2 of 2"]


def test_a_retry_of_a_step_at_the_top_is_reported_with_its_event(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once; one that is tried again already has only its cause, and so has one that failed for good."""
    event = {"seq": 1, "at": NOW, "after": "USER_FAILED", "step_id": "load", "step_attempt_id": 1}
    run = _run(waiting=[RETRY])
    at = _clock(NOW)
    told = Told(
        event, {**event, "seq": 2, "step_id": "gone"}, {**event, "seq": 3, "after": "RUNNING", "step_attempt_id": 2}
    )
    found = _lines(capsys, monkeypatch, told, run, run)
    assert found == [
        f"{at}  load USER_FAILED: exit code 1.",
        "            no connection",
        f"            That was attempt 1 of 3. The next attempt is at {_clock(NOW + 28_000)} (in 28 s).",
        "            → calve logs w 7 load",
        f"{at}  gone USER_FAILED: exit code 3.",
        "          cannot read",
        f"{at}  load RUNNING (attempt 2)",
    ]
    ended = {**event, "after": "FATALLY_FAILED", "step_attempt_id": 3}
    top = _run(failures=[{**FAILURE, "path": "load", "step_attempt_id": 3}])
    found = _lines(capsys, monkeypatch, Told(ended), top)
    assert found == [f"{at}  load FATALLY_FAILED (attempt 3): exit code 3.", "          cannot read"]


def test_rows_that_a_spark_step_moved_are_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """When it has succeeded, as far as it tells; other steps tell nothing."""
    told = {"spark": {"rows_read": 12_345, "rows_written": 0}}
    step = _step("load", "SUCCEEDED", artifacts=told)
    assert _note(RUN, step) == "12,345 rows read"
    event = {"seq": 1, "at": NOW, "after": "SUCCEEDED", "step_id": "load", "step_attempt_id": 1}
    run = _run(steps=[step, _step("other", "SUCCEEDED")])
    found = _lines(capsys, monkeypatch, Told(event, {**event, "seq": 2, "step_id": "other"}, said=""), run)
    assert found == [f"{_clock(NOW)}  load SUCCEEDED: 12,345 rows read", f"{_clock(NOW)}  other SUCCEEDED"]
