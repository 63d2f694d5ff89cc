"""How an instance moves: states, decisions, retries, loops, run strategies; the worker; its ports."""

from calve.engine.actions import RUN_ACTIONS, STEP_ACTIONS, Action
from calve.engine.addresses import Address
from calve.engine.blueprints import Blueprints
from calve.engine.clocks import AnchoredClock
from calve.engine.engine import Engine
from calve.engine.executing import Executor
from calve.engine.model import Breakpoint, Initiator, RunPolicy, Started, StartStatus, WorkerRecord
from calve.engine.ports import Outcome, Runtimes, State, StepContext, StepRuntime
from calve.engine.states import Cache
from calve.engine.statuses import RunStatus, StepStatus
from calve.engine.turns import Turn
from calve.engine.work import Tools
from calve.engine.worker import Listener, Worker, WorkerOptions

__all__ = [
    "RUN_ACTIONS",
    "STEP_ACTIONS",
    "Action",
    "Address",
    "AnchoredClock",
    "Blueprints",
    "Breakpoint",
    "Cache",
    "Engine",
    "Executor",
    "Initiator",
    "Listener",
    "Outcome",
    "RunPolicy",
    "RunStatus",
    "Runtimes",
    "StartStatus",
    "Started",
    "State",
    "StepContext",
    "StepRuntime",
    "StepStatus",
    "Tools",
    "Turn",
    "Worker",
    "WorkerOptions",
    "WorkerRecord",
]
