"""How the text of a schedule is understood: five fields of Unix, six or seven of Quartz, or a word. Pure."""

import re
from datetime import timedelta

from calve.definition.problems import did_you_mean
from calve.definition.schedules.cron import Cron
from calve.definition.schedules.days import DayRule, LastDay, LastWeekday, NearestWeekday, NthWeekday, WeekdayRule
from calve.definition.schedules.fields import (
    DAY,
    HOUR,
    MINUTE,
    MONTH,
    QUARTZ_DAY,
    QUARTZ_HOUR,
    QUARTZ_MINUTE,
    QUARTZ_MONTH,
    QUARTZ_WEEKDAY,
    SECOND,
    WEEKDAY,
    YEAR,
)
from calve.definition.schedules.intervals import Interval
from calve.errors import DefinitionInvalid

Schedule = Cron | Interval

MINIMUM_GAP = timedelta(minutes=2)
PREDEFINED: dict[str, str] = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

_LONGEST = 1000
_LAST_DAY = re.compile(r"L(-(?P<before>[0-9]{1,2}))?(?P<nearest>W)?", re.IGNORECASE)
_NEAREST = re.compile(r"(?P<day>[0-9]+)W", re.IGNORECASE)
_NTH = re.compile(r"(?P<weekday>\w+)#(?P<n>[0-9]+)")
_LAST_WEEKDAY = re.compile(r"(?P<weekday>\w+)L", re.IGNORECASE)
_QUARTZ_IN_DAY = re.compile(r"[?#LW]", re.IGNORECASE)
_QUARTZ_IN_WEEKDAY = re.compile(r"[?#L]", re.IGNORECASE)
"""No name of a weekday has an L."""
_ALL_DAYS: frozenset[DayRule] = frozenset(range(1, 32))
_ALL_WEEKDAYS: frozenset[WeekdayRule] = frozenset(range(7))


def predefined_of(word: str) -> Cron:
    """Return the schedule of a word such as ``@daily``."""
    known = PREDEFINED.get(word.strip().lower())
    if known is None:
        raise DefinitionInvalid(f"there is no schedule {word.strip()}", remedy=did_you_mean(word, PREDEFINED))
    return parse(known)


def cron_of(text: str) -> Cron:
    """Return the schedule of a cron expression that fires at all, and not too often."""
    cron = parse(text)
    if not cron.is_possible():
        raise DefinitionInvalid(f"{text} never fires: there is no such day")
    _refuse_haste(cron.minimum_gap(), text)
    return cron


def interval_of(every: timedelta) -> Interval:
    """Return the schedule that fires after each span of time, unless that is too often."""
    _refuse_haste(every, f"an interval of {every}")
    return Interval(every)


def parse(text: str) -> Cron:
    """Return what a cron expression means, however often it fires."""
    if len(text) > _LONGEST:
        raise DefinitionInvalid(f"a cron expression has at most {_LONGEST} characters")
    fields = text.split()
    match len(fields):
        case 5:
            return _unix(*fields)
        case 6 | 7:
            return _quartz(*fields)
        case count:
            remedy = "write five fields (minute hour day month weekday), or six or seven as Quartz has them"
            raise DefinitionInvalid(f"a cron expression has 5, 6 or 7 fields, not {count}", remedy=remedy)


def _refuse_haste(gap: timedelta | None, name: str) -> None:
    if gap is not None and gap < MINIMUM_GAP:
        raise DefinitionInvalid(
            f"{name} fires again after {gap.total_seconds():g} seconds, but {MINIMUM_GAP.seconds} must lie between",
            remedy="fire less often, or let a signal or a change of the tables start the workflow",
        )


def _unix(minute: str, hour: str, day: str, month: str, weekday: str) -> Cron:
    for field, text, only_quartz in ((DAY, day, _QUARTZ_IN_DAY), (WEEKDAY, weekday, _QUARTZ_IN_WEEKDAY)):
        if only_quartz.search(text):
            remedy = "? L W and # are Quartz's: write six or seven fields, the seconds first"
            raise field.invalid(f"{field.name} cannot be {text} in five fields", remedy)
    return Cron(
        seconds=frozenset({0}),
        minutes=MINUTE.read(minute),
        hours=HOUR.read(hour),
        days=frozenset(DAY.read(day)),
        months=MONTH.read(month),
        weekdays=frozenset(number % 7 for number in WEEKDAY.read(weekday)),
        # As cron always had it: a field that begins with a star does not widen the other.
        is_either_day=not day.startswith("*") and not weekday.startswith("*"),
        is_every_hour=_is_wildcard(hour),
    )


def _quartz(second: str, minute: str, hour: str, day: str, month: str, weekday: str, year: str = "*") -> Cron:
    if (day == "?") == (weekday == "?"):
        name = f"{QUARTZ_DAY.name} and {QUARTZ_WEEKDAY.name}"
        raise DefinitionInvalid(
            f"one of {name} must be ?, the other not", remedy="write ? for the one that does not matter"
        )
    return Cron(
        seconds=SECOND.read(second),
        minutes=QUARTZ_MINUTE.read(minute),
        hours=QUARTZ_HOUR.read(hour),
        days=_ALL_DAYS if day == "?" else frozenset(rule for part in day.split(",") for rule in _days(part)),
        months=QUARTZ_MONTH.read(month),
        weekdays=_ALL_WEEKDAYS
        if weekday == "?"
        else frozenset(rule for part in weekday.split(",") for rule in _weekdays(part)),
        years=None if year == "*" else YEAR.read(year),
        is_every_hour=_is_wildcard(hour),
    )


def _is_wildcard(hour: str) -> bool:
    return hour.startswith("*") or hour == "0/1"


def _days(part: str) -> list[DayRule]:
    rule: DayRule
    if found := _LAST_DAY.fullmatch(part):
        before = int(found["before"] or 0)
        if before > 30:
            raise QUARTZ_DAY.invalid(f"L-{before} lies before every month: at most L-30")
        rule = LastDay(before)
        return [NearestWeekday(rule) if found["nearest"] else rule]
    if found := _NEAREST.fullmatch(part):
        return [NearestWeekday(QUARTZ_DAY.number(found["day"]))]
    return list(QUARTZ_DAY.read_part(part))


def _weekdays(part: str) -> list[WeekdayRule]:
    if found := _NTH.fullmatch(part):
        if found["n"] not in {"1", "2", "3", "4", "5"}:
            raise QUARTZ_WEEKDAY.invalid(f"#{found['n']} is not between #1 and #5")
        return [NthWeekday(QUARTZ_WEEKDAY.number(found["weekday"]) - 1, int(found["n"]))]
    if part.upper() == "L":
        return [6]
    if found := _LAST_WEEKDAY.fullmatch(part):
        return [LastWeekday(QUARTZ_WEEKDAY.number(found["weekday"]) - 1)]
    return [number - 1 for number in QUARTZ_WEEKDAY.read_part(part)]
