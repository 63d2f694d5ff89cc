"""Parse schedules: cron expressions of Unix and Quartz, predefined ones, intervals and time zones. Pure."""

import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib.resources import files
from zoneinfo import ZoneInfo

from calve.definition.problems import did_you_mean
from calve.definition.schedules.cron import Cron, DayRule, LastDay, LastWeekday, NearestWeekday, NthWeekday, WeekdayRule
from calve.errors import DefinitionInvalid

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")

_PART = re.compile(r"(?P<first>\*|\w+)?(-(?P<last>\w+))?(/(?P<step>\w+))?")


@dataclass(frozen=True, slots=True)
class CronField:
    """One field of a cron expression: its range and names."""

    name: str
    low: int
    high: int
    longest_step: int
    names: dict[str, int] = field(default_factory=dict)
    can_wrap: bool = False
    """Whether a range may wrap around: ``FRI-MON``, ``22-2``."""

    def read(self, text: str) -> frozenset[int]:
        """Return the numbers that a list of parts means."""
        return frozenset(number for part in text.split(",") for number in self.read_part(part))

    def read_part(self, part: str) -> list[int]:
        """Return the numbers that ``*``, ``3``, ``3-7``, ``*/5``, ``3-30/5`` or ``3/5`` means."""
        if not part:
            raise self.invalid(f"{self.name} has an empty part", "remove the extra comma")
        found = _PART.fullmatch(part)
        if not found or (found["last"] and found["first"] in {None, "*"}):
            raise self.invalid(f"{self.name} cannot be {part}")
        numbers = self._range(found["first"] or "*", found["last"], is_open=found["step"] is not None)
        return numbers[:: self._step(found["step"])] if found["step"] else numbers

    def number(self, text: str) -> int:
        """Return the number that a text or a name means."""
        if text.upper() in self.names:
            return self.names[text.upper()]
        if not (text.isascii() and text.isdecimal()):
            raise self.invalid(f"{self.name} cannot be {text}", did_you_mean(text, self.names))
        # No valid number has more digits.
        if len(text) > 4 or not self.low <= int(text) <= self.high:
            raise self.invalid(f"{self.name} {text} is not between {self.low} and {self.high}")
        return int(text)

    def invalid(self, message: str, remedy: str = "") -> DefinitionInvalid:
        """Return the error that says what is wrong with this field."""
        return DefinitionInvalid(message, remedy=remedy, field=self.name)

    def _range(self, first: str, last: str | None, *, is_open: bool) -> list[int]:
        if first == "*":
            return list(range(self.low, self.high + 1))
        low = self.number(first)
        if last is None:
            return list(range(low, self.high + 1)) if is_open else [low]
        high = self.number(last)
        if low <= high:
            return list(range(low, high + 1))
        if not self.can_wrap:
            raise self.invalid(f"the range {first}-{last} of {self.name} goes backwards")
        return [*range(low, self.high + 1), *range(self.low, high + 1)]

    def _step(self, text: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) <= 4 and 1 <= int(text) <= self.longest_step):
            raise self.invalid(f"the step {text} of {self.name} is not between 1 and {self.longest_step}")
        return int(text)


SECOND = CronField("second", 0, 59, 59, can_wrap=True)
MINUTE = CronField("minute", 0, 59, 59)
HOUR = CronField("hour", 0, 23, 23)
DAY = CronField("day of the month", 1, 31, 31)
MONTH = CronField("month", 1, 12, 12, {name: number for number, name in enumerate(MONTHS, 1)})
WEEKDAY = CronField("day of the week", 0, 7, 7, {name: number for number, name in enumerate(WEEKDAYS)})

QUARTZ_MINUTE, QUARTZ_HOUR, QUARTZ_DAY, QUARTZ_MONTH = (
    replace(each, can_wrap=True) for each in (MINUTE, HOUR, DAY, MONTH)
)
QUARTZ_WEEKDAY = replace(WEEKDAY, low=1, names={name: number for number, name in enumerate(WEEKDAYS, 1)}, can_wrap=True)
YEAR = CronField("year", 1970, 2099, 129)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Interval:
    """Fires at multiples of a time span since 1970 in UTC, so that no state is needed."""

    every: timedelta

    def next_after(self, instant: datetime, zone: ZoneInfo) -> datetime:  # noqa: ARG002 - as cron has it
        """Return the first firing after an instant; the zone does not matter."""
        return _EPOCH + ((instant - _EPOCH) // self.every + 1) * self.every

    def minimum_gap(self) -> timedelta:
        """Return the time between two firings."""
        return self.every


@lru_cache(maxsize=1024)
def zone_of(name: str | None) -> ZoneInfo:
    """Return the time zone of a name; UTC if there is none."""
    if name is None:
        return zone_of("UTC")
    # A name becomes a file path, so only known names are looked up.
    if name not in _names():
        raise DefinitionInvalid(f"there is no time zone {name}", remedy=did_you_mean(name, _names()))
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(files("tzdata").joinpath("zones").read_text().split()) - {"Factory"}


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
    """Return a predefined schedule such as ``@daily``."""
    known = PREDEFINED.get(word.strip().lower())
    if known is None:
        raise DefinitionInvalid(f"there is no schedule {word.strip()}", remedy=did_you_mean(word, PREDEFINED))
    return parse(known)


def cron_of(text: str) -> Cron:
    """Return the schedule of a cron expression, which must fire, but not too often."""
    cron = parse(text)
    if not cron.is_possible():
        raise DefinitionInvalid(f"{text} never fires: there is no such day")
    _refuse_haste(cron.minimum_gap(), text)
    return cron


def interval_of(every: timedelta) -> Interval:
    """Return the schedule of an interval, which must not be too short."""
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
            f"{name} fires again after {gap.total_seconds():g} seconds, but the minimum is {MINIMUM_GAP.seconds}",
            remedy="fire less often, or let a signal or a change of the tables start the workflow",
        )


def _unix(minute: str, hour: str, day: str, month: str, weekday: str) -> Cron:
    for part, text, only_quartz in ((DAY, day, _QUARTZ_IN_DAY), (WEEKDAY, weekday, _QUARTZ_IN_WEEKDAY)):
        if only_quartz.search(text):
            remedy = "? L W and # are Quartz's: write six or seven fields, the seconds first"
            raise part.invalid(f"{part.name} cannot be {text} in five fields", remedy)
    return Cron(
        seconds=frozenset({0}),
        minutes=MINUTE.read(minute),
        hours=HOUR.read(hour),
        days=frozenset(DAY.read(day)),
        months=MONTH.read(month),
        weekdays=frozenset(number % 7 for number in WEEKDAY.read(weekday)),
        # As in Unix cron: a field that begins with a star does not widen the other.
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
            raise QUARTZ_DAY.invalid(f"L-{before} is before the first day of every month: use at most L-30")
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
