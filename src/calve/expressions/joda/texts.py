"""The words of dates in US English. Pure."""

from calve.expressions.joda.fields import RULES, Field

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_WORDS: dict[Field, tuple[str, ...]] = {
    Field.ERA: ("BC", "AD"),
    Field.HALFDAY_OF_DAY: ("AM", "PM"),
    Field.MONTH_OF_YEAR: _MONTHS,
    Field.DAY_OF_WEEK: _DAYS,
}
_LONGEST_ABBREVIATION = 3


def text_of(field: Field, value: int) -> str:
    """Return a value as people say it: the word for a month, day, era or half of the day, else the number."""
    words = _WORDS.get(field)
    return words[value - RULES[field].lowest] if words else str(value)


def short_text_of(field: Field, value: int) -> str:
    """Return a value as people abbreviate it."""
    return text_of(field, value)[:_LONGEST_ABBREVIATION]


def _spellings(field: Field) -> dict[str, int]:
    """Return every accepted spelling of a field's words: long and short, as written, lower and upper case."""
    found: dict[str, int] = {}
    for value, word in enumerate(_WORDS[field], RULES[field].lowest):
        for text in (word, word[:_LONGEST_ABBREVIATION]):
            found |= dict.fromkeys((text, text.lower(), text.upper()), value)
    return found


SPELLINGS: dict[Field, dict[str, int]] = {field: _spellings(field) for field in _WORDS}
SPELLINGS[Field.ERA] |= {"BCE": 0, "bce": 0, "CE": 1, "ce": 1}
