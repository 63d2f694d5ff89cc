"""What people call zones, in US English. Pure but for reading its table once."""

from functools import cache
from importlib.resources import files

Names = tuple[str, str]
"""A name and its abbreviation."""


def names_of(zone_id: str, *, is_daylight: bool) -> Names | None:
    """Return the name and the abbreviation of a zone's time, None if nobody gave it one."""
    found = _names().get(zone_id.removeprefix("Etc/"))
    return found and found[is_daylight]


@cache
def _names() -> dict[str, tuple[Names, Names]]:
    table = {}
    for line in lines_of("zone_names.txt"):
        standard, standard_short, daylight, daylight_short, zones = line.split("|")
        names = ((standard, standard_short), (daylight, daylight_short))
        table.update(dict.fromkeys(zones.split(), names))
    return table


def lines_of(name: str) -> list[str]:
    """Return the lines of a table that comes with this package, without comments."""
    text = files("calve.expressions.joda").joinpath("data", name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if not line.startswith("#")]
