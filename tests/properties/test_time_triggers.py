"""Time triggers: never twice, never missed, whatever the schedule, the zone, and the moments at which one looks."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

from hypothesis import given, settings, strategies as st
from tests.scope import in_ci

from calve.definition.schedules import zone_of
from calve.definition.schedules.parser import _names
from calve.triggers import Evaluation, TimeTriggers, Trigger, TriggerType
from calve.triggers.time import ON_TIME, delay_of, plan_of

MINUTE = 60_000
DAY = 24 * 60 * MINUTE
YEAR = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1_000)
ZONES = st.sampled_from(sorted(_names()))
DELAY = 20 * MINUTE

moments = st.integers(YEAR, YEAR + 365 * DAY)
schedules = st.sampled_from(
    ["0 * * * *", "*/15 * * * *", "30 2 * * *", "5 0,1,2,3,23 * * *", "0 12 * * 1", "0 0 3 L * ?", "0 0/7 1 ? * SUN *"]
)
gaps = st.lists(st.one_of(st.integers(0, 3 * 60 * MINUTE), st.integers(-60 * MINUTE, 2 * DAY)), min_size=1, max_size=25)


def trigger(cron: str, zone: str, made_at: int, catch_up: str, *, is_fuzzy: bool = False) -> Trigger:
    """Return a trigger that is new."""
    definition = {"type": "CRON", "cron": cron, "timezone": zone, "catch_up": catch_up}
    if is_fuzzy:
        definition["fuzzy_max_delay"] = "20m"
    return Trigger("w", "time:0", TriggerType.TIME, 1, definition, {}, 0, 1, made_at, is_begun=False)


def looked_at(new: Trigger, begin: int, steps: list[int]) -> list[tuple[int, Evaluation]]:
    """Look at a trigger again and again, as often as it asks for it, and return what each look gave, and when."""
    kind, now, looks = TimeTriggers(limit=100_000), begin, list[tuple[int, Evaluation]]()
    seen = new
    for step in [0, *steps]:
        now += step
        while True:
            looked = kind.evaluate(seen, now) if seen.is_begun else kind.begin(seen, now)
            looks.append((now, looked))
            seen = Trigger(
                "w", "time:0", TriggerType.TIME, 1, new.definition, looked.state, looked.due_at, 1, new.made_at
            )
            if looked.due_at is None or looked.due_at > now:
                break
    return looks


def fired(looks: list[tuple[int, Evaluation]]) -> list[int]:
    """Return the moments for which something was started, in order."""
    return [int(fire.key) for _, looked in looks for fire in looked.fires]


@given(cron=schedules, zone=ZONES, begin=moments, steps=gaps)
def test_every_moment_fires_once_and_in_order(cron: str, zone: str, begin: int, steps: list[int]) -> None:
    """With ``catch_up: all``, however long nobody looks and wherever the clock jumps."""
    new = trigger(cron, zone, begin, "ALL")
    looks = looked_at(new, begin, steps)
    highest = max(now for now, _ in looks)
    assert fired(looks) == list(plan_of(new).between(begin, highest))


@given(cron=schedules, zone=ZONES, begin=moments, steps=gaps)
def test_the_latest_moment_fires(cron: str, zone: str, begin: int, steps: list[int]) -> None:
    """With ``catch_up: latest``, each look fires once at most, for the last moment that has come."""
    new = trigger(cron, zone, begin, "LATEST")
    looks = looked_at(new, begin, steps)
    moments = fired(looks)
    assert moments == sorted(set(moments))
    for now, looked in looks:
        for fire in looked.fires:
            assert list(plan_of(new).between(int(fire.key), now)) == []


@given(cron=schedules, zone=ZONES, begin=moments, steps=gaps)
def test_nothing_old_fires(cron: str, zone: str, begin: int, steps: list[int]) -> None:
    """With ``catch_up: none``, exactly those moments fire for which someone looked in time."""
    new = trigger(cron, zone, begin, "NONE")
    looks = looked_at(new, begin, steps)
    highest, in_time = begin, set[int]()
    for now, _ in looks:
        if now > highest:
            in_time |= {moment for moment in plan_of(new).between(highest, now) if now - moment <= ON_TIME}
            highest = now
    assert fired(looks) == sorted(in_time)


@given(cron=schedules, zone=ZONES, begin=moments, steps=gaps)
def test_a_delay_loses_nothing(cron: str, zone: str, begin: int, steps: list[int]) -> None:
    """No firing comes before its delay is over, each comes once, and all have come when the longest delay is over."""
    new = trigger(cron, zone, begin, "ALL", is_fuzzy=True)
    looks = looked_at(new, begin, [*steps, DELAY + DAY])
    for now, looked in looks:
        assert all(int(fire.key) + delay_of(new, int(fire.key), DELAY) <= now for fire in looked.fires)
    highest = max(now for now, _ in looks)
    moments, all_of_them = fired(looks), list(plan_of(new).between(begin, highest))
    assert moments == all_of_them[: len(moments)]
    assert all(moment > highest - DELAY for moment in all_of_them[len(moments) :])


@settings(max_examples=in_ci(25, otherwise=50))
@given(zone=ZONES, hour=st.integers(0, 23), minute=st.integers(0, 59), year=st.integers(1975, 2037))
def test_a_time_of_the_day_comes_once_a_day(zone: str, hour: int, minute: int, year: int) -> None:
    """In every zone and every year: one firing on each date that exists there, at that time or right after a gap."""
    begin = int((datetime(year, 1, 1, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 1_000
    new = trigger(f"{minute} {hour} * * *", zone, begin, "ALL")
    there = zone_of(zone)
    locals_ = [
        (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=moment)).astimezone(there)
        for moment in plan_of(new).between(begin, begin + 365 * DAY)
    ]
    dates = [local.date() for local in locals_]
    assert len(dates) == len(set(dates))
    assert _without_gaps(dates, there.key)
    late = [local for local in locals_ if (local.hour, local.minute) != (hour, minute)]
    assert all((local.hour, local.minute) > (hour, minute) or local.date() in dates for local in late)
    assert len(late) <= 4


def _without_gaps(dates: list[date], zone: str) -> bool:
    """Tell whether each date follows the one before; a zone that crosses the date line skips one."""
    jumps = [later for earlier, later in pairwise(dates) if later - earlier != timedelta(days=1)]
    return len(jumps) <= (1 if zone.startswith(("Pacific", "Kwajalein", "Antarctica", "Asia/Manila")) else 0)
