from .documents import announced_json as announced_json, lineage_json as lineage_json, signal_json as signal_json
from .fire import fire_for as fire_for
from .joins import Arrived as Arrived, counts as counts, join as join
from .signals import (
    InstanceLineage as InstanceLineage,
    SignalLineage as SignalLineage,
    Signals as Signals,
    SignalState as SignalState,
)
from .trigger import SignalTriggers as SignalTriggers, is_needed as is_needed, read_through as read_through
from .valid_through import ValidThrough as ValidThrough, moment_of as moment_of, set_valid_through as set_valid_through
