"""ISO 8601 is read and printed."""

import pytest

from calve.expressions.joda import DateTime, JodaError, zone_for_id


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("2021", "2021-01-01T00:00:00.000Z"),
        ("2021-03", "2021-03-01T00:00:00.000Z"),
        ("2021-03-04", "2021-03-04T00:00:00.000Z"),
        ("2021-063", "2021-03-04T00:00:00.000Z"),
        ("2021-W09", "2021-03-01T00:00:00.000Z"),
        ("2021-w09-4", "2021-03-04T00:00:00.000Z"),
        ("2021-03-04T", "2021-03-04T00:00:00.000Z"),
        ("2021-03-04T15", "2021-03-04T15:00:00.000Z"),
        ("2021-03-04T15.5", "2021-03-04T15:30:00.000Z"),
        ("2021-03-04T15:06,25", "2021-03-04T15:06:15.000Z"),
        ("2021-03-04t15:06:07.0891234z", "2021-03-04T15:06:07.089Z"),
        ("2021-03-04T15:06+01", "2021-03-04T15:06:00.000+01:00"),
        ("2021-03-04T-08:00", "2021-03-04T00:00:00.000-08:00"),
        ("2021-03-04T15:06:07+01:02:03.004", "2021-03-04T15:06:07.000+01:02:03.004"),
        ("2021-03-04T15:06:07+010203", "2021-03-04T15:06:07.000+01:02:03"),
        ("T15:06", "1970-01-01T15:06:00.000Z"),
        ("-0005-01-01", "-0005-01-01T00:00:00.000Z"),
        ("12021-01-01", "12021-01-01T00:00:00.000Z"),
    ],
)
def test_dates_times_and_offsets_are_optional(text: str, printed: str) -> None:
    """The offset of the text is that of the result, UTC if it has none."""
    assert str(DateTime.parse(text)) == printed


def test_a_constructor_keeps_its_zone() -> None:
    """The offset of the text moves the instant only; without one the time is local to the zone."""
    los_angeles = zone_for_id("America/Los_Angeles")
    assert str(DateTime.of_text("2021-03-04T15:06+01:00")) == "2021-03-04T14:06:00.000Z"
    assert str(DateTime.of_text("2021-03-04T15:06+01:00", los_angeles)) == "2021-03-04T06:06:00.000-08:00"
    assert str(DateTime.of_text("2021-03-04T15:06", los_angeles)) == "2021-03-04T15:06:00.000-08:00"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'Invalid format: ""'),
        ("yesterday", 'Invalid format: "yesterday"'),
        ("2021-03-04 15:06", 'Invalid format: "2021-03-04 15:06" is malformed at " 15:06"'),
        ("2021-03-04T15:06:", 'Invalid format: "2021-03-04T15:06:" is malformed at ":"'),
        ("2021-13-01", 'Cannot parse "2021-13-01": Value 13 for monthOfYear must be in the range [1,12]'),
        ("2021-02-29", 'Cannot parse "2021-02-29": Value 29 for dayOfMonth must be in the range [1,28]'),
    ],
)
def test_what_is_no_date_is_refused(text: str, message: str) -> None:
    """The message says where it stops making sense."""
    with pytest.raises(JodaError) as raised:
        DateTime.parse(text)
    assert raised.value.message == message
