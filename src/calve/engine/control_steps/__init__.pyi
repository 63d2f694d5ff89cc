from .approval import (
    APPROVAL_KEY as APPROVAL_KEY,
    progress_approval as progress_approval,
    with_decision as with_decision,
)
from .child_runs import Loop as Loop, loop_param as loop_param, outcome_of as outcome_of, worst as worst
from .foreach import FOREACH_KEY as FOREACH_KEY, progress_foreach as progress_foreach
from .subworkflow import (
    SUBWORKFLOW_KEY as SUBWORKFLOW_KEY,
    check_cycle as check_cycle,
    progress_subworkflow as progress_subworkflow,
)
from .while_loop import WHILE_KEY as WHILE_KEY, progress_while as progress_while
