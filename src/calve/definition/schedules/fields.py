"""One field of a cron expression: numbers, names, ranges, steps and lists. Pure."""

import re
from dataclasses import dataclass, field

from calve.definition.problems import did_you_mean
from calve.errors import DefinitionInvalid

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")

_PART = re.compile(r"(?P<first>\*|\w+)?(-(?P<last>\w+))?(/(?P<step>\w+))?")


@dataclass(frozen=True, slots=True)
class Field:
    """What one field may hold."""

    name: str
    low: int
    high: int
    longest_step: int
    names: dict[str, int] = field(default_factory=dict)
    can_wrap: bool = False
    """Whether a range may go over the end: ``FRI-MON``, ``22-2``."""

    def read(self, text: str) -> frozenset[int]:
        """Return the numbers that a list of parts means."""
        return frozenset(number for part in text.split(",") for number in self.read_part(part))

    def read_part(self, part: str) -> list[int]:
        """Return the numbers that ``*``, ``3``, ``3-7``, ``*/5``, ``3-30/5`` or ``3/5`` means."""
        if not part:
            raise self.invalid(f"{self.name} has an empty part", "leave out the comma that stands alone")
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
        # No number that is in any range has more digits.
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


SECOND = Field("second", 0, 59, 59, can_wrap=True)
MINUTE = Field("minute", 0, 59, 59)
HOUR = Field("hour", 0, 23, 23)
DAY = Field("day of the month", 1, 31, 31)
MONTH = Field("month", 1, 12, 12, {name: number for number, name in enumerate(MONTHS, 1)})
WEEKDAY = Field("day of the week", 0, 7, 7, {name: number for number, name in enumerate(WEEKDAYS)})

QUARTZ_MINUTE = Field("minute", 0, 59, 59, can_wrap=True)
QUARTZ_HOUR = Field("hour", 0, 23, 23, can_wrap=True)
QUARTZ_DAY = Field("day of the month", 1, 31, 31, can_wrap=True)
QUARTZ_MONTH = Field("month", 1, 12, 12, MONTH.names, can_wrap=True)
QUARTZ_WEEKDAY = Field(
    "day of the week", 1, 7, 7, {name: number for number, name in enumerate(WEEKDAYS, 1)}, can_wrap=True
)
YEAR = Field("year", 1970, 2099, 129)
