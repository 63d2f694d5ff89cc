"""Parameters: merged from where they are defined, evaluated when they are needed, and read by steps."""

from calve.definition.params.casts import Cast, cast
from calve.definition.params.defaults import DEFAULT_PARAMS, DefaultParams
from calve.definition.params.durations import DEFAULT_TIMEOUT_DAYS, TIMEOUT_LIMIT_DAYS, human_duration, parse_duration
from calve.definition.params.evaluation import (
    FileText,
    Language,
    evaluate_before_step,
    evaluate_condition,
    evaluate_file,
    evaluate_in_step,
    evaluate_step_params,
    evaluate_workflow_params,
    needs,
    unresolved_reference,
)
from calve.definition.params.facts import ForeachResults, InstanceFacts, InstanceView, StepView, UpstreamStep
from calve.definition.params.functions import DRY_RUN_VALUE, InstanceFunctions
from calve.definition.params.interpolation import (
    NOT_EVALUATED,
    SIZE_LIMIT,
    braced_text,
    escaped,
    interpolate,
    is_reference,
    line_and_column,
    reference_index,
    references,
    step_reference,
    unresolved_index,
)
from calve.definition.params.literals import evaluate_literal, literal_references, literal_texts
from calve.definition.params.merging import MergeContext, cleaned, essence, merge
from calve.definition.params.orders import (
    continued_workflow_params,
    fresh_workflow_params,
    restarted_workflow_params,
    step_params,
    subworkflow_params,
    template_params,
    with_outputs,
)
from calve.definition.params.parameter import SCALARS, Parameter, values_of
from calve.definition.params.retries import ParsedRetryPolicy, Retries, RetryReason, parse_retry_policy
from calve.definition.params.scopes import StepScope, WorkflowScope
from calve.definition.params.secrets import HIDDEN, Resolve, Secret, SecretText, holds_secret, reveal, shown
from calve.definition.params.sources import InitiatorType, ParamSource

__all__ = [
    "DEFAULT_PARAMS",
    "DEFAULT_TIMEOUT_DAYS",
    "DRY_RUN_VALUE",
    "HIDDEN",
    "NOT_EVALUATED",
    "SCALARS",
    "SIZE_LIMIT",
    "TIMEOUT_LIMIT_DAYS",
    "Cast",
    "DefaultParams",
    "FileText",
    "ForeachResults",
    "InitiatorType",
    "InstanceFacts",
    "InstanceFunctions",
    "InstanceView",
    "Language",
    "MergeContext",
    "ParamSource",
    "Parameter",
    "ParsedRetryPolicy",
    "Resolve",
    "Retries",
    "RetryReason",
    "Secret",
    "SecretText",
    "StepScope",
    "StepView",
    "UpstreamStep",
    "WorkflowScope",
    "braced_text",
    "cast",
    "cleaned",
    "continued_workflow_params",
    "escaped",
    "essence",
    "evaluate_before_step",
    "evaluate_condition",
    "evaluate_file",
    "evaluate_in_step",
    "evaluate_literal",
    "evaluate_step_params",
    "evaluate_workflow_params",
    "fresh_workflow_params",
    "holds_secret",
    "human_duration",
    "interpolate",
    "is_reference",
    "line_and_column",
    "literal_references",
    "literal_texts",
    "merge",
    "needs",
    "parse_duration",
    "parse_retry_policy",
    "reference_index",
    "references",
    "restarted_workflow_params",
    "reveal",
    "shown",
    "step_params",
    "step_reference",
    "subworkflow_params",
    "template_params",
    "unresolved_index",
    "unresolved_reference",
    "values_of",
    "with_outputs",
]
