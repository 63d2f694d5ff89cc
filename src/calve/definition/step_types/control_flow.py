"""Steps that control the flow of a workflow: NoOp, Sleep, Approval, subworkflow, foreach, while, template."""

from calve.definition.model import FOREACH_CONCURRENCY, ParamType
from calve.definition.step_types.step_type import (
    DURATION,
    LISTS,
    MAPS,
    SCALARS,
    TEXT,
    TEXTS,
    TRUTH,
    WHOLE,
    Field,
    Output,
    StepType,
)

NO_OP = StepType("NoOp", "Does nothing and succeeds; use it where branches meet or part.")

SLEEP = StepType(
    "Sleep",
    "Waits without occupying a worker.",
    params=(Field("sleep_seconds", WHOLE, "How long to wait, in seconds.", default=3, minimum=0),),
)

APPROVAL = StepType(
    "Approval",
    "Waits for a person to decide, without occupying a worker.",
    config="approval",
    fields=(
        Field("message", TEXT, "The question to decide; Markdown.", required=True),
        Field("approvers", TEXTS, "Who may decide. By default, everybody who may run the workflow."),
        Field("min_approvals", WHOLE, "How many people must approve.", default=1, minimum=1),
        Field("timeout", DURATION, "How long to wait: seconds, or a text such as 2 days. By default, forever."),
        Field(
            "on_timeout",
            TEXT,
            "The decision if nobody decides in time.",
            default="reject",
            choices=("reject", "approve"),
        ),
        Field(
            "on_reject",
            TEXT,
            "What a rejection does: fail the step, or let it succeed, so that edges can test decision.",
            default="fail",
            choices=("fail", "succeed"),
        ),
    ),
    outputs=(
        Output("decision", ParamType.STRING, "approved or rejected."),
        Output("decided_by", ParamType.STRING, "Who decided; empty after a timeout."),
        Output("comment", ParamType.STRING, "The comment given with the decision."),
    ),
)

_LOOP_INDEX = Output("loop_index", ParamType.LONG, "The number of the iteration, from 0.")

SUBWORKFLOW = StepType(
    "subworkflow",
    "Runs another workflow.",
    params=(
        Field("subworkflow_id", TEXT, "The workflow to run.", required=True, keyword="workflow_id", from_id=True),
        Field(
            "subworkflow_version",
            (*TEXT, *WHOLE),
            "The version to run: active, latest, default, or a number.",
            default="active",
            keyword="version",
        ),
    ),
    keys=(
        Field("sync", TRUTH, "Wait until it has ended.", default=True),
        Field("explicit_params", TRUTH, "Pass down only the params of the step.", default=False),
    ),
    is_leaf=False,
)
FOREACH = StepType(
    "foreach",
    "Runs its steps once for every combination of its loop params; the first varies fastest.",
    params=(Field("loop_params", MAPS, "The lists to iterate over, by name.", required=True, values=LISTS),),
    keys=(
        Field("concurrency", WHOLE, "How many iterations may run at once.", minimum=1, maximum=FOREACH_CONCURRENCY),
        Field(
            "strict_ordering",
            TRUTH,
            "Let no iteration get further ahead of the oldest running one than concurrency allows.",
            default=False,
        ),
    ),
    outputs=(_LOOP_INDEX,),
    is_leaf=False,
)
WHILE = StepType(
    "while",
    "Runs its steps again while its condition holds.",
    params=(
        Field(
            "loop_params",
            MAPS,
            "The initial values, by name; a param of that name in a step inside gives the next value.",
            required=True,
            values=SCALARS,
        ),
    ),
    keys=(
        Field("condition", TEXT, "An expression over the loop params; the loop ends when it is false.", required=True),
    ),
    outputs=(_LOOP_INDEX,),
    is_leaf=False,
)
TEMPLATE = StepType(
    "template",
    "Runs the steps of a workflow template.",
    keys=(
        Field("sub_type", TEXT, "The workflow template.", required=True),
        Field("sub_type_version", TEXT, "The version of the template."),
    ),
    is_leaf=False,
)

TITUS = StepType(
    "Titus",
    "Runs a container on Netflix's own platform.",
    refused="Titus is Netflix's own platform: use Docker, or Kubernetes on a cluster",
)
JOIN = StepType(
    "Join",
    "Joins branches, inside Maestro.",
    refused="Join is internal to Maestro: every step waits for all steps that lead to it; use NoOp to join branches",
)
