from .addresses import (
    Address as Address,
    Found as Found,
    find as find,
    find_attempt as find_attempt,
    find_run as find_run,
    loop_of as loop_of,
    not_begun as not_begun,
)
from .blueprints import (
    APPROVAL as APPROVAL,
    NO_OP as NO_OP,
    Blueprint as Blueprint,
    Blueprints as Blueprints,
    Dag as Dag,
    is_approval as is_approval,
    is_immediate as is_immediate,
    is_leaf as is_leaf,
    needs_worker as needs_worker,
    type_of as type_of,
)
from .launches import (
    ended_run as ended_run,
    find_workflow as find_workflow,
    known_workflow as known_workflow,
    new_run as new_run,
    restarted_run as restarted_run,
    unknown_run_params as unknown_run_params,
    unknown_step_params as unknown_step_params,
    version_number as version_number,
)
from .run_state import Cache as Cache, Params as Params, RunState as RunState
from .unit_of_work import (
    TIMELINE as TIMELINE,
    Tools as Tools,
    UnitOfWork as UnitOfWork,
    run_event as run_event,
    step_event as step_event,
    with_timeline_entry as with_timeline_entry,
)
