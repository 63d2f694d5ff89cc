"""Single values: bytes of bounds, and partition values, against PyIceberg's own conversions."""

import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pyiceberg.conversions import to_bytes
from pyiceberg.transforms import DayTransform, HourTransform, MonthTransform, YearTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from calve.capture.values import bound_decoder, is_bounded, partition_to_json, to_json

INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
MICROS = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)  # the years 1 to 9999
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _shown(kind: PrimitiveType, raw: bytes) -> Any:
    return to_json(str(kind), bound_decoder(str(kind))(raw))


@given(INTS, LONGS, st.booleans(), st.text(), st.binary())
def test_plain_values_are_shown_as_they_are(small: int, big: int, flag: bool, text: str, raw: bytes) -> None:  # noqa: FBT001 - drawn by hypothesis
    """Numbers, booleans and text; bytes in hexadecimal."""
    assert _shown(IntegerType(), to_bytes(IntegerType(), small)) == small
    assert _shown(LongType(), to_bytes(LongType(), big)) == big
    assert _shown(BooleanType(), to_bytes(BooleanType(), flag)) is flag
    assert _shown(StringType(), to_bytes(StringType(), text)) == text
    assert _shown(BinaryType(), to_bytes(BinaryType(), raw)) == raw.hex()


@given(st.floats(allow_nan=False), st.floats(allow_nan=False, width=32))
def test_floats_keep_every_bit(double: float, single: float) -> None:
    """Infinities and negative zero too."""
    assert str(_shown(DoubleType(), to_bytes(DoubleType(), double))) == str(double)
    assert str(_shown(FloatType(), to_bytes(FloatType(), single))) == str(single)


@given(st.decimals(min_value=-(10**20), max_value=10**20, places=3))
def test_decimals_are_exact(value: Decimal) -> None:
    """Unscaled big-endian numbers of any length, negative ones too, in the column's scale."""
    kind = DecimalType(38, 3)
    assert Decimal(_shown(kind, to_bytes(kind, value))) == value
    assert _shown(DecimalType(9, 2), to_bytes(DecimalType(9, 2), Decimal("-1.50"))) == "-1.50"


@given(MICROS, st.dates())
def test_moments_are_shown_in_iso(micros: int, day: date) -> None:
    """Before 1970 and with a zone, as SQL literals spell them."""
    moment = EPOCH + timedelta(microseconds=micros)
    shown = _shown(TimestampType(), to_bytes(TimestampType(), micros))
    assert datetime.fromisoformat(shown).replace(tzinfo=UTC) == moment
    shown = _shown(TimestamptzType(), to_bytes(TimestamptzType(), micros))
    assert datetime.fromisoformat(shown) == moment
    days = (day - date(1970, 1, 1)).days
    assert _shown(DateType(), to_bytes(DateType(), days)) == day.isoformat()


@given(st.times(), st.uuids())
def test_times_and_uuids(moment: Any, identity: uuid.UUID) -> None:
    """The types that Spark does not write but others do."""
    micros = ((moment.hour * 60 + moment.minute) * 60 + moment.second) * 1_000_000 + moment.microsecond
    assert _shown(TimeType(), to_bytes(TimeType(), micros)) == moment.isoformat()
    assert _shown(UUIDType(), to_bytes(UUIDType(), identity)) == str(identity)


@given(st.integers(-(10**18), 10**18))
def test_nanoseconds(nanos: int) -> None:
    """Nine digits after the point, the date of which is that of the microseconds before."""
    shown = to_json("timestamp_ns", nanos)
    whole, _, fraction = shown.rpartition(".")
    seconds = (datetime.fromisoformat(whole).replace(tzinfo=UTC) - EPOCH) // timedelta(seconds=1)
    assert seconds * 10**9 + int(fraction) == nanos
    assert to_json("timestamptz_ns", nanos) == f"{shown}+00:00"


@given(INTS)
def test_promoted_columns_keep_their_old_bounds(value: int) -> None:
    """A long column with four bytes, a double with a float's, a timestamp with a date's."""
    assert bound_decoder("long")(to_bytes(IntegerType(), value)) == value
    assert bound_decoder("double")(to_bytes(FloatType(), 0.5)) == 0.5
    assert bound_decoder("timestamp")(to_bytes(DateType(), 2)) == 2 * 86_400_000_000
    assert (
        to_json("decimal(18,2)", bound_decoder("decimal(18,2)")(to_bytes(DecimalType(9, 2), Decimal("1.25")))) == "1.25"
    )


def test_values_that_are_not_there_stay_away() -> None:
    """None is null in every type."""
    assert all(to_json(kind, None) is None for kind in ("int", "date", "decimal(9,2)", "uuid", "string"))
    assert partition_to_json("day", "timestamp", None) is None


@pytest.mark.parametrize("kind", ["int", "string", "decimal(9,2)", "fixed[16]", "uuid", "timestamptz_ns"])
def test_primitives_have_bounds(kind: str) -> None:
    """But for the newest ones, and for what is not primitive."""
    assert is_bounded(kind)
    assert not any(map(is_bounded, ["variant", "geometry", "unknown", {"type": "struct", "fields": []}]))


@given(INTS.map(lambda value: value % 80_000 - 20_000))
def test_partition_values_are_shown_as_iceberg_shows_them(value: int) -> None:
    """Years, months, days and hours, before 1970 too."""
    kind: Any = TimestampType()
    transforms: list[Any] = [DayTransform(), HourTransform(), MonthTransform(), YearTransform()]
    day, hour, month, year = (transform.to_human_string for transform in transforms)
    assert partition_to_json("day", "timestamp", value) == day(kind, value)
    assert partition_to_json("hour", "timestamp", value) == hour(kind, value)
    months = value % 4000 - 1000
    assert partition_to_json("month", "timestamp", months) == month(kind, months)
    years = value % 300 - 100
    assert partition_to_json("year", "timestamp", years) == year(kind, years)


def test_other_partition_values_are_the_columns_own() -> None:
    """Identity and truncate keep the type; a bucket is a number."""
    assert partition_to_json("identity", "date", 0) == "1970-01-01"
    assert partition_to_json("truncate[2]", "string", "ab") == "ab"
    assert partition_to_json("truncate[10]", "decimal(9,2)", (1250).to_bytes(4, "big")) == "12.50"
    assert partition_to_json("bucket[4]", "date", 3) == 3
    assert partition_to_json("identity", "boolean", False) is False
