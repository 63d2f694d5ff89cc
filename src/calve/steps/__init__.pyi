from .config import fields as fields
from .failures import fatal as fatal, platform_error as platform_error, settled as settled, user_error as user_error
from .plugin import Outcome as Outcome, State as State, StepContext as StepContext, StepRuntime as StepRuntime
from .processes import (
    Isolation as Isolation,
    Workspace as Workspace,
    hidden_paths as hidden_paths,
    load_isolation as load_isolation,
)
from .registry import BUILT_IN as BUILT_IN, ENTRY_POINTS as ENTRY_POINTS, load_runtimes as load_runtimes
from .services import Deliveries as Deliveries, Services as Services
