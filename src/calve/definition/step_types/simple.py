"""Steps that need no program: NoOp, Sleep, Http, Approval."""

from calve.definition.model.params import ParamType
from calve.definition.step_types.model import (
    DURATION,
    MAPS,
    NUMBER,
    TEXT,
    TEXTS,
    TRUTH,
    WHOLE,
    Field,
    Output,
    StepType,
)

NO_OP = StepType("NoOp", "Does nothing and succeeds; a place where branches meet or part.")

SLEEP = StepType(
    "Sleep",
    "Waits, without holding a worker.",
    params=(Field("sleep_seconds", WHOLE, "How long to wait, in seconds.", default=3, minimum=0),),
)

HTTP = StepType(
    "Http",
    "Sends one HTTP request and judges the answer.",
    config="http",
    fields=(
        Field("url", TEXT, "Where to send it; the host must be on the allow-list of the settings.", required=True),
        Field(
            "method",
            TEXT,
            "The HTTP method.",
            default="GET",
            choices=("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"),
        ),
        Field("headers", MAPS, "Headers by name.", values=(*TEXT, *WHOLE)),
        Field("body", (*TEXT, *MAPS), "The body: a text as it is, or a map, which is sent as JSON."),
        Field("query", MAPS, "What to append to the address after the question mark."),
        Field(
            "auth",
            MAPS,
            "How to sign in: a user name with a password, or a token.",
            fields=(
                Field("username", TEXT, "The user of basic authentication."),
                Field("password", TEXT, "Its password, a secret."),
                Field("token", TEXT, "A bearer token, a secret."),
            ),
        ),
        Field("timeout_seconds", NUMBER, "How long to wait for the answer.", default=30, minimum=1),
        Field("verify", TRUTH, "Check the server's certificate.", default=True),
    ),
    params=(
        Field(
            "state_expr",
            TEXT,
            "An expression over status_code and response_body that gives the step's state: DONE, USER_ERROR, "
            "PLATFORM_ERROR, FATAL_ERROR or CONTINUE. Without it 2xx is DONE, 408, 425, 429, 502, "
            "503 and 504 are PLATFORM_ERROR, the rest of 4xx is FATAL_ERROR, and all else USER_ERROR.",
        ),
    ),
    outputs=(
        Output("status_code", ParamType.LONG, "The status of the answer."),
        Output("response_body", ParamType.STRING, "The body of the answer."),
    ),
)

APPROVAL = StepType(
    "Approval",
    "Waits until a person has decided, without holding a worker.",
    config="approval",
    fields=(
        Field("message", TEXT, "What is to be decided; Markdown.", required=True),
        Field("approvers", TEXTS, "Who may decide; anybody who may run the workflow, if none is named."),
        Field("min_approvals", WHOLE, "How many people must agree.", default=1, minimum=1),
        Field("timeout", DURATION, "How long to wait: seconds, or a text such as 2 days. For ever, if not given."),
        Field(
            "on_timeout",
            TEXT,
            "What counts when nobody decided in time.",
            default="reject",
            choices=("reject", "approve"),
        ),
        Field(
            "on_reject",
            TEXT,
            "What a rejection does: fail the step, or succeed and let edges look at decision.",
            default="fail",
            choices=("fail", "succeed"),
        ),
    ),
    outputs=(
        Output("decision", ParamType.STRING, "approved or rejected."),
        Output("decided_by", ParamType.STRING, "Who decided; empty after a timeout."),
        Output("comment", ParamType.STRING, "What they wrote about it."),
    ),
)
