"""Who is told what, decided without looking anywhere."""

from dataclasses import replace
from typing import Any

import pytest

from calve.alerts.model import Alert, Message
from calve.alerts.policy import Policy
from calve.alerts.rules import is_of_interest, of_event, of_time, of_version, of_waiting, wants_dependencies
from calve.definition.params import InitiatorType
from calve.engine import (
    RUN_EVENT,
    STEP_EVENT,
    Ancestor,
    Attempt,
    Event,
    Initiator,
    Parent,
    Run,
    RunStatus,
    Snapshot,
    StepStatus,
    VersionRecord,
)
from calve.settings import AlertSettings

HOUR = 3_600_000
DAY = 24 * HOUR
RUN = Run("r", "sales.daily", 3, 1, 1, "sales.daily", "r", created_at=DAY, started_at=DAY + HOUR)
PARENT = Parent("p", "s", "a")


def policy(*rules: dict[str, Any]) -> Policy:
    """Return a policy with a channel of every type, and rules."""
    channels = {
        "mail": {"type": "email", "host": "h", "sender": "s"},
        "chat": {"type": "slack", "url_secret": "u"},
        "hook": {"type": "webhook", "url": "u"},
        "mail2": {"type": "email", "host": "h", "sender": "s"},
    }
    return Policy.of(AlertSettings.model_validate({"channels": channels, "rules": rules}))


def ended(run: Run = RUN, status: RunStatus = RunStatus.FAILED, at: int = DAY + 2 * HOUR) -> tuple[Event, Snapshot]:
    """Return the event that a run has ended, and the run."""
    event = Event(RUN_EVENT, run.uuid, run.workflow_id, run.instance_id, run.run_id, at, after=status, seq=7)
    timeline = ({"message": "first"}, {"message": "wrong input"})
    attempts = (
        Attempt("a1", "r", "r", "load", 1, 1, "Shell", StepStatus.FATALLY_FAILED, timeline=timeline),
        Attempt("a2", "r", "r", "look", 2, 1, "Shell", StepStatus.SUCCEEDED),
        Attempt("a3", "r", "r", "stop", 3, 1, "Shell", StepStatus.STOPPED),
        Attempt("a4", "r", "r", "time", 4, 1, "Shell", StepStatus.TIMED_OUT),
    )
    return event, Snapshot(replace(run, status=status, ended_at=at), attempts)


def stepped(status: StepStatus, run: Run = RUN, step_id: str = "load") -> tuple[Event, Snapshot]:
    """Return the event that a step has come to a status, and its run."""
    found = ended(run)[1]
    place = (run.uuid, run.workflow_id, run.instance_id, run.run_id, DAY)
    return Event(STEP_EVENT, *place, step_id=step_id, attempt_id=1, after=status, seq=8), found


def alerting(**given: Any) -> Run:
    """Return a run of a workflow that asks for alerts."""
    return replace(RUN, properties={"alerting": given})


def ways(messages: Any) -> list[tuple[str, tuple[str, ...]]]:
    """Return where messages go."""
    return [(message.route.channel, message.route.to) for message in messages]


def test_an_alert_names_its_page() -> None:
    """Of the instance or the step; of a step in a loop that of the instance around it, as its number is the loop's."""
    by_step = alerting(slack={"channels": ["#c"]}, type_configs={"STEP_FAILURE": {"granularity": "STEP"}})
    (message,) = of_event(*ended(), policy({"on": ["failure"], "channels": ["hook"]}))
    assert message.alert.page == "/workflows/sales.daily/instances/3"
    (message,) = of_event(*stepped(StepStatus.FATALLY_FAILED, by_step), policy())
    assert message.alert.page == "/workflows/sales.daily/instances/3?step=load"
    inside = replace(by_step, workflow_id="loop-2", instance_id=7, inline_step="inner", parent=PARENT)
    around = [
        Ancestor("parent", 1, 1, "child", 1),
        Ancestor("sales.daily", 3, 1, "outer", 1),
        Ancestor("loop-1", 2, 1, "inner", 1),
    ]
    (message,) = of_event(*stepped(StepStatus.FATALLY_FAILED, inside), policy(), around)
    assert message.alert.page == "/workflows/sales.daily/instances/3?step=outer%2F2%2Finner%2F7%2Fload"
    (message,) = of_event(*stepped(StepStatus.FATALLY_FAILED, inside), policy())
    assert message.alert.page == "/workflows/sales.daily"


def test_a_failure_is_reported_by_a_rule() -> None:
    """With the steps that failed and their last words; who was stopped is none of them."""
    (message,) = of_event(*ended(), policy({"on": ["failure"], "channels": ["hook"], "workflows": ["sales.*"]}))
    assert message.alert.title == "sales.daily 3 failed"
    assert message.alert.text == "load: FATALLY_FAILED wrong input\ntime: TIMED_OUT"
    assert Alert.from_json(message.alert.as_json()) == message.alert
    assert not list(of_event(*ended(), policy({"on": "failure", "channels": ["hook"], "workflows": ["other"]})))


def test_the_message_of_a_run_is_its_first_reason() -> None:
    """As it says more than its steps do."""
    run = replace(RUN, message="Set aside.")
    (message,) = of_event(*ended(run, RunStatus.TIMED_OUT), policy({"on": "failure", "channels": ["hook"]}))
    assert message.alert.title == "sales.daily 3 timed out"
    assert message.alert.text.startswith("Set aside.\n")


def test_a_success_is_reported_where_it_is_asked_for() -> None:
    """And a stopped run is nobody's business."""
    rule = {"on": ["success"], "channels": ["hook", "chat"]}
    assert ways(of_event(*ended(status=RunStatus.SUCCEEDED), policy(rule))) == [("hook", ()), ("chat", ())]
    assert not list(of_event(*ended(status=RunStatus.STOPPED), policy(rule)))
    assert not list(of_event(*ended(), policy(rule)))


def test_the_same_happening_is_the_same_message() -> None:
    """On one way; another way is another message."""
    one, other = of_event(*ended(), policy({"on": "failure", "channels": ["hook", "chat"]}))
    (again,) = of_event(*ended(), policy({"on": "failure", "channels": ["hook"]}))
    assert again.id == one.id != other.id


def test_a_definition_names_its_people() -> None:
    """Addresses go through the first channel of their type, pagers are channels of that name."""
    slack = {"channels": ["#data"], "users": ["ann"], "mention_users": ["bob"]}
    run = alerting(emails=["a@example.com"], slack=slack, pagerduties=["hook"])
    found = list(of_event(*ended(run), policy()))
    wanted = [("mail", ("a@example.com",)), ("chat", ("#data",)), ("chat", ("@ann",)), ("hook", ())]
    assert ways(found) == wanted
    assert found[1].route.mention == ("bob",)
    assert not list(of_event(*ended(run, RunStatus.SUCCEEDED), policy()))


def test_a_type_has_its_own_people() -> None:
    """Who is named for a type is told instead of those who are named for all."""
    configs = {"RUN_SUCCESS": {"emails": ["b@example.com"]}, "STEP_FAILURE": {}}
    run = alerting(emails=["a@example.com"], type_configs=configs)
    assert ways(of_event(*ended(run, RunStatus.SUCCEEDED), policy())) == [("mail", ("b@example.com",))]
    assert ways(of_event(*ended(run), policy())) == [("mail", ("a@example.com",))]


@pytest.mark.parametrize(
    "properties",
    [
        {"alerting": {"emails": ["a"]}, "alerting_disabled": True},
        {"alerting": {"emails": ["a"], "type_configs": {"STEP_FAILURE": {"disabled": True}}}},
        {"alerting": {"unknown": 1}},
        {},
    ],
)
def test_alerts_can_be_switched_off(properties: dict[str, Any]) -> None:
    """All of them, or one type."""
    assert not list(of_event(*ended(replace(RUN, properties=properties)), policy()))


def test_without_a_channel_of_its_type_a_message_names_the_type() -> None:
    """So that whoever sends it can say what is missing."""
    run = alerting(emails=["a@example.com"], slack={"channels": ["#x"]})
    assert ways(of_event(*ended(run), Policy())) == [("email", ("a@example.com",)), ("slack", ("#x",))]


def test_steps_are_reported_one_by_one() -> None:
    """Where the definition wants it so; then not of the run."""
    config = {"STEP_FAILURE": {"granularity": "STEP"}}
    run = alerting(emails=["a@example.com"], type_configs=config)
    (message,) = of_event(*stepped(StepStatus.FATALLY_FAILED, run), policy())
    assert (message.alert.step_id, message.alert.text) == ("load", "wrong input")
    assert message.alert.title == "sales.daily 3: step load failed"
    assert not list(of_event(*ended(run), policy()))
    assert not list(of_event(*stepped(StepStatus.FATALLY_FAILED), policy({"on": "failure", "channels": ["hook"]})))


def test_a_breakpoint_is_reported() -> None:
    """Even where the attempt is gone already."""
    run = alerting(emails=["a@example.com"], type_configs={"BREAKPOINT_HIT": {}})
    (message,) = of_event(*stepped(StepStatus.PAUSED, run, "gone"), policy())
    assert message.alert.title == "sales.daily 3: step gone is paused at a breakpoint"


def test_children_are_reported_by_their_own_definition_only() -> None:
    """Rules of the settings tell of the parent; iterations are part of theirs."""
    child = replace(alerting(emails=["a@example.com"]), parent=PARENT)
    rule = {"on": "failure", "channels": ["hook"]}
    assert ways(of_event(*ended(child), policy(rule))) == [("mail", ("a@example.com",))]
    assert not list(of_event(*ended(replace(child, inline_step="loop")), policy(rule)))


def test_only_some_events_are_examined() -> None:
    """The rest costs no query."""
    assert is_of_interest(ended()[0])
    assert not is_of_interest(ended(status=RunStatus.IN_PROGRESS)[0])
    assert is_of_interest(stepped(StepStatus.PAUSED)[0])
    assert not is_of_interest(stepped(StepStatus.STOPPED)[0])
    assert not is_of_interest(stepped(StepStatus.USER_FAILED)[0])


def test_a_long_run_is_reported_once() -> None:
    """While it runs or when it has ended, whichever is seen first: it is the same message."""
    rules = policy({"on": ["long_running"], "after": "90m", "channels": ["hook"]})
    assert not list(of_time(RUN, DAY + HOUR + HOUR, rules))
    (running,) = of_time(RUN, DAY + 3 * HOUR, rules)
    (over,) = of_event(*ended(at=DAY + 4 * HOUR), rules)
    assert running.id == over.id
    assert running.alert.title == "sales.daily 3 runs longer than 1:30:00"
    assert not list(of_time(replace(RUN, started_at=None), 9 * DAY, rules))
    assert not list(of_time(replace(RUN, ended_at=DAY + 2 * HOUR), 9 * DAY, rules))


def test_a_definition_says_what_is_long() -> None:
    """Without a time it says nothing."""
    run = alerting(emails=["a@example.com"], type_configs={"LONG_RUNNING": {"duration_minutes": 10}})
    assert len(list(of_time(run, 2 * DAY, policy()))) == 1
    assert not list(of_time(alerting(emails=["a@example.com"]), 2 * DAY, policy()))


def test_a_run_has_to_succeed_within_a_time() -> None:
    """Counted from when it was made."""
    run = alerting(emails=["a@example.com"], type_configs={"SUCCESS_WITHIN": {"duration_minutes": 60}})
    assert not list(of_time(run, DAY + HOUR, policy()))
    (message,) = of_time(run, DAY + HOUR + 1, policy())
    assert "has not succeeded within 1:00:00" in message.alert.title
    assert not list(of_time(alerting(emails=["a"], type_configs={"SUCCESS_WITHIN": {}}), 9 * DAY, policy()))


def test_what_a_schedule_started_is_late_by_its_scheduled_time() -> None:
    """Rules say nothing of what someone started by hand."""
    rules = policy({"on": "late", "after": "2h", "channels": ["hook"]})
    timed = replace(RUN, initiator=Initiator(InitiatorType.TIME, trigger={"scheduled_at": DAY - HOUR}))
    assert not list(of_time(timed, DAY + HOUR, rules))
    (message,) = of_time(timed, DAY + HOUR + 1, rules)
    assert message.alert.title == "sales.daily 3 is late: it should have ended by 1970-01-02T01:00:00+00:00"
    assert list(of_time(replace(timed, initiator=Initiator(InitiatorType.TIME)), DAY + 2 * HOUR + 1, rules))
    assert not list(of_time(RUN, 9 * DAY, rules))


@pytest.mark.parametrize(
    ("tct", "by"),
    [
        ({"completed_by_ts": DAY + 5}, DAY + 5),
        ({"duration_minutes": 30}, DAY + HOUR // 2),
        ({"completed_by_hour": 6}, DAY + 6 * HOUR),
        ({"completed_by_hour": 0}, 2 * DAY),
        ({"completed_by_hour": 6, "tz": "Asia/Tokyo"}, DAY + 21 * HOUR),
    ],
)
def test_a_definition_says_by_when(tct: dict[str, Any], by: int) -> None:
    """At a time, after a time, or at an hour of the day in some place."""
    run = alerting(emails=["a@example.com"], tct=tct)
    assert not list(of_time(run, by, policy()))
    assert len(list(of_time(run, by + 1, policy()))) == 1


def test_a_step_that_waits_for_signals_is_reported() -> None:
    """Where someone wants to know."""
    run = alerting(emails=["a@example.com"], type_configs={"DEPENDENCY_LATE": {"duration_minutes": 60}})
    attempt = Attempt("a", "r", "r", "wait", 1, 1, "NoOp", StepStatus.WAITING_FOR_SIGNALS, times={"wait_signal": DAY})
    found = Snapshot(run, (attempt, replace(attempt, status=StepStatus.RUNNING)))
    assert wants_dependencies(run, policy())
    assert not wants_dependencies(RUN, policy())
    assert not list(of_waiting(found, DAY + HOUR, policy()))
    (message,) = of_waiting(found, DAY + HOUR + 1, policy())
    assert message.alert.title == "sales.daily 3: step wait waits for signals since 1970-01-02T00:00:00+00:00"


def test_a_new_version_is_reported() -> None:
    """With who pushed it."""
    wanted = {"alerting": {"emails": ["a@example.com"], "type_configs": {"DEFINITION_CHANGE": {}}}}
    (message,) = of_version(VersionRecord("w", 2, {}, "ann", 5), wanted, policy())
    assert message.alert.title == "w: ann pushed version 2"
    assert isinstance(message, Message)
    assert not list(of_version(VersionRecord("w", 2, {}, "", 5), {}, policy()))
