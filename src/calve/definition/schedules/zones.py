"""Time zones by name, from the tzdata package: the same on every machine."""

from functools import lru_cache
from importlib.resources import files
from zoneinfo import ZoneInfo

from calve.definition.problems import did_you_mean
from calve.errors import DefinitionInvalid


@lru_cache(maxsize=1024)
def zone_of(name: str | None) -> ZoneInfo:
    """Return the time zone of a name, UTC if there is no name."""
    if name is None:
        return zone_of("UTC")
    # Names are file names too, so only those of the list are looked up.
    if name not in _names():
        raise DefinitionInvalid(f"there is no time zone {name}", remedy=did_you_mean(name, _names()))
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(files("tzdata").joinpath("zones").read_text().split()) - {"Factory"}
