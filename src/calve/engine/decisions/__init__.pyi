from .next_steps import (
    Create as Create,
    Finish as Finish,
    StopOthers as StopOthers,
    decide as decide,
    why_not_run as why_not_run,
)
from .progress import advance as advance
from .quarantine import SET_ASIDE as SET_ASIDE, is_set_aside as is_set_aside, quarantine as quarantine
from .transactions import (
    CALLS as CALLS,
    OPTIMISTIC as OPTIMISTIC,
    Transaction as Transaction,
    Transactions as Transactions,
)
