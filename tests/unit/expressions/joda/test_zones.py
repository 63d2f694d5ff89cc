"""Zones are found by id, and tell offsets, names and the instants of local times."""

import pytest

from calve.expressions.joda import UTC, DateTime, JodaError, zone_for_id

LOS_ANGELES = zone_for_id("America/Los_Angeles")


@pytest.mark.parametrize(
    ("zone_id", "found"),
    [
        ("UTC", "UTC"),
        ("UT", "UTC"),
        ("Z", "UTC"),
        ("GMT", "Etc/GMT"),
        ("Europe/Berlin", "Europe/Berlin"),
        ("US/Pacific", "America/Los_Angeles"),
        ("EST", "America/Panama"),
        ("PST8PDT", "America/Los_Angeles"),
        ("Asia/Calcutta", "Asia/Kolkata"),
        ("+05:30", "+05:30"),
        ("-0800", "-08:00"),
        ("+01", "+01:00"),
        ("+01:30:15.120", "+01:30:15.120"),
        ("UTC+02:00", "+02:00"),
        ("GMT-03:30", "-03:30"),
        ("UT+01", "+01:00"),
        ("-00:00", "UTC"),
    ],
)
def test_a_zone_is_found_by_its_id(zone_id: str, found: str) -> None:
    """Names of the tz database, old ones too, offsets, and offsets behind UTC, UT or GMT are ids."""
    assert zone_for_id(zone_id).id == found


@pytest.mark.parametrize(
    "zone_id",
    [
        "",
        "PST",
        "america/los_angeles",
        "America",
        "America/Los_Angeles/",
        "../../etc/passwd",
        "/etc/passwd",
        "zone.tab",
        "tzdata.zi",
        "__init__.py",
        "Factory",
        "Europe/../Europe/Berlin",
        "\0",
    ],
)
def test_what_is_no_zone_is_refused_before_it_becomes_a_path(zone_id: str) -> None:
    """Only ids on the list are looked up; the name of a file is none of them."""
    with pytest.raises(JodaError) as raised:
        zone_for_id(zone_id)
    assert raised.value.kind == "IllegalArgumentException"
    assert str(raised.value) == f"The datetime zone id '{zone_id}' is not recognised"


@pytest.mark.parametrize(
    ("zone_id", "message"),
    [
        ("+5", 'Invalid format: "+5" is malformed at "5"'),
        ("+24:00", 'Invalid format: "+24:00" is malformed at "24:00"'),
        ("+01:60", 'Invalid format: "+01:60" is malformed at "60"'),
        ("+01:00:61", 'Invalid format: "+01:00:61" is malformed at "61"'),
        ("+01:", 'Invalid format: "+01:" is too short'),
        ("+01:00:00.", 'Invalid format: "+01:00:00." is too short'),
        ("+01x", 'Invalid format: "+01x" is malformed at "x"'),
        ("UTC+", 'Invalid format: "+"'),
    ],
)
def test_an_offset_that_makes_no_sense_is_refused_where_it_stops_to(zone_id: str, message: str) -> None:
    """The message shows the rest of the text."""
    with pytest.raises(JodaError) as raised:
        zone_for_id(zone_id)
    assert (raised.value.kind, raised.value.message) == ("IllegalArgumentException", message)


def test_a_zone_is_its_id() -> None:
    """Two zones of one id are equal, hash alike and print as their id alone."""
    assert zone_for_id("+01:00") == zone_for_id("+0100")
    assert len({zone_for_id("US/Pacific"), LOS_ANGELES}) == 1
    assert repr(UTC) == "Zone(id='UTC')"


@pytest.mark.parametrize(
    ("zone_id", "local_day", "hours"),
    [
        ("America/Los_Angeles", (2021, 1, 1), -8),
        ("America/Los_Angeles", (2021, 7, 1), -7),
        ("Australia/Lord_Howe", (2021, 1, 1), 11),
        ("Australia/Lord_Howe", (2021, 7, 1), 10.5),
        ("Asia/Kolkata", (2021, 7, 1), 5.5),
        ("Asia/Pyongyang", (2016, 1, 1), 8.5),
        ("Europe/London", (1970, 1, 1), 1),
        ("Europe/Berlin", (2500, 7, 1), 2),
        ("Australia/Sydney", (9999, 1, 1), 11),
        ("Australia/Sydney", (9999, 7, 1), 10),
        ("Europe/Berlin", (100_000, 1, 1), 1),
    ],
)
def test_offsets_follow_the_rules_of_their_time(zone_id: str, local_day: tuple[int, int, int], hours: float) -> None:
    """Those of history, and the last rule for ever after."""
    zone = zone_for_id(zone_id)
    assert zone.offset_at(DateTime.of(*local_day, 12, 0, 0, 0, zone).millis) == hours * 3_600_000


def test_before_zones_were_made_clocks_show_the_mean_time_of_the_place() -> None:
    """It goes back to the first year there is."""
    assert str(DateTime.of(1850, 1, 1, 0, 0, 0, 0, LOS_ANGELES)) == "1850-01-01T00:00:00.000-07:52:58"
    assert str(DateTime.of(-5, 1, 1, 0, 0, 0, 0, LOS_ANGELES)) == "-0005-01-01T00:00:00.000-07:52:58"


@pytest.mark.parametrize(
    ("zone_id", "month", "name", "short_name"),
    [
        ("America/Los_Angeles", 1, "Pacific Standard Time", "PST"),
        ("America/Los_Angeles", 7, "Pacific Daylight Time", "PDT"),
        ("Europe/Dublin", 1, "Greenwich Mean Time", "GMT"),
        ("Europe/Dublin", 7, "Irish Standard Time", "IST"),
        ("Etc/UTC", 1, "Coordinated Universal Time", "UTC"),
        ("+05:30", 1, "+05:30", "+05:30"),
        ("Etc/GMT+5", 1, "-05:00", "-05:00"),
    ],
)
def test_zones_have_names_in_english(zone_id: str, month: int, name: str, short_name: str) -> None:
    """One for standard time, one for daylight saving; an offset where nobody gave them any."""
    zone = zone_for_id(zone_id)
    millis = DateTime.of(2021, month, 1, 0, 0, 0, 0, zone).millis
    assert (zone.name_at(millis), zone.short_name_at(millis)) == (name, short_name)


def test_far_in_the_future_clocks_still_change() -> None:
    """Transitions are found in both directions where no file lists them."""
    berlin = zone_for_id("Europe/Berlin")
    summer = DateTime.of(3000, 7, 1, 0, 0, 0, 0, berlin)
    autumn = DateTime(berlin.next_transition(summer.millis), berlin)
    spring = DateTime(berlin.previous_transition(summer.millis), berlin)
    assert str(autumn) == "3000-10-26T02:00:00.000+01:00"
    assert str(spring) == "3000-03-30T01:59:59.999+01:00"
    january = DateTime.of(3000, 1, 1, 0, 0, 0, 0, berlin)
    assert DateTime(berlin.previous_transition(january.millis), berlin).in_zone(UTC).millis < january.millis


def test_clocks_that_never_change_have_no_transition() -> None:
    """The instant itself is the answer then."""
    assert UTC.next_transition(5) == 5
    assert UTC.previous_transition(5) == 5


def test_in_the_last_year_no_change_is_to_come() -> None:
    """Joda-Time takes such a change for one that comes now, and stays with what was before."""
    paris = zone_for_id("Europe/Paris")
    assert str(DateTime.of(292_278_993, 7, 1, 0, 0, 0, 0, paris)) == "292278993-07-01T00:00:00.000+01:00"
    assert paris.offset_at(2**63 - 1) == 7_200_000
