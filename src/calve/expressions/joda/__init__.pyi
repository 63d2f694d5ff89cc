from .datetimes import DateTime as DateTime, Property as Property, days_between as days_between
from .errors import JodaError as JodaError
from .fields import DateField as DateField, Unit as Unit
from .gregorian import DAY as DAY, date_of as date_of
from .patterns import Formatter as Formatter, formatter as formatter
from .zones import UTC as UTC, Zone as Zone, zone_for_id as zone_for_id
