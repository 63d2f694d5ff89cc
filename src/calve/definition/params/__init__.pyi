from .casts import Cast as Cast, cast as cast
from .defaults import DEFAULT_PARAMS as DEFAULT_PARAMS, DefaultParams as DefaultParams
from .evaluation import (
    FileText as FileText,
    Language as Language,
    evaluate_before_step as evaluate_before_step,
    evaluate_condition as evaluate_condition,
    evaluate_file as evaluate_file,
    evaluate_in_step as evaluate_in_step,
    evaluate_step_params as evaluate_step_params,
    evaluate_workflow_params as evaluate_workflow_params,
    needs as needs,
    unresolved_reference as unresolved_reference,
)
from .functions import (
    DRY_RUN_VALUE as DRY_RUN_VALUE,
    STEP_END_TIME as STEP_END_TIME,
    STEP_STATUS as STEP_STATUS,
    ForeachResults as ForeachResults,
    InstanceFacts as InstanceFacts,
    InstanceFunctions as InstanceFunctions,
    InstanceView as InstanceView,
    StepView as StepView,
    UpstreamStep as UpstreamStep,
)
from .interpolation import (
    NOT_EVALUATED as NOT_EVALUATED,
    SIZE_LIMIT as SIZE_LIMIT,
    braced_text as braced_text,
    escaped as escaped,
    evaluate_literal as evaluate_literal,
    interpolate as interpolate,
    is_reference as is_reference,
    line_and_column as line_and_column,
    literal_references as literal_references,
    literal_texts as literal_texts,
    reference_index as reference_index,
    references as references,
    step_reference as step_reference,
    unresolved_index as unresolved_index,
)
from .parameter import (
    SCALARS as SCALARS,
    InitiatorType as InitiatorType,
    Parameter as Parameter,
    ParamSource as ParamSource,
    values_of as values_of,
)
from .precedence import (
    MergeContext as MergeContext,
    cleaned as cleaned,
    continued_workflow_params as continued_workflow_params,
    essence as essence,
    fresh_workflow_params as fresh_workflow_params,
    merge as merge,
    restarted_workflow_params as restarted_workflow_params,
    step_params as step_params,
    subworkflow_params as subworkflow_params,
    template_params as template_params,
    with_outputs as with_outputs,
)
from .retries import (
    DEFAULT_TIMEOUT_DAYS as DEFAULT_TIMEOUT_DAYS,
    TIMEOUT_LIMIT_DAYS as TIMEOUT_LIMIT_DAYS,
    ParsedRetryPolicy as ParsedRetryPolicy,
    Retries as Retries,
    RetryReason as RetryReason,
    parse_duration as parse_duration,
    parse_retry_policy as parse_retry_policy,
)
from .scopes import StepScope as StepScope, WorkflowScope as WorkflowScope
from .secrets import (
    HIDDEN as HIDDEN,
    Resolve as Resolve,
    Secret as Secret,
    SecretText as SecretText,
    holds_secret as holds_secret,
    reveal as reveal,
    shown as shown,
)
