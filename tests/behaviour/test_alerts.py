"""Alerts follow what happens, and are sent at least once, on both databases."""

import logging
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.engines import BUSY, FATAL_ERROR, Playground, Unreliable, wait_for

from calve.alerts import EVENTS, Alerts, Message, MessageStatus, Policy
from calve.alerts.alerts import FIRST, IN_HAND, WATCH
from calve.errors import AlertNotSent, Conflict, StoreUnavailable
from calve.settings import AlertSettings

pytestmark = pytest.mark.each_store

ONE = "Workflow:\n  id: w\n  jobs:\n    - job: {id: a, type: Shell, shell: {script: x}}\n"
RULES = (
    {"on": ["failure", "success"], "channels": ["one", "other"]},
    {"on": ["long_running"], "after": "1h", "channels": ["one"]},
)


@dataclass
class Fake:
    """A channel that keeps what it sends, or fails as it is told."""

    sent: list[Message] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)

    def send(self, message: Message, now: int) -> None:
        """Take a message."""
        del now
        if self.errors:
            raise self.errors.pop(0)
        self.sent.append(message)

    @property
    def titles(self) -> list[str]:
        """What was told."""
        return [message.alert.title for message in self.sent]


@dataclass
class Place:
    """Alerts on a playground."""

    playground: Playground
    alerts: Alerts
    one: Fake
    other: Fake

    def turn(self, seconds: float = 0) -> int:
        """Let time pass, and look."""
        self.playground.advance(seconds)
        return self.alerts.turn()


@pytest.fixture
def place(playground: Playground) -> Place:
    """Give alerts that have begun to follow, with two channels and rules."""
    hook = {"type": "webhook", "url": "http://x"}
    settings = AlertSettings.model_validate({"channels": {"one": hook, "other": hook}, "rules": RULES})
    one, other = Fake(), Fake()
    channels = {"one": one, "other": other}
    state = playground.store.alerts
    alerts = Alerts(playground.state, state, channels, Policy.of(settings), playground.clock, tries=3)
    alerts.turn()
    return Place(playground, alerts, one, other)


def test_what_happens_is_reported_once(place: Place) -> None:
    """On each channel."""
    place.playground.push(ONE)
    place.playground.start()
    place.playground.script.parts["a"] = FATAL_ERROR
    place.playground.start()
    assert place.turn() == 4
    assert place.turn() == 0
    assert place.one.titles == place.other.titles == ["w 1 succeeded", "w 2 failed"]
    assert place.one.sent[1].alert.text.endswith("no way")


def test_what_was_before_is_not_told(playground: Playground) -> None:
    """Whoever switches alerts on is not flooded."""
    playground.push(ONE)
    playground.start()
    state, one = playground.store.alerts, Fake()
    rules = AlertSettings.model_validate({"channels": {"one": {"type": "webhook", "url": "x"}}, "rules": RULES[1:]})
    alerts = Alerts(playground.state, state, {"one": one}, Policy.of(rules), playground.clock)
    assert alerts.turn() == 0
    assert not state.messages()


def test_a_channel_that_fails_does_not_stop_the_others(place: Place) -> None:
    """It is tried again, later each time."""
    place.one.errors = [AlertNotSent("away"), RuntimeError("odd")]
    place.playground.push(ONE)
    place.playground.start()
    assert place.turn() == 1
    assert place.other.titles == ["w 1 succeeded"]
    (waiting,) = place.playground.store.alerts.messages(status=MessageStatus.WAITING)
    assert (waiting.tries, waiting.error) == (1, "away")
    assert place.turn(FIRST / 1_000 - 1) == 0
    assert place.turn(1) == 0
    assert place.turn(FIRST / 1_000) == 0
    assert place.turn(FIRST / 1_000) == 1
    assert place.one.titles == ["w 1 succeeded"]
    assert {found.status for found in place.playground.store.alerts.messages()} == {MessageStatus.SENT}


def test_a_channel_that_fails_rests(place: Place) -> None:
    """However much there is to be sent on it: the others are not to wait for it."""
    place.one.errors = [AlertNotSent("away")] * 9
    place.playground.push(ONE)
    for _ in range(3):
        place.playground.start()
    assert place.turn() == 3
    assert len(place.one.errors) == 8
    assert len(place.other.sent) == 3
    assert place.turn() == 0
    assert len(place.one.errors) == 8
    place.one.errors.clear()
    assert place.turn(2 * FIRST / 1_000) == 3
    assert not place.alerts._resting(place.playground.clock())


def test_a_message_that_cannot_be_sent_is_given_up_and_reported(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """It stays where people can see it, with the error."""
    place.one.errors = [AlertNotSent("away")] * 9
    place.playground.push(ONE)
    place.playground.start()
    with caplog.at_level(logging.WARNING):
        for _ in range(4):
            place.turn(100)
    (lost,) = place.playground.store.alerts.messages(status=MessageStatus.GIVEN_UP)
    assert (lost.tries, lost.error) == (3, "away")
    assert "has finally failed: away" in caplog.text
    assert len(place.one.errors) == 6


def test_a_channel_that_is_not_there_is_named(place: Place) -> None:
    """A definition may ask for what the settings do not have."""
    asked = "Properties:\n  alerting: {emails: [a@example.com]}\n"
    place.playground.push(asked + ONE)
    place.playground.script.parts["a"] = FATAL_ERROR
    place.playground.start()
    assert place.turn() == 2
    (lost,) = place.playground.store.alerts.messages(status=MessageStatus.GIVEN_UP)
    assert "Channel email does not exist (channels: one, other)" in lost.error


def test_a_message_whose_sender_died_is_sent_by_another(place: Place) -> None:
    """It may come twice, under one id; it never gets lost."""
    place.playground.push(ONE)
    place.playground.start()
    state, now = place.playground.store.alerts, place.playground.clock()
    place.alerts._follow()
    for stored in state.due(now):
        assert state.claim(stored, now + IN_HAND)
        assert not state.claim(stored, now + IN_HAND)
    assert place.turn() == 0
    assert place.turn(IN_HAND / 1_000) == 2


def test_of_two_followers_one_moves_on(place: Place) -> None:
    """The other one has read what is no longer new, and writes nothing."""
    place.playground.push(ONE)
    place.playground.start()
    state = place.playground.store.alerts
    at = state.position(EVENTS)
    place.alerts._follow()
    with pytest.raises(Conflict):
        state.take(EVENTS, at, at + 1, [], 0)
    assert len(state.messages()) == 2


def test_what_takes_long_is_reported_once(place: Place) -> None:
    """While it is under way."""
    place.playground.script.parts["a"] = BUSY
    place.playground.push(ONE)
    place.playground.start()
    assert place.turn(3_000) == 0
    assert place.turn(1_000) == 1
    assert place.turn(WATCH / 1_000) == 0
    assert place.one.titles == ["w 1 runs longer than 1:00:00"]


WAITING = """
Properties:
  alerting:
    pagerduties: [one]
    type_configs: {DEPENDENCY_LATE: {duration_minutes: 5}, DEFINITION_CHANGE: {}}
Workflow:
  id: w
  jobs:
    - job: {id: a, type: NoOp, signal_dependencies: {definitions: [{name: s}]}}
"""


def test_a_step_that_waits_for_signals_and_a_new_version_are_reported(place: Place) -> None:
    """Where the definition asks for it."""
    place.playground.push(WAITING)
    place.playground.start()
    place.turn()
    place.turn(400)
    place.turn(400)
    assert place.one.titles[0] == "w: someone pushed version 1"
    assert [title for title in place.one.titles[1:] if "longer" not in title] == [
        "w 1: step a waits for signals since 2023-11-14T22:13:20+00:00"
    ]


LOOP = """
Properties:
  alerting: {pagerduties: [one], type_configs: {STEP_FAILURE: {granularity: STEP}}}
Workflow:
  id: w
  jobs:
    - foreach:
        id: every
        ranges: {i: {from: 1, to: 2}}
        jobs: [{job: {id: a, type: Shell, shell: {script: x}}}]
"""


def test_a_step_of_a_loop_leads_to_its_instance(place: Place) -> None:
    """Not to the instance that has the number of the iteration."""
    place.playground.push(LOOP)
    place.playground.script.parts["a"] = FATAL_ERROR
    place.playground.start()
    place.turn()
    pages = {message.alert.step_id: message.alert.page for message in place.one.sent if message.alert.step_id}
    assert pages["a"] == "/workflows/w/instances/1?step=every%2F1%2Fa"


def test_it_continues_whatever_happens(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """A database that is away, another process that was faster, a mistake of ours."""
    faults: list[Exception] = [StoreUnavailable("away"), Conflict("faster"), RuntimeError("odd")]
    unreliable = Unreliable(place.playground.state)
    unreliable.faults["events"] = faults
    happenings: Any = unreliable
    place.alerts.happenings = happenings
    stop = threading.Event()
    thread = threading.Thread(target=place.alerts.run, args=(stop, 0.01))
    place.playground.push(ONE)
    place.playground.start()
    with caplog.at_level(logging.WARNING):
        thread.start()
        wait_for(lambda: bool(place.one.sent))
        stop.set()
        thread.join()
    assert "alerts are waiting: away" in caplog.text
    assert "sending alerts failed" in caplog.text
