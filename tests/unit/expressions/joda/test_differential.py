"""What Joda-Time 2.14.0 answered, case by case."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from calve.expressions.joda import (
    DateField,
    DateTime,
    Formatter,
    JodaError,
    Property,
    Unit,
    Zone,
    days_between,
    formatter,
    zone_for_id,
)

CASES = Path(__file__).parents[3] / "data" / "joda_differential.jsonl"


def test_every_answer_is_the_one_that_joda_time_gives() -> None:
    """Each line holds a question and Joda-Time's answer: a value, or an exception's name and message."""
    lines = CASES.read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    assert len(cases) > 1500
    wrong = [(question, expected, given) for question, expected in cases if (given := _answer(*question)) != expected]
    assert wrong == []


def _answer(operation: str, *arguments: Any) -> list[Any]:
    try:
        return ["ok", ANSWERS[operation](*arguments)]
    except JodaError as error:
        return [error.kind, error.message]


def _told(datetime: DateTime) -> str:
    return f"{datetime.millis} {datetime.zone.id}"


def _zone(zone_id: str) -> Zone:
    return zone_for_id(zone_id)


def _formatter(pattern: str, zone_id: str | None) -> Formatter:
    made = formatter(pattern)
    return made if zone_id is None else made.with_zone(_zone(zone_id))


def _property(millis: int, zone_id: str, field: str) -> Property:
    return _at(millis, zone_id).property(DateField(field))


def _at(millis: int, zone_id: str) -> DateTime:
    return DateTime(millis, _zone(zone_id))


ANSWERS: dict[str, Callable[..., str | int]] = {
    "zone": lambda zone_id: _zone(zone_id).id,
    "offset": lambda zone_id, millis: _zone(zone_id).offset_at(millis),
    "of": lambda year, month, day, hour, minute, second, milli, zone_id: _told(
        DateTime.of(year, month, day, hour, minute, second, milli, _zone(zone_id))
    ),
    "parse_iso": lambda text: _told(DateTime.parse(text)),
    "of_text": lambda text, zone_id: _told(DateTime.of_text(text, _zone(zone_id))),
    "format_parse": lambda pattern, text, zone_id: _told(_formatter(pattern, zone_id).parse(text)),
    "parse_millis": lambda pattern, text, zone_id: _formatter(pattern, zone_id).parse_millis(text),
    "print_millis": lambda pattern, millis, zone_id: _formatter(pattern, zone_id).print(millis),
    "print": lambda pattern, millis, zone_id, own: _formatter(pattern, own).print(_at(millis, zone_id)),
    "days": lambda start, start_zone, end, end_zone: days_between(_at(start, start_zone), _at(end, end_zone)),
    "str": lambda millis, zone_id: str(_at(millis, zone_id)),
    "start": lambda millis, zone_id: _told(_at(millis, zone_id).at_start_of_day()),
    "in_zone": lambda millis, zone_id, other: _told(_at(millis, zone_id).in_zone(_zone(other))),
    "plus": lambda millis, zone_id, unit, amount: _told(_at(millis, zone_id).plus(Unit(unit), amount)),
    "minus": lambda millis, zone_id, unit, amount: _told(_at(millis, zone_id).plus(Unit(unit), -amount)),
    "with": lambda millis, zone_id, field, value: _told(_at(millis, zone_id).with_field(DateField(field), value)),
    "get": lambda *question: _property(*question).get(),
    "text": lambda *question: _property(*question).as_text(),
    "min": lambda *question: _told(_property(*question).with_minimum()),
    "max": lambda *question: _told(_property(*question).with_maximum()),
}
