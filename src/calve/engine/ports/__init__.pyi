from .runtime import (
    PROGRESS as PROGRESS,
    Closing as Closing,
    Iteration as Iteration,
    Outcome as Outcome,
    Runtimes as Runtimes,
    State as State,
    StepAddress as StepAddress,
    StepContext as StepContext,
    StepEnd as StepEnd,
    StepRuntime as StepRuntime,
)
from .store import (
    Clock as Clock,
    Controls as Controls,
    Definitions as Definitions,
    EngineState as EngineState,
    GivenUp as GivenUp,
    Instances as Instances,
    LogFiles as LogFiles,
    LogPieces as LogPieces,
    NewId as NewId,
    Queue as Queue,
)
