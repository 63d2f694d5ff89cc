from .access import (
    access_control_on as access_control_on,
    accounts_on as accounts_on,
    bootstrap_on as bootstrap_on,
    secret_table_on as secret_table_on,
    secrets_on as secrets_on,
)
from .boundaries import Boundary as Boundary, boundaries_of as boundaries_of
from .captures import (
    captures_on as captures_on,
    deliveries_on as deliveries_on,
    has_closed_tables as has_closed_tables,
    open_captures as open_captures,
    open_lake as open_lake,
    tables_on as tables_on,
)
from .host import (
    is_gone as is_gone,
    new_id as new_id,
    new_uuid as new_uuid,
    now_ms as now_ms,
    this_process as this_process,
    utc_now as utc_now,
)
from .project import Project as Project, open_project as open_project, patiently as patiently, tools_on as tools_on
from .scheduler import BackgroundService as BackgroundService, test_message as test_message
from .server import web_on as web_on
from .worker_thread import WorkerThread as WorkerThread
