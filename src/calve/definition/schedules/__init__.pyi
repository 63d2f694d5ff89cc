from .cron import Cron as Cron
from .parser import (
    MINIMUM_GAP as MINIMUM_GAP,
    PREDEFINED as PREDEFINED,
    Interval as Interval,
    Schedule as Schedule,
    cron_of as cron_of,
    interval_of as interval_of,
    predefined_of as predefined_of,
    zone_of as zone_of,
)
