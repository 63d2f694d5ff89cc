"""Date-times are made, moved, changed and compared as Joda-Time does it."""

import pytest

from calve.expressions.joda import UTC, DateField, DateTime, JodaError, Unit, days_between, zone_for_id

LOS_ANGELES = zone_for_id("America/Los_Angeles")
SAO_PAULO = zone_for_id("America/Sao_Paulo")
LORD_HOWE = zone_for_id("Australia/Lord_Howe")
APIA = zone_for_id("Pacific/Apia")

FIRST = DateTime(-(2**63))
LAST = DateTime(2**63 - 1)


def _at(text: str, zone_id: str = "UTC") -> DateTime:
    return DateTime.of_text(text, zone_for_id(zone_id))


class TestMaking:
    """A date-time is made from numbers."""

    def test_a_local_time_in_a_gap_does_not_exist(self) -> None:
        """At two in the morning clocks go to three."""
        with pytest.raises(JodaError) as raised:
            DateTime.of(2021, 3, 14, 2, 30, 0, 0, LOS_ANGELES)
        assert raised.value.kind == "IllegalInstantException"
        assert raised.value.message == (
            "Illegal instant due to time zone offset transition (daylight savings time 'gap'): "
            "2021-03-14T02:30:00.000 (America/Los_Angeles)"
        )

    def test_of_two_instants_it_is_the_earlier(self) -> None:
        """At two in the morning clocks go back to one."""
        assert str(DateTime.of(2021, 11, 7, 1, 30, 0, 0, LOS_ANGELES)) == "2021-11-07T01:30:00.000-07:00"
        assert str(DateTime.of(2021, 4, 4, 1, 45, 0, 0, LORD_HOWE)) == "2021-04-04T01:45:00.000+11:00"

    def test_midnight_and_even_a_day_can_be_missing(self) -> None:
        """São Paulo skipped midnights, Samoa a whole day."""
        for numbers, zone in [((2018, 11, 4, 0, 0), SAO_PAULO), ((2011, 12, 30, 12, 0), APIA)]:
            with pytest.raises(JodaError, match="gap"):
                DateTime.of(*numbers, 0, 0, zone)

    @pytest.mark.parametrize(
        ("numbers", "message"),
        [
            ((2021, 1, 1, 24, 0, 0, 0), "Value 24 for hourOfDay must be in the range [0,23]"),
            ((2021, 1, 1, 0, -1, 0, 0), "Value -1 for minuteOfHour must be in the range [0,59]"),
            ((2021, 1, 1, 0, 0, 60, 0), "Value 60 for secondOfMinute must be in the range [0,59]"),
            ((2021, 1, 1, 0, 0, 0, 1000), "Value 1000 for millisOfSecond must be in the range [0,999]"),
            ((2021, 13, 1, 0, 0, 0, 0), "Value 13 for monthOfYear must be in the range [1,12]"),
            ((2021, 2, 29, 0, 0, 0, 0), "Value 29 for dayOfMonth must be in the range [1,28]: year: 2021 month: 2"),
            (
                (292_278_995, 1, 1, 0, 0, 0, 0),
                "Value 292278995 for year must be in the range [-292275055,292278994]",
            ),
            (
                (-292_275_055, 4, 30, 0, 0, 0, 0),
                "Value 31 for dayOfMonth must be in the range [1,30]: year: -292275055 month: 4",
            ),
        ],
    )
    def test_numbers_out_of_range_are_refused(self, numbers: tuple[int, ...], message: str) -> None:
        """The first that is wrong is named, with its range."""
        year, month, day, hour, minute, second, milli = numbers
        with pytest.raises(JodaError) as raised:
            DateTime.of(year, month, day, hour, minute, second, milli)
        assert (raised.value.kind, raised.value.message) == ("IllegalFieldValueException", message)

    def test_what_is_just_out_of_reach_becomes_the_nearest_in_reach(self) -> None:
        """The first and the last year are only there in part."""
        assert DateTime.of(292_278_994, 12, 31, 0, 0, 0, 0, LOS_ANGELES) == LAST
        assert DateTime.of(-292_275_055, 1, 1, 0, 0, 0, 0, LOS_ANGELES) == FIRST
        assert DateTime.of(292_278_994, 8, 17, 5, 0, 0, 0, LOS_ANGELES) == LAST
        assert DateTime.of(-292_275_055, 5, 16, 17, 0, 0, 0, zone_for_id("+05:30")) == FIRST

    def test_the_first_and_the_last_millisecond_are_in_utc(self) -> None:
        """Their local time elsewhere would be out of reach."""
        assert DateTime(2**63 - 1, LOS_ANGELES).zone is UTC
        assert str(FIRST) == "-292275055-05-16T16:47:04.192Z"
        assert str(LAST) == "292278994-08-17T07:12:55.807Z"

    def test_date_times_are_values(self) -> None:
        """Equal ones are one in a set, and the same instant in another zone is another date-time."""
        here = DateTime(0, LOS_ANGELES)
        assert len({here, DateTime(0, zone_for_id("US/Pacific"))}) == 1
        assert here != here.in_zone(UTC)
        assert here.millis == here.in_zone(UTC).millis


class TestPlus:
    """Time passes, dates change."""

    @pytest.mark.parametrize(
        ("start", "unit", "amount", "end"),
        [
            ("2021-01-31", Unit.MONTHS, 1, "2021-02-28T00:00:00.000Z"),
            ("2020-01-31", Unit.MONTHS, 1, "2020-02-29T00:00:00.000Z"),
            ("2021-03-31", Unit.MONTHS, -13, "2020-02-29T00:00:00.000Z"),
            ("2020-02-29", Unit.YEARS, 1, "2021-02-28T00:00:00.000Z"),
            ("2020-02-29", Unit.YEARS, -4, "2016-02-29T00:00:00.000Z"),
            ("2021-12-31", Unit.WEEKS, 1, "2022-01-07T00:00:00.000Z"),
            ("2021-12-31", Unit.MILLIS, -1, "2021-12-30T23:59:59.999Z"),
            ("2021-12-31", Unit.MINUTES, 0, "2021-12-31T00:00:00.000Z"),
            ("0001-01-01", Unit.DAYS, -1, "0000-12-31T00:00:00.000Z"),
        ],
    )
    def test_dates_are_clipped_to_their_month(self, start: str, unit: Unit, amount: int, end: str) -> None:
        """A month that is too short gives its last day."""
        assert str(_at(start).plus(unit, amount)) == end

    def test_a_day_is_not_always_24_hours(self) -> None:
        """Days keep the time of day, hours do not."""
        evening = DateTime.of(2021, 3, 13, 12, 0, 0, 0, LOS_ANGELES)
        assert str(evening.plus(Unit.DAYS, 1)) == "2021-03-14T12:00:00.000-07:00"
        assert str(evening.plus(Unit.HOURS, 24)) == "2021-03-14T13:00:00.000-07:00"

    def test_a_date_that_lands_in_a_gap_moves_behind_it(self) -> None:
        """By as much as the gap is long, on both sides of Greenwich."""
        before = DateTime.of(2021, 3, 13, 2, 30, 0, 0, LOS_ANGELES)
        assert str(before.plus(Unit.DAYS, 1)) == "2021-03-14T03:30:00.000-07:00"
        assert str(_at("2021-03-27T02:30", "Europe/Paris").plus(Unit.DAYS, 1)) == "2021-03-28T03:30:00.000+02:00"
        assert str(_at("2011-12-29T12:00", "Pacific/Apia").plus(Unit.DAYS, 1)) == "2011-12-31T12:00:00.000+14:00"

    def test_a_date_that_lands_in_an_overlap_takes_the_earlier_offset(self) -> None:
        """On both sides of Greenwich, and for half an hour too."""
        assert str(_at("2021-11-06T01:30", "America/Los_Angeles").plus(Unit.DAYS, 1)).endswith("-07:00")
        assert str(_at("2021-10-30T02:30", "Europe/Paris").plus(Unit.DAYS, 1)).endswith("+02:00")
        assert str(_at("2021-04-03T01:45", "Australia/Lord_Howe").plus(Unit.DAYS, 1)).endswith("+11:00")

    @pytest.mark.parametrize(
        ("start", "unit", "amount", "kind", "message"),
        [
            (
                LAST,
                Unit.MILLIS,
                1,
                "ArithmeticException",
                "The calculation caused an overflow: 9223372036854775807 + 1",
            ),
            (
                DateTime(0),
                Unit.WEEKS,
                2**62,
                "ArithmeticException",
                "Multiplication overflows a long: 4611686018427387904 * 604800000",
            ),
            (DateTime(0), Unit.YEARS, 2**31, "ArithmeticException", "Value cannot fit in an int: 2147483648"),
            (
                DateTime(0),
                Unit.YEARS,
                2**31 - 1,
                "ArithmeticException",
                "The calculation caused an overflow: 1970 + 2147483647",
            ),
            (
                DateTime(0),
                Unit.YEARS,
                300_000_000,
                "IllegalFieldValueException",
                "Value 300001970 for year must be in the range [-292275054,292278993]",
            ),
            (
                LAST,
                Unit.MONTHS,
                2**31,
                "IllegalArgumentException",
                "Magnitude of add amount is too large: 2147483648",
            ),
        ],
    )
    def test_what_is_too_far_is_refused(
        self, start: DateTime, unit: Unit, amount: int, kind: str, message: str
    ) -> None:
        """Each unit has its own way to say so."""
        with pytest.raises(JodaError) as raised:
            start.plus(unit, amount)
        assert (raised.value.kind, raised.value.message) == (kind, message)

    def test_months_wrap_where_their_number_is_an_int(self) -> None:
        """Joda-Time does not look at the year then."""
        assert str(LAST.plus(Unit.MONTHS, 2**31 - 1)).startswith("-113")
        assert str(DateTime(0).plus(Unit.MONTHS, 2**31)) == "178958940-09-01T00:00:00.000Z"

    def test_offsets_can_reach_too_far(self) -> None:
        """Near the last millisecond there is no local time east of Greenwich, nor an instant west of it."""
        east = DateTime(2**63 - 2, zone_for_id("+05:30"))
        with pytest.raises(JodaError, match="Adding time zone offset caused overflow"):
            east.plus(Unit.DAYS, 1)
        assert str(east).endswith("Z")
        west = DateTime(2**63 - 1 - 86_400_000, zone_for_id("-08:00"))
        with pytest.raises(JodaError, match="Subtracting time zone offset caused overflow"):
            west.plus(Unit.MILLIS, 1).plus(Unit.DAYS, 1).plus(Unit.DAYS, 1)


class TestFields:
    """Fields are read and written."""

    @pytest.mark.parametrize(
        ("text", "weekyear", "week", "weekday"),
        [
            ("2021-01-03", 2020, 53, 7),
            ("2021-01-04", 2021, 1, 1),
            ("2018-12-31", 2019, 1, 1),
            ("2020-12-31", 2020, 53, 4),
            ("0000-01-01", -1, 52, 6),
        ],
    )
    def test_weeks_belong_to_the_year_of_their_thursday(
        self, text: str, weekyear: int, week: int, weekday: int
    ) -> None:
        """As ISO 8601 has it."""
        day = _at(text)
        fields = (DateField.WEEKYEAR, DateField.WEEK_OF_WEEKYEAR, DateField.DAY_OF_WEEK)
        assert tuple(map(day.get, fields)) == (weekyear, week, weekday)

    @pytest.mark.parametrize(
        ("text", "field", "value", "changed"),
        [
            ("2020-02-29", DateField.YEAR, 2021, "2021-02-28"),
            ("2021-03-31", DateField.MONTH_OF_YEAR, 2, "2021-02-28"),
            ("2020-12-31", DateField.WEEKYEAR, 2021, "2021-12-30"),
            ("2021-01-03", DateField.WEEK_OF_WEEKYEAR, 1, "2020-01-05"),
            ("2021-06-15", DateField.DAY_OF_YEAR, 365, "2021-12-31"),
            ("2021-06-15", DateField.DAY_OF_WEEK, 7, "2021-06-20"),
            ("-0004-06-15", DateField.YEAR_OF_ERA, 1, "0000-06-15"),
            ("-0004-06-15", DateField.ERA, 1, "0004-06-15"),
            ("0004-06-15", DateField.ERA, 1, "0004-06-15"),
            ("-0004-06-15", DateField.CENTURY_OF_ERA, 2, "-0204-06-15"),
            ("1999-06-15", DateField.YEAR_OF_CENTURY, 0, "1900-06-15"),
            ("2021-06-15", DateField.CLOCKHOUR_OF_DAY, 24, "2021-06-15"),
        ],
    )
    def test_the_rest_of_the_date_stays_as_far_as_it_can(
        self, text: str, field: DateField, value: int, changed: str
    ) -> None:
        """A day that is not there becomes the last one that is."""
        assert str(_at(text).with_field(field, value)) == f"{changed}T00:00:00.000Z"

    @pytest.mark.parametrize(
        ("text", "field", "value", "message"),
        [
            ("2021-06-15", DateField.DAY_OF_YEAR, 366, "Value 366 for dayOfYear must be in the range [1,365]"),
            ("2021-06-15", DateField.WEEK_OF_WEEKYEAR, 53, "Value 53 for weekOfWeekyear must be in the range [1,52]"),
            ("2020-06-15", DateField.WEEK_OF_WEEKYEAR, 0, "Value 0 for weekOfWeekyear must be in the range [1,52]"),
            ("2020-06-15", DateField.DAY_OF_MONTH, 31, "Value 31 for dayOfMonth must be in the range [1,30]"),
            (
                "2020-06-15",
                DateField.WEEKYEAR,
                -300_000_000,
                "Value 300000000 for weekyear must be in the range [-292275054,292278993]",
            ),
        ],
    )
    def test_values_out_of_range_are_refused(self, text: str, field: DateField, value: int, message: str) -> None:
        """The range is that of the date."""
        with pytest.raises(JodaError) as raised:
            _at(text).with_field(field, value)
        assert (raised.value.kind, raised.value.message) == ("IllegalFieldValueException", message)

    def test_a_value_that_clocks_skip_is_refused(self) -> None:
        """Unlike adding, setting says so."""
        with pytest.raises(JodaError) as raised:
            _at("2021-03-14T01:30", "America/Los_Angeles").with_field(DateField.HOUR_OF_DAY, 2)
        assert raised.value.kind == "IllegalFieldValueException"
        assert raised.value.message == (
            "Value 2 for hourOfDay is not supported: Illegal instant due to time zone offset transition "
            "(daylight savings time 'gap'): 2021-03-14T02:30:00.000 (America/Los_Angeles)"
        )

    def test_in_an_overlap_the_offset_is_kept(self) -> None:
        """Setting a field of the second instant gives a second instant."""
        later = DateTime.of(2021, 11, 7, 1, 30, 0, 0, LOS_ANGELES).plus(Unit.HOURS, 1)
        assert str(later.with_field(DateField.MINUTE_OF_HOUR, 45)) == "2021-11-07T01:45:00.000-08:00"

    def test_the_day_starts_when_its_clock_does(self) -> None:
        """At one where midnight is skipped, at the first of two midnights."""
        assert str(_at("2018-11-04T12:00", "America/Sao_Paulo").at_start_of_day()) == "2018-11-04T01:00:00.000-02:00"
        assert str(_at("2018-02-17T23:30", "America/Sao_Paulo").at_start_of_day()) == "2018-02-17T00:00:00.000-02:00"
        assert str(_at("2021-11-07T12:00", "America/Havana").at_start_of_day()) == "2021-11-07T00:00:00.000-04:00"
        assert str(_at("2021-06-15T12:00").at_start_of_day()) == "2021-06-15T00:00:00.000Z"


class TestProperties:
    """A property is a field of a date-time."""

    def test_months_and_days_have_names(self) -> None:
        """Other fields are numbers."""
        day = _at("2021-02-14")
        fields = (
            DateField.MONTH_OF_YEAR,
            DateField.DAY_OF_WEEK,
            DateField.ERA,
            DateField.HALFDAY_OF_DAY,
            DateField.DAY_OF_YEAR,
        )
        texts = [day.property(field).as_text() for field in fields]
        assert texts == ["February", "Sunday", "AD", "AM", "45"]

    def test_least_and_greatest_values_are_those_of_the_date(self) -> None:
        """February 2020 has 29 days, and 2020 has 53 weeks."""
        day = _at("2020-02-14").property(DateField.DAY_OF_MONTH)
        assert (str(day.with_minimum())[:10], str(day.with_maximum())[:10]) == ("2020-02-01", "2020-02-29")
        assert str(_at("2020-02-14").property(DateField.WEEK_OF_WEEKYEAR).with_maximum())[:10] == "2021-01-01"

    def test_least_and_greatest_values_in_a_gap_are_next_to_it(self) -> None:
        """The first after it, the last before it."""
        day = _at("2018-11-04T12:00", "America/Sao_Paulo").property(DateField.HOUR_OF_DAY)
        assert str(day.with_minimum()) == "2018-11-04T01:00:00.000-02:00"
        eve = _at("2025-03-29T12:30", "America/Scoresbysund").property(DateField.HOUR_OF_DAY)
        assert str(eve.with_maximum()) == "2025-03-29T22:59:59.999-02:00"


class TestDaysBetween:
    """Days are counted by clocks."""

    def test_a_short_day_is_a_day(self) -> None:
        """From noon to noon over a change of clocks is one, though 23 hours pass."""
        start = _at("2021-03-13T12:00", "America/Los_Angeles")
        assert days_between(start, start.plus(Unit.HOURS, 23)) == 1
        assert days_between(start, start.plus(Unit.HOURS, 22)) == 0
        assert days_between(start.plus(Unit.HOURS, 23), start) == -1

    def test_the_zone_of_the_first_one_counts(self) -> None:
        """In UTC the same 23 hours are no day."""
        start = _at("2021-03-13T12:00", "America/Los_Angeles")
        assert days_between(start.in_zone(UTC), start.plus(Unit.HOURS, 23)) == 0

    def test_too_many_days_are_refused(self) -> None:
        """More than an int holds, or than a long holds milliseconds."""
        with pytest.raises(JodaError, match="Value cannot fit in an int: 106751991167"):
            days_between(DateTime(0), LAST)
        with pytest.raises(JodaError, match="The calculation caused an overflow: 9223372036854775807 - -1"):
            days_between(DateTime(-1), LAST)
