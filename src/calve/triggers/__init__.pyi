from .model import (
    SILENT as SILENT,
    Evaluation as Evaluation,
    Fire as Fire,
    Trigger as Trigger,
    TriggerKind as TriggerKind,
    TriggerState as TriggerState,
    TriggerType as TriggerType,
    WantedTrigger as WantedTrigger,
    all_triggers as all_triggers,
)
from .scheduler import Scheduler as Scheduler, SchedulerRound as SchedulerRound
from .time import TimeTriggers as TimeTriggers, upcoming as upcoming
