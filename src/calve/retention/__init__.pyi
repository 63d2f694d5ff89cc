from .policy import (
    Ages as Ages,
    Key as Key,
    OldRecord as OldRecord,
    RecordKind as RecordKind,
    RecordPage as RecordPage,
    RetentionState as RetentionState,
    goes as goes,
)
from .pruner import Pruner as Pruner
