from .captures import CapturedRows as CapturedRows, Effect as Effect, Use as Use
from .composites import (
    ITERATIONS as ITERATIONS,
    LoopLists as LoopLists,
    count_iterations as count_iterations,
    endless_cycle as endless_cycle,
    iteration_values as iteration_values,
    subworkflow_of as subworkflow_of,
    subworkflows as subworkflows,
)
from .differences import (
    Change as Change,
    around_body as around_body,
    body_differences as body_differences,
    condition_depends_on as condition_depends_on,
    depends_on as depends_on,
    param_changes as param_changes,
    step_changes as step_changes,
    step_differences as step_differences,
)
from .document import Mark as Mark, Node as Node
from .dry_run import rendered as rendered, resolve as resolve
from .files import (
    ProjectFiles as ProjectFiles,
    ScriptFolder as ScriptFolder,
    Scripts as Scripts,
    StepFiles as StepFiles,
    file_here as file_here,
    readable as readable,
)
from .loader import Loaded as Loaded, checked as checked, load as load, load_template as load_template
from .model import Definition as Definition
from .problems import (
    Problem as Problem,
    Problems as Problems,
    Severity as Severity,
    TooManyProblems as TooManyProblems,
    did_you_mean as did_you_mean,
)
from .run_params import (
    KnownParams as KnownParams,
    UnknownParam as UnknownParam,
    check_run_params as check_run_params,
    given_params as given_params,
    known_to_step as known_to_step,
    known_to_workflow as known_to_workflow,
    refusal as refusal,
    unknown_params as unknown_params,
)
from .schema import schema as schema
from .syntax import to_json as to_json, to_yaml as to_yaml
from .templates import JobTemplate as JobTemplate
from .vocabulary import Vocabulary as Vocabulary, installed as installed, vocabulary_with as vocabulary_with
