from .reader import MOST as MOST, PAGE as PAGE, LogMatch as LogMatch, LogPage as LogPage, LogReader as LogReader
from .writer import (
    SPOOL as SPOOL,
    Log as Log,
    LogLimits as LogLimits,
    Spool as Spool,
    after as after,
    spooled as spooled,
)
