"""When time triggers fire."""

from datetime import UTC, datetime
from typing import Any

import pytest

from calve.errors import DefinitionInvalid
from calve.triggers import Evaluation, Trigger, TriggerType
from calve.triggers.time import AT_ONCE, TimeTriggers, delay_of, upcoming

MINUTE = 60_000
HOUR = 60 * MINUTE


def at(text: str) -> int:
    """Return a moment in milliseconds."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000)


NOON = at("2026-03-02 12:00")


def trigger(state: dict[str, Any] | None = None, made_at: int = NOON, **definition: Any) -> Trigger:
    """Return a time trigger, hourly if nothing is said."""
    written = {"type": "CRON", "cron": "0 * * * *"} if "type" not in definition else {}
    return Trigger("w", "time:0", TriggerType.TIME, 1, {**written, **definition}, state or {}, 0, 1, made_at)


def fired(looked: Evaluation) -> list[int]:
    """Return the moments for which something is started."""
    return [int(fire.key) for fire in looked.fires]


def test_a_new_trigger_fires_from_when_it_became_active() -> None:
    """Also if the scheduler sees it later: nothing is missed because nobody was there."""
    looked = TimeTriggers().begin(trigger(), NOON + 150 * MINUTE)
    assert fired(looked) == [NOON + HOUR, NOON + 2 * HOUR]
    assert (looked.state, looked.due_at) == ({"after": NOON + 2 * HOUR}, NOON + 3 * HOUR)


def test_a_new_trigger_does_not_fire_for_the_moment_it_is_made_in() -> None:
    """It is due at its first scheduled time after that."""
    looked = TimeTriggers().begin(trigger(), NOON)
    assert (fired(looked), looked.due_at) == ([], NOON + HOUR)


def test_a_run_is_told_for_which_moment_it_is() -> None:
    """RUN_TS is the scheduled time, and the initiator knows the zone and the trigger."""
    hourly = trigger({"after": NOON}, timezone="Europe/Berlin")
    (fire,) = TimeTriggers().evaluate(hourly, NOON + HOUR + 7).fires
    assert fire.params == {"RUN_TS": NOON + HOUR}
    assert (fire.initiator.type, fire.initiator.timezone) == ("TIME", "Europe/Berlin")
    assert fire.initiator.trigger == {
        "trigger_id": "time:0",
        "trigger_uuid": hourly.uuid,
        "scheduled_at": NOON + HOUR,
    }


def test_a_changed_trigger_fires_nothing_that_has_fired() -> None:
    """What it dealt with before the change is not dealt with again."""
    looked = TimeTriggers().begin(trigger({"after": NOON + HOUR}), NOON + HOUR)
    assert (fired(looked), looked.due_at) == ([], NOON + 2 * HOUR)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("ALL", [1, 2, 3, 4, 5]), ("LATEST", [5]), ("NONE", []), (None, [1, 2, 3, 4, 5])],
)
def test_missed_firings_are_made_up_for_as_the_policy_says(policy: str | None, expected: list[int]) -> None:
    """After five hours and a half of downtime: all, the latest, or none; and what was passed over is noted."""
    down = trigger({"after": NOON}, catch_up=policy)
    looked = TimeTriggers().evaluate(down, NOON + 330 * MINUTE)
    assert fired(looked) == [NOON + hour * HOUR for hour in expected]
    assert (looked.state["after"], looked.due_at) == (NOON + 5 * HOUR, NOON + 6 * HOUR)
    before = {"ALL": None, None: None, "LATEST": NOON + 5 * HOUR, "NONE": NOON + 6 * HOUR}[policy]
    assert looked.state.get("passed_over") == (before and {"from": NOON + HOUR, "before": before})


def test_a_firing_that_is_a_little_late_has_not_been_missed() -> None:
    """A scheduler that was restarted in a minute passes over nothing, whatever the policy."""
    none = trigger({"after": NOON}, catch_up="NONE")
    assert fired(TimeTriggers().evaluate(none, NOON + HOUR + 5 * MINUTE)) == [NOON + HOUR]
    assert fired(TimeTriggers().evaluate(none, NOON + HOUR + 5 * MINUTE + 1)) == []


def test_what_was_skipped_stays_noted() -> None:
    """Until something else is passed over."""
    noted = {"from": 1, "before": 2}
    looked = TimeTriggers().evaluate(trigger({"after": NOON, "passed_over": noted}), NOON + HOUR)
    assert looked.state == {"after": NOON + HOUR, "passed_over": noted}


def test_many_missed_firings_come_in_pieces_and_within_limits() -> None:
    """A year of downtime brings the latest ones only, some at a time."""
    down, now, seen = trigger({"after": NOON}), NOON + 365 * 24 * HOUR, list[int]()
    while True:
        looked = TimeTriggers(limit=50).evaluate(down, now)
        seen += fired(looked)
        assert len(looked.fires) <= AT_ONCE
        if looked.due_at is None or looked.due_at > now:
            break
        down = trigger(dict(looked.state))
    assert seen == [now - hour * HOUR for hour in range(49, -1, -1)]
    assert looked.state["passed_over"] == {"from": NOON + HOUR, "before": now - 49 * HOUR}


def test_a_clock_that_goes_back_fires_nothing_again() -> None:
    """B.2-20: the trigger waits until its next scheduled time comes."""
    looked = TimeTriggers().evaluate(trigger({"after": NOON}), NOON - 5 * HOUR)
    assert (fired(looked), looked.state, looked.due_at) == ([], {"after": NOON}, NOON + HOUR)


def test_a_firing_is_put_off_by_the_same_span_whoever_computes_it() -> None:
    """``fuzzy_max_delay`` moves the start, not the moment that the run is for."""
    fuzzy = trigger({"after": NOON}, fuzzy_max_delay="30m")
    delay = delay_of(fuzzy, NOON + HOUR, 30 * MINUTE)
    assert 0 < delay < 30 * MINUTE
    assert fired(TimeTriggers().evaluate(fuzzy, NOON + HOUR + delay - 1)) == []
    looked = TimeTriggers().evaluate(fuzzy, NOON + HOUR + delay)
    assert fired(looked) == [NOON + HOUR]
    assert looked.due_at == NOON + 2 * HOUR + delay_of(fuzzy, NOON + 2 * HOUR, 30 * MINUTE)


@pytest.mark.parametrize("policy", ["ALL", "LATEST", "NONE"])
def test_delays_that_let_several_come_at_once_drop_none(policy: str) -> None:
    """While a scheduler looks whenever the trigger is due, nothing is missed, whatever the policy."""
    fuzzy = trigger({"after": NOON}, cron="*/5 * * * *", type="CRON", fuzzy_max_delay="1h", catch_up=policy)
    now, seen = NOON, list[int]()
    while now < NOON + 24 * HOUR:
        looked = TimeTriggers().evaluate(fuzzy, now)
        seen += fired(looked)
        assert "passed_over" not in looked.state
        assert looked.due_at is not None
        now = max(now + 1_000, looked.due_at)
        fuzzy = trigger(dict(looked.state), cron="*/5 * * * *", type="CRON", fuzzy_max_delay="1h", catch_up=policy)
    assert seen == [NOON + number * 5 * MINUTE for number in range(1, len(seen) + 1)]
    assert len(seen) > 24 * 11


@pytest.mark.parametrize(("policy", "most"), [("LATEST", 4), ("NONE", 3)])
def test_delays_do_not_make_up_for_what_was_missed(policy: str, most: int) -> None:
    """After hours of downtime, only those fire that are hardly late, and the latest if that is the policy."""
    fuzzy = trigger({"after": NOON}, cron="*/30 * * * *", type="CRON", fuzzy_max_delay="1h", catch_up=policy)
    looked = TimeTriggers().evaluate(fuzzy, NOON + 10 * HOUR)
    assert len(looked.fires) <= most
    assert looked.state["passed_over"]["from"] == NOON + 30 * MINUTE


def test_delays_are_spread() -> None:
    """Triggers of many workflows do not all start at the same moment."""
    delays = {
        delay_of(Trigger(f"w{n}", "time:0", TriggerType.TIME, 1, {}, {}, 0, 1, 0), NOON, 1_000) // 100
        for n in range(200)
    }
    assert delays == set(range(10))


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ({"type": "PREDEFINED", "expression": "@daily"}, at("2026-03-03 00:00")),
        ({"type": "INTERVAL", "interval": "15 minutes"}, NOON + 15 * MINUTE),
        ({"type": "CRON", "cron": "0 30 7 ? * MON#2 *", "timezone": "Asia/Tokyo"}, at("2026-03-08 22:30")),
    ],
)
def test_every_kind_of_schedule_is_understood(definition: dict[str, Any], expected: int) -> None:
    """Words, intervals, and Quartz in another zone."""
    assert TimeTriggers().begin(trigger(**definition), NOON).due_at == expected


def test_a_schedule_that_is_over_is_never_due_again() -> None:
    """A Quartz expression may name its years."""
    looked = TimeTriggers().begin(trigger(type="CRON", cron="0 0 13 2 3 ? 2026"), NOON + 2 * HOUR)
    assert (fired(looked), looked.due_at) == ([NOON + HOUR], None)
    assert TimeTriggers().evaluate(trigger(dict(looked.state), type="CRON", cron="0 0 13 2 3 ? 2026"), NOON).fires == ()


def test_what_is_disabled_is_skipped() -> None:
    """A workflow that time is not to start now misses its firings for good."""
    looked = TimeTriggers(is_disabled=lambda workflow_id: workflow_id == "w").evaluate(
        trigger({"after": NOON}), NOON + 2 * HOUR
    )
    assert fired(looked) == []
    assert looked.state == {"after": NOON + 2 * HOUR, "passed_over": {"from": NOON + HOUR, "before": NOON + 3 * HOUR}}


def test_a_schedule_that_is_not_understood_is_an_error() -> None:
    """The scheduler notes it, and leaves the trigger alone for a while."""
    with pytest.raises(DefinitionInvalid):
        TimeTriggers().begin(trigger(timezone="Mars/Olympus"), NOON)


@pytest.mark.parametrize(
    ("zone", "cron", "begin", "end", "expected"),
    [
        ("Europe/Berlin", "30 2 * * *", "2026-03-28 12:00", "2026-03-30 12:00", ["29 01:00", "30 00:30"]),
        ("Europe/Berlin", "30 2 * * *", "2026-10-24 12:00", "2026-10-26 12:00", ["25 00:30", "26 01:30"]),
        ("America/New_York", "30 1 * * *", "2026-10-31 12:00", "2026-11-02 12:00", ["01 05:30", "02 06:30"]),
        ("Australia/Lord_Howe", "10 2 * * *", "2026-10-03 00:00", "2026-10-05 00:00", ["03 15:30", "04 15:10"]),
    ],
)
def test_times_that_do_not_exist_or_come_twice_fire_once(
    zone: str, cron: str, begin: str, end: str, expected: list[str]
) -> None:
    """One that is skipped fires after the gap; one that comes twice fires the first time."""
    looked = TimeTriggers().evaluate(trigger({"after": at(begin)}, type="CRON", cron=cron, timezone=zone), at(end))
    moments = [datetime.fromtimestamp(moment / 1_000, UTC).strftime("%d %H:%M") for moment in fired(looked)]
    assert moments == expected


def test_a_clock_that_goes_back_before_the_trigger_begins_fires_nothing_early() -> None:
    """B.2-20: what lies before its activation is not its own."""
    looked = TimeTriggers().begin(trigger(), NOON - 3 * HOUR)
    assert (fired(looked), looked.due_at) == ([], NOON + HOUR)


def test_the_next_firings_are_known_with_their_delays() -> None:
    """In order, and only those to come: one whose delay has not passed counts."""
    assert upcoming(trigger({"after": NOON}), NOON + 1, 3) == [NOON + n * HOUR for n in (1, 2, 3)]
    fuzzy = trigger({"after": NOON}, fuzzy_max_delay="30m")
    delay = delay_of(fuzzy, NOON + HOUR, 30 * MINUTE)
    assert upcoming(fuzzy, NOON + HOUR + delay - 1, 1) == [NOON + HOUR + delay]
    assert upcoming(fuzzy, NOON + HOUR + delay, 1)[0] > NOON + 2 * HOUR
