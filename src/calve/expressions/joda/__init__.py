"""The part of Joda-Time that expressions use: date-times, zones, patterns. Pure."""

from calve.expressions.joda.datetimes import DateTime, Property, days_between
from calve.expressions.joda.errors import JodaError
from calve.expressions.joda.fields import Field
from calve.expressions.joda.patterns import Formatter, formatter
from calve.expressions.joda.units import Unit
from calve.expressions.joda.zones import UTC, Zone, zone_for_id

__all__ = [
    "UTC",
    "DateTime",
    "Field",
    "Formatter",
    "JodaError",
    "Property",
    "Unit",
    "Zone",
    "days_between",
    "formatter",
    "zone_for_id",
]
