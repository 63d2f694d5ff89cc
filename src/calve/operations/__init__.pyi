from . import models as models
from .access import Access as Access, principal_json as principal_json
from .arguments import NAME as NAME, step_address as step_address
from .caller import Administration as Administration, Asked as Asked, Caller as Caller, Services as Services
from .captures import Captures as Captures
from .declaration import (
    REQUIRED as REQUIRED,
    Argument as Argument,
    Document as Document,
    Operation as Operation,
    Parameter as Parameter,
    Place as Place,
    StrictBody as StrictBody,
    Topic as Topic,
    is_model as is_model,
)
from .documents import event_json as event_json
from .facade import PREFIX as PREFIX, Operations as Operations, declared as declared
from .instances import (
    OVER as OVER,
    Controls as Controls,
    Instances as Instances,
    Starts as Starts,
    cursor_of as cursor_of,
    place_of as place_of,
    waited_too_long as waited_too_long,
)
from .logs import (
    ChosenEvents as ChosenEvents,
    Logs as Logs,
    check_log_part as check_log_part,
    event_number as event_number,
    matches_json as matches_json,
    page_of_events as page_of_events,
    reader_of as reader_of,
)
from .maintenance import Maintenance as Maintenance
from .pages import (
    DEFAULT as DEFAULT,
    LIMIT as LIMIT,
    Page as Page,
    look_through as look_through,
    page_of_list as page_of_list,
)
from .permits import Permits as Permits
from .policy import (
    ADMINISTER as ADMINISTER,
    AUDIT as AUDIT,
    EDIT as EDIT,
    LOGS as LOGS,
    PUBLIC as PUBLIC,
    READ as READ,
    READ_EVERYWHERE as READ_EVERYWHERE,
    READ_SOMEWHERE as READ_SOMEWHERE,
    RUN as RUN,
    SIGNED_IN as SIGNED_IN,
    PermissionScope as PermissionScope,
    Policy as Policy,
)
from .requests import RestartRequest as RestartRequest, StartRequest as StartRequest
from .signals import Signals as Signals, seen_lineage as seen_lineage
from .steps import Breakpoints as Breakpoints
from .tables import LOOKBACK as LOOKBACK
from .triggers import Triggers as Triggers
from .workflows import Workflows as Workflows, defined as defined
