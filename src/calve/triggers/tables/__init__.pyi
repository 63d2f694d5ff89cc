from .decision import (
    ChangeRules as ChangeRules,
    Decision as Decision,
    Memory as Memory,
    Reaction as Reaction,
    UncommittedChange as UncommittedChange,
    counted as counted,
    decide as decide,
    identity_of as identity_of,
)
from .trigger import TableChanges as TableChanges, latency_of as latency_of, latest_latency as latest_latency
from .watcher import LagSampler as LagSampler, Watcher as Watcher
