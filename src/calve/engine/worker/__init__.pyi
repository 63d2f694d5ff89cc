from .claims import ClaimedTasks as ClaimedTasks, Slots as Slots
from .clock import AnchoredClock as AnchoredClock
from .executor import Executor as Executor
from .log_context import current_log_context as current_log_context, log_context as log_context
from .masks import Mask as Mask
from .step_context import AttemptContext as AttemptContext, revealed as revealed
from .worker import Listener as Listener, Worker as Worker, WorkerOptions as WorkerOptions
