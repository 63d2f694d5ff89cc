from .folders import ProcessFolder as ProcessFolder
from .fork_server import ForkContext as ForkContext, ForkServers as ForkServers
from .isolation import Isolation as Isolation, hidden_paths as hidden_paths, load_isolation as load_isolation
from .outcomes import last_lines as last_lines, outcome_of as outcome_of, without_exit_code as without_exit_code
from .outputs import (
    OUTPUT_LIMIT as OUTPUT_LIMIT,
    MarkedOutput as MarkedOutput,
    ProgramOutputs as ProgramOutputs,
    with_outputs as with_outputs,
)
from .process import (
    MAIN as MAIN,
    CompletedProcess as CompletedProcess,
    EndReason as EndReason,
    Program as Program,
    refuse_shown_secrets as refuse_shown_secrets,
    run_program as run_program,
    supervise as supervise,
    terminate_programs as terminate_programs,
)
from .streams import Output as Output
from .workspace import Workspace as Workspace, resolved_file as resolved_file
