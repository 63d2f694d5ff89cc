"""Formatters print and read date-times by patterns."""

import pytest

from calve.expressions.joda import DateTime, Formatter, JodaError, formatter, zone_for_id

LOS_ANGELES = zone_for_id("America/Los_Angeles")
MOMENT = DateTime.of(2021, 3, 4, 15, 6, 7, 89, LOS_ANGELES)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyyMMdd", "20210304"),
        ("YYYY-M-d", "2021-3-4"),
        ("yy YY xx", "21 21 21"),
        ("CC G", "20 AD"),
        ("xxxx-'W'ww-e", "2021-W09-4"),
        ("EEE EEEE MMM MMMM", "Thu Thursday Mar March"),
        ("D DDDD", "63 0063"),
        ("h hh K k kk H a", "3 03 3 15 15 15 PM"),
        ("m mm s ss S SS SSS SSSSSS", "6 06 7 07 0 08 089 089000"),
        ("SSSSSSSSSSSSSSSSSS", "089000000000000"),
        ("z zzzz", "PST Pacific Standard Time"),
        ("Z ZZ ZZZ", "-0800 -08:00 America/Los_Angeles"),
        ("yyyy'T'HH''mm 'o''clock' é", "2021T15'06 o'clock é"),
        ("yyyyyy", "002021"),
        ("'unfinished yyyy", "unfinished yyyy"),
    ],
)
def test_every_letter_prints_its_field(pattern: str, text: str) -> None:
    """Letters repeat for width, quotes protect text."""
    assert formatter(pattern).print(MOMENT) == text


def test_negative_years_keep_their_width() -> None:
    """The sign is no digit, and the era counts from one."""
    ancient = DateTime.of(-5, 1, 1, 0, 0, 0, 0)
    assert formatter("yyyy Y G C yy").print(ancient) == "-0005 6 BC 0 05"


def test_a_formatter_prints_in_its_own_zone() -> None:
    """Else in that of the date-time, and milliseconds in UTC."""
    hours = formatter("HH z")
    assert hours.print(MOMENT) == "15 PST"
    assert hours.print(MOMENT.millis) == "23 UTC"
    assert hours.with_zone(zone_for_id("Asia/Kolkata")).print(MOMENT) == "04 IST"
    assert hours.zone is None
    assert hours.with_zone(LOS_ANGELES).zone == LOS_ANGELES


@pytest.mark.parametrize(
    ("pattern", "kind", "message"),
    [
        ("", "IllegalArgumentException", "Invalid pattern specification: Pattern is null or empty"),
        ("yyyy-bb", "IllegalArgumentException", "Illegal pattern component: bb"),
        ("yyyyF", "IllegalArgumentException", "Illegal pattern component: F"),
        ("'", "UnsupportedOperationException", "Both printing and parsing not supported"),
    ],
)
def test_patterns_that_make_no_sense_are_refused(pattern: str, kind: str, message: str) -> None:
    """The message names the letters."""
    with pytest.raises(JodaError) as raised:
        formatter(pattern)
    assert (raised.value.kind, raised.value.message) == (kind, message)


@pytest.mark.parametrize(
    ("pattern", "text", "parsed"),
    [
        ("yyyyMMdd", "20210304", "2021-03-04T00:00:00.000Z"),
        ("yyyy-MM-dd HH:mm:ss.SSS", "2021-03-04 15:06:07.089", "2021-03-04T15:06:07.089Z"),
        ("MM-dd", "02-29", "2000-02-29T00:00:00.000Z"),
        ("HH:mm", "15:06", "1970-01-01T15:06:00.000Z"),
        ("'only text'", "ONLY text", "1970-01-01T00:00:00.000Z"),
        ("d MMM yyyy", "4 MARCH 2021", "2021-03-04T00:00:00.000Z"),
        ("EEE d MMMM yyyy", "thu 4 mar 2021", "2021-03-04T00:00:00.000Z"),
        ("xxxx-'W'ww-e", "2021-w09-4", "2021-03-04T00:00:00.000Z"),
        ("yyyy-DDD", "2021-63", "2021-03-04T00:00:00.000Z"),
        ("hh a yyyy", "12 am 2021", "2021-01-01T00:00:00.000Z"),
        ("Y G", "6 bc", "-0005-01-01T00:00:00.000Z"),
        ("CC yy", "19 05", "2005-01-01T00:00:00.000Z"),
        ("yyyy", "-5", "-0005-01-01T00:00:00.000Z"),
        ("yyyy", "+12021", "12021-01-01T00:00:00.000Z"),
        ("yyyy HH Z", "2021 15 +0130", "2021-01-01T13:30:00.000Z"),
        ("yyyy HH ZZ", "2021 15 Z", "2021-01-01T15:00:00.000Z"),
        ("yyyy HH z", "2021 15 PDT", "2021-01-01T15:00:00.000-08:00"),
        ("yyyy HH z", "2021 15 UT", "2021-01-01T15:00:00.000Z"),
        ("yyyy HH ZZZ", "2021 15 US/Pacific", "2021-01-01T15:00:00.000-08:00"),
        ("yyyy ZZZ", "2021 EST5EDT", "2021-01-01T00:00:00.000-05:00"),
        ("zzzz", "PST", "1970-01-01T00:00:00.000-08:00"),
    ],
)
def test_what_is_printed_can_be_read(pattern: str, text: str, parsed: str) -> None:
    """Words in any case, zones by name, and what is not said is the start of 1970, or of 2000 for a lone day."""
    assert str(formatter(pattern).parse(text)) == parsed


@pytest.mark.parametrize(
    ("text", "year"),
    [("45", 2045), ("46", 1946), ("00", 2000), ("5", 5), ("1945", 1945), ("-45", -45), ("+45", 45), ("-a", -49)],
)
def test_two_digits_mean_a_year_near_now(text: str, year: int) -> None:
    """From 80 years ago to 19 years from now; other digits mean what they say."""
    pattern = formatter("yy'a'" if text == "-a" else "yy")
    assert int(formatter("yyyy").print(pattern.parse(text))) == year


def test_two_digits_depend_on_the_time_that_is_given() -> None:
    """A formatter of 1990 reads them otherwise, also in weekyears."""
    in_1990 = 631_152_000_000
    assert formatter("yyMM", now=in_1990).parse("0912").millis == formatter("yyyyMM").parse("200912").millis
    assert formatter("yyMM", now=in_1990).parse("1012").millis == formatter("yyyyMM").parse("191012").millis
    assert formatter("xx'W'ww", now=in_1990).parse("10W01").millis == formatter("xxxx'W'ww").parse("1910W01").millis


def test_the_zone_of_a_result_is_the_formatters() -> None:
    """Else the one that the text names; an offset moves the instant only."""
    with_offset = formatter("yyyy ZZ")
    assert str(with_offset.parse("2021 +02:00")) == "2020-12-31T22:00:00.000Z"
    assert str(with_offset.with_zone(LOS_ANGELES).parse("2021 +02:00")) == "2020-12-31T14:00:00.000-08:00"
    assert str(formatter("yyyy").with_zone(LOS_ANGELES).parse("2021")) == "2021-01-01T00:00:00.000-08:00"
    assert formatter("yyyy").with_zone(LOS_ANGELES).parse_millis("2021") == 1_609_488_000_000


@pytest.mark.parametrize(
    ("pattern", "text", "kind", "message"),
    [
        ("yyyy", "x", "IllegalArgumentException", 'Invalid format: "x"'),
        ("yyyy", "", "IllegalArgumentException", 'Invalid format: ""'),
        ("yyyy", "-", "IllegalArgumentException", 'Invalid format: "-"'),
        ("C", "-1", "IllegalArgumentException", 'Invalid format: "-1"'),
        ("yyyy-MM", "2021/03", "IllegalArgumentException", 'Invalid format: "2021/03" is malformed at "/03"'),
        ("yyyy-MM", "2021-", "IllegalArgumentException", 'Invalid format: "2021-" is too short'),
        (
            "yyyy",
            f"2021{'x' * 40}",
            "IllegalArgumentException",
            f'Invalid format: "2021{"x" * 32}..." is malformed at "{"x" * 32}..."',
        ),
        ("yyMM", "2x12", "IllegalArgumentException", 'Invalid format: "2x12"'),
        ("yy", "+", "IllegalArgumentException", 'Invalid format: "+" is too short'),
        ("yy", "-", "IllegalArgumentException", 'Invalid format: "-"'),
        ("EEE", "xyz", "IllegalArgumentException", 'Invalid format: "xyz"'),
        ("S", "x", "IllegalArgumentException", 'Invalid format: "x"'),
        ("Z", "x", "IllegalArgumentException", 'Invalid format: "x"'),
        ("z", "XYZ", "IllegalArgumentException", 'Invalid format: "XYZ"'),
        ("ZZZ", "Nowhere", "IllegalArgumentException", 'Invalid format: "Nowhere"'),
        ("ZZZ/yy", "UTC/21", "IllegalArgumentException", 'Invalid format: "UTC/21"'),
        ("'ß'", "SS", "IllegalArgumentException", 'Invalid format: "SS"'),
        (
            "yyyy-MM",
            "2021-13",
            "IllegalFieldValueException",
            'Cannot parse "2021-13": Value 13 for monthOfYear must be in the range [1,12]',
        ),
        (
            "yyyy-MM-dd",
            "2021-02-29",
            "IllegalFieldValueException",
            'Cannot parse "2021-02-29": Value 29 for dayOfMonth must be in the range [1,28]',
        ),
        ("yyyyyyyyyy", "9999999999", "NumberFormatException", 'For input string: "9999999999"'),
        ("yyyyyyyyyyy", "-99999999999", "NumberFormatException", 'For input string: "-99999999999"'),
        ("yyyyyyyyyyy", "+99999999999", "NumberFormatException", 'For input string: "99999999999"'),
        ("yyyy zzzz", "2021 PST", "UnsupportedOperationException", "Parsing not supported"),
    ],
)
def test_texts_that_do_not_fit_are_refused(pattern: str, text: str, kind: str, message: str) -> None:
    """The message says what is wrong and where."""
    with pytest.raises(JodaError) as raised:
        formatter(pattern).parse(text)
    assert (raised.value.kind, raised.value.message) == (kind, message)


def test_a_text_in_a_gap_is_refused() -> None:
    """The message names the zone."""
    with pytest.raises(JodaError) as raised:
        formatter("yyyy-MM-dd HH:mm").with_zone(LOS_ANGELES).parse("2021-03-14 02:30")
    assert raised.value.kind == "IllegalInstantException"
    assert raised.value.message == (
        'Cannot parse "2021-03-14 02:30": Illegal instant due to time zone offset transition (America/Los_Angeles)'
    )


def test_letters_of_other_scripts_are_read_in_any_case() -> None:
    """One by one, as Java does it."""
    assert formatter("'É'yyyy").parse("é2021") == formatter("yyyy").parse("2021")


def test_formatters_are_values() -> None:
    """The same pattern gives an equal formatter."""
    assert formatter("yyyy") == formatter("yyyy")
    assert isinstance(formatter("yyyy"), Formatter)
