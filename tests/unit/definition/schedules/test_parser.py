"""A schedule is understood, or it is said which field is wrong and why."""

from datetime import timedelta

import pytest

from calve.definition.schedules import PREDEFINED, Interval, cron_of, interval_of, predefined_of
from calve.definition.schedules.cron import LastDay, LastWeekday, NearestWeekday, NthWeekday
from calve.definition.schedules.parser import parse
from calve.errors import DefinitionInvalid


def test_five_fields_are_those_of_unix() -> None:
    """Minute, hour, day, month, weekday; Sunday is 0 and 7."""
    cron = parse("*/15 9-17/4,20 1,15 jan-MAR sun,5-7")
    assert cron.seconds == {0}
    assert cron.minutes == {0, 15, 30, 45}
    assert cron.hours == {9, 13, 17, 20}
    assert cron.days == {1, 15}
    assert cron.months == {1, 2, 3}
    assert cron.weekdays == {0, 5, 6}
    assert cron.years is None


def test_a_step_without_a_range_goes_to_the_end() -> None:
    """As Quartz has it, and as people write it in five fields too."""
    assert parse("5/20 * * * *").minutes == {5, 25, 45}
    assert parse("/20 * * * *").minutes == {0, 20, 40}


def test_a_day_fits_either_field_if_both_are_given() -> None:
    """A field that begins with a star does not widen the other, as cron always had it."""
    assert parse("0 0 13 * 5").is_either_day
    assert not parse("0 0 */2 * 5").is_either_day
    assert not parse("0 0 13 * *").is_either_day


def test_six_or_seven_fields_are_those_of_quartz() -> None:
    """Seconds first, years last; Sunday is 1."""
    cron = parse("0/20 0 12 ? NOV-FEB FRI-MON 2026-2028/2")
    assert cron.seconds == {0, 20, 40}
    assert cron.hours == {12}
    assert cron.months == {11, 12, 1, 2}
    assert cron.weekdays == {5, 6, 0, 1}
    assert cron.days == set(range(1, 32))
    assert cron.years == frozenset({2026, 2028})
    assert parse("0 0 12 1/1 * ? *") == parse("0 0 12 * * ?")
    assert parse("0 0 22-2 * * ?").hours == {22, 23, 0, 1, 2}


@pytest.mark.parametrize(
    ("day", "rules"),
    [
        ("L", {LastDay()}),
        ("L-3", {LastDay(3)}),
        ("LW", {NearestWeekday(LastDay())}),
        ("L-3W", {NearestWeekday(LastDay(3))}),
        ("15w", {NearestWeekday(15)}),
        ("1,10-12,L", {1, 10, 11, 12, LastDay()}),
    ],
)
def test_quartz_has_days_that_are_counted_from_the_end(day: str, rules: set[object]) -> None:
    """And days that move to a weekday."""
    assert parse(f"0 0 0 {day} * ?").days == rules


@pytest.mark.parametrize(
    ("weekday", "rules"),
    [
        ("L", {6}),
        ("6L", {LastWeekday(5)}),
        ("FRIL", {LastWeekday(5)}),
        ("6#3", {NthWeekday(5, 3)}),
        ("mon#1,WED", {NthWeekday(1, 1), 3}),
        ("1-7", set(range(7))),
    ],
)
def test_quartz_has_weekdays_that_come_once_a_month(weekday: str, rules: set[object]) -> None:
    """The n-th or the last."""
    assert parse(f"0 0 0 ? * {weekday}").weekdays == rules


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 25 * * *", "hour 25 is not between 0 and 23"),
        ("60 0 * * *", "minute 60 is not between 0 and 59"),
        ("0 0 0 * *", "day of the month 0 is not between 1 and 31"),
        ("0 0 * 13 *", "month 13 is not between 1 and 12"),
        ("0 0 * * 8", "day of the week 8 is not between 0 and 7"),
        ("0 99999 * * *", "hour 99999 is not between 0 and 23"),
        ("*/0 * * * *", "the step 0 of minute is not between 1 and 59"),
        ("*/60 * * * *", "the step 60 of minute is not between 1 and 59"),
        ("*/x * * * *", "the step x of minute is not between 1 and 59"),
        ("0 5-3 * * *", "the range 5-3 of hour goes backwards"),
        ("0 x * * *", "hour cannot be x"),
        ("0 ٣ * * *", "hour cannot be ٣"),
        ("0 1--3 * * *", "hour cannot be 1--3"),
        ("0 *-3 * * *", "hour cannot be *-3"),
        ("0 -3 * * *", "hour cannot be -3"),
        ("0 1,,2 * * *", "hour has an empty part"),
        ("0 0 L * *", "day of the month cannot be L in five fields"),
        ("0 0 * * 5#2", "day of the week cannot be 5#2 in five fields"),
        ("0 0 ? * *", "day of the month cannot be ? in five fields"),
        ("0 0 0 * * *", "one of day of the month and day of the week must be ?, the other not"),
        ("0 0 0 ? * ?", "one of day of the month and day of the week must be ?, the other not"),
        ("0 0 0 L-31 * ?", "L-31 is before the first day of every month: use at most L-30"),
        ("0 0 0 32W * ?", "day of the month 32 is not between 1 and 31"),
        ("0 0 0 ? * 6#6", "#6 is not between #1 and #5"),
        ("0 0 0 ? * 0", "day of the week 0 is not between 1 and 7"),
        ("0 0 0 ? * 8L", "day of the week 8 is not between 1 and 7"),
        ("0 0 0 1 1 ? 1969", "year 1969 is not between 1970 and 2099"),
        ("0 0 * *", "a cron expression has 5, 6 or 7 fields, not 4"),
        ("", "a cron expression has 5, 6 or 7 fields, not 0"),
        ("0 0 0 1 1 ? * *", "a cron expression has 5, 6 or 7 fields, not 8"),
        ("0 0 1 1 " + "1," * 1000 + "1", "a cron expression has at most 1000 characters"),
        ("0 0 31 2 *", "0 0 31 2 * never fires: there is no such day"),
        ("0 0 0 30 FEB ?", "0 0 0 30 FEB ? never fires: there is no such day"),
        ("0 0 0 29 2 ? 2027", "0 0 0 29 2 ? 2027 never fires: there is no such day"),
        ("* * * * *", "* * * * * fires again after 60 seconds, but the minimum is 120"),
        ("0/30 0 12 * * ?", "0/30 0 12 * * ? fires again after 30 seconds, but the minimum is 120"),
        ("0,59 0,23 * * *", "0,59 0,23 * * * fires again after 60 seconds, but the minimum is 120"),
    ],
)
def test_what_is_wrong_is_said_with_the_name_of_the_field(text: str, message: str) -> None:
    """So that nobody has to count."""
    with pytest.raises(DefinitionInvalid) as raised:
        cron_of(text)
    assert raised.value.message == message


def test_a_name_that_is_nearly_one_is_recognised() -> None:
    """The remedy tells which was probably meant."""
    with pytest.raises(DefinitionInvalid) as raised:
        cron_of("0 0 * * MOO")
    assert raised.value.remedy == "did you mean MON?"
    assert raised.value.context["field"] == "day of the week"


@pytest.mark.parametrize(
    "text", ["*/2 * * * *", "0 0 12 1/1 * ? *", "0 0 29 2 *", "0,58 0,23 * 1 1", "0 0 0 1 1 ? 2030"]
)
def test_what_fires_and_not_too_often_is_accepted(text: str) -> None:
    """Two minutes are just enough."""
    assert cron_of(text) == parse(text)


def test_words_stand_for_expressions() -> None:
    """In small letters or capitals."""
    for word, text in PREDEFINED.items():
        assert predefined_of(word) == predefined_of(f" {word.upper()} ") == parse(text)


def test_an_unknown_word_is_refused() -> None:
    """With the word that was probably meant."""
    with pytest.raises(DefinitionInvalid, match="there is no schedule @dayly") as raised:
        predefined_of("@dayly")
    assert raised.value.remedy == "did you mean @daily?"


def test_an_interval_is_at_least_two_minutes() -> None:
    """As for cron."""
    assert interval_of(timedelta(minutes=2)) == Interval(timedelta(minutes=2))
    with pytest.raises(DefinitionInvalid, match="an interval of 0:01:59 fires again after 119 seconds"):
        interval_of(timedelta(seconds=119))
