"""The bodies of requests. As in Maestro, unknown fields are ignored, except those that look like a misspelling."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, model_validator

from calve.engine import Initiator, RunPolicy
from calve.operations.arguments import NAME

RequestId = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[\x21-\x7e]+$")]
Name = Annotated[str, Field(pattern=f"^{NAME}$")]
Params = Annotated[
    dict[str, JsonValue],
    Field(
        description="Params by name: definitions, as in Maestro, or plain values.",
        examples=[{"day": {"type": "STRING", "value": "20260101"}, "limit": 5}],
    ),
]
RefuseUnknownParams = Annotated[
    bool, Field(description="Refuse params that the definition does not use, instead of warning about them.")
]
Skipped = Annotated[list[Name], Field(description="Skip these steps instead of running them again.")]
Kept = Annotated[
    list[Name], Field(description="With ``latest``: keep the results of these steps and of the steps before them.")
]
_POLICIES = (RunPolicy.RESTART_FROM_INCOMPLETE, RunPolicy.RESTART_FROM_BEGINNING, RunPolicy.RESTART_FROM_SPECIFIC)
_NEAR = 0.88
"""How similar an unknown name must be to count as a misspelling; Maestro's own names are less similar."""


def _plain(name: str) -> str:
    return name.replace("_", "").casefold()


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, given: Any) -> Any:
        """Refuse an unknown name that is similar to a known one: its value would be lost."""
        if not isinstance(given, dict):
            return given
        missing = {_plain(name): name for name in cls.model_fields if name not in given}
        for name in sorted(given.keys() - cls.model_fields.keys()):
            if near := get_close_matches(_plain(name), missing, n=1, cutoff=_NEAR):
                raise ValueError(f"there is no {name!r}: did you mean {missing[near[0]]!r}?")
        return given


class TagBody(_Body):
    """A tag: its name, and any other fields."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: Name


def _manual(given: str) -> str:
    if given.casefold() != "manual":
        raise ValueError("must be manual: only the engine uses the other initiators")
    return given


class InitiatorRequest(_Body):
    """Who starts an instance; Maestro's clients always send it."""

    type: Annotated[str, AfterValidator(_manual), Field(examples=["manual"])] = "manual"


class StartRequest(_Body):
    """A start of a workflow."""

    initiator: InitiatorRequest = InitiatorRequest()

    request_id: Annotated[
        RequestId | None, Field(description="A name for this request: repeating it returns the same instance.")
    ] = None
    run_params: Params = {}
    runtime_tags: list[Name | TagBody] = []
    persist_failed_run: bool = False
    """If params are invalid, store the instance as FAILED instead of refusing the request."""
    refuse_unknown_params: RefuseUnknownParams = False

    def as_start(self, initiator: Initiator) -> dict[str, Any]:
        """Return the arguments for the engine."""
        plain, defined = split_params(self.run_params)
        return {
            "params": plain,
            "definitions": defined,
            "request_id": self.request_id,
            "tags": tuple(tag if isinstance(tag, str) else tag.name for tag in self.runtime_tags),
            "persist_failed_run": self.persist_failed_run,
            "refuse_unknown_params": self.refuse_unknown_params,
            "initiator": initiator,
        }


class RestartRequest(_Body):
    """A restart of an instance."""

    request_id: RequestId | None = None
    restart_policy: RunPolicy | None = None
    run_policy: RunPolicy | None = None
    """The same as ``restart_policy``."""
    run_params: Params = {}
    step_run_params: dict[Name, Params] = {}
    """Changed params by step."""
    skip: Skipped = []
    refuse_unknown_params: RefuseUnknownParams = False
    latest: Annotated[
        bool,
        Field(
            description=(
                "Continue with the newest version of the workflow: keep steps that succeeded and did not change."
            )
        ),
    ] = False
    keep: Kept = []

    def as_restart(self, initiator: Initiator) -> dict[str, Any]:
        """Return the arguments for the engine."""
        policy = self.restart_policy or self.run_policy
        known = policy if policy in _POLICIES else RunPolicy.RESTART_FROM_INCOMPLETE
        return {"policy": known, **_as_restart(self, self.step_run_params, initiator)}


class StepRestartRequest(_Body):
    """A restart of a step."""

    request_id: RequestId | None = None
    run_params: Params = {}
    """Changed params of the instance."""
    step_run_params: Params = {}
    """Changed params of the step."""
    other_step_run_params: dict[Name, Params] = {}
    """Changed params of other steps."""
    skip: Skipped = []
    refuse_unknown_params: RefuseUnknownParams = False
    latest: Annotated[
        bool, Field(description="Continue with the newest version: besides the step, changed steps run again.")
    ] = False
    keep: Kept = []

    def as_restart(self, step_id: str, initiator: Initiator) -> dict[str, Any]:
        """Return the arguments for the engine."""
        return _as_restart(self, {**self.other_step_run_params, step_id: self.step_run_params}, initiator)


def _as_restart(
    request: RestartRequest | StepRestartRequest, step_params: Mapping[str, Params], initiator: Initiator
) -> dict[str, Any]:
    plain, defined = split_params(request.run_params)
    by_step = {step_id: split_params(given) for step_id, given in step_params.items()}
    return {
        "params": plain,
        "definitions": defined,
        "step_params": {step_id: values for step_id, (values, _) in by_step.items() if values},
        "step_definitions": {step_id: values for step_id, (_, values) in by_step.items() if values},
        "skip": tuple(request.skip),
        "is_latest": request.latest,
        "keep": tuple(request.keep),
        "request_id": request.request_id,
        "refuse_unknown_params": request.refuse_unknown_params,
        "initiator": initiator,
    }


class ActionRequest(_Body):
    """The reason of an action."""

    reason: Annotated[str, Field(description="The reason, which is recorded in the timeline.", max_length=1_000)] = ""
    comment: Annotated[str, Field(description="A comment, which becomes an output of the step.", max_length=1_000)] = ""


class PropertiesRequest(_Body):
    """A change of properties; those that are not given stay as they are."""

    owner: str | dict[str, JsonValue] | None = None
    access_control: dict[str, JsonValue] | None = None
    run_strategy: str | int | dict[str, JsonValue] | None = None
    step_concurrency: int | None = None
    alerting: dict[str, JsonValue] | None = None
    alerting_disabled: bool | None = None
    signal_trigger_disabled: bool | None = None
    time_trigger_disabled: bool | None = None
    incremental_trigger_disabled: bool | None = None
    description: str | None = None
    reset_run_strategy_rule: bool = False
    reset_workflow_concurrency: bool = False
    reset_step_concurrency: bool = False

    def changes(self) -> dict[str, Any]:
        """Return the changed properties."""
        given = self.model_dump(exclude_none=True)
        return {name: value for name, value in given.items() if not name.startswith("reset_")}

    def reset(self) -> list[str]:
        """Return the properties to reset to their defaults."""
        is_strategy = self.reset_run_strategy_rule or self.reset_workflow_concurrency
        found = {"run_strategy": is_strategy, "step_concurrency": self.reset_step_concurrency}
        return [name for name, is_reset in found.items() if is_reset]


class BreakpointRequest(_Body):
    """A breakpoint, where attempts pause; a number that is 0 stands for all."""

    workflow_id: Name
    step_id: Name
    workflow_version_id: Annotated[int, Field(ge=0, lt=2**31)] = 0
    workflow_instance_id: Annotated[int, Field(description="Only in this instance.", ge=0, lt=2**63)] = 0
    workflow_run_id: Annotated[int, Field(ge=0, lt=2**31)] = 0
    step_attempt_id: Annotated[int, Field(ge=0, lt=2**31)] = 0


class TagPermitRequest(_Body):
    """The limit of a tag."""

    tag: Name
    max_allowed: Annotated[int, Field(ge=0, le=1_000)]


class OutputRequest(_Body):
    """Output params and artifacts of a running attempt, sent by its program."""

    step_instance_uuid: Annotated[str, Field(min_length=1, max_length=64)]
    """The attempt: the variable CALVE_ATTEMPT_ID of its environment."""
    params: dict[Name, JsonValue] = {}
    artifacts: dict[Name, JsonValue] = {}


class NodeRequest(_Body):
    """A node of the path to a loop: the instance, or the iteration, that contains the step."""

    workflow_id: Name | None = None
    instance_id: Annotated[int, Field(ge=1, lt=2**63)]
    step_id: Name | None = None


def split_params(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Separate plain values from definitions, which are objects with a type and a value or an expression."""
    defined = {name: value for name, value in given.items() if _is_definition(value)}
    return {name: value for name, value in given.items() if name not in defined}, defined


def _is_definition(value: Any) -> bool:
    return isinstance(value, dict) and "type" in value and ("value" in value or "expression" in value)


_WORKFLOW = {
    "properties": {"owner": "ann", "run_strategy": "sequential"},
    "workflow": {
        "id": "demo.hello",
        "steps": [{"step": {"id": "hello", "type": "NoOp"}}],
    },
}
_YAML = "Workflow:\n  id: demo.hello\n  jobs:\n    - job:\n        id: hello\n        type: NoOp\n"

_TEMPLATE = {
    "owner": "ann",
    "status": "production",
    "support": "data@example.com",
    "definition": {
        "job_type": "report",
        "step_type": "Shell",
        "params": {"shell": {"type": "MAP", "value": {"script": {"type": "STRING", "value": "make report"}}}},
    },
}
_YAML_TEMPLATE = """\
owner: ann
status: production
support: data@example.com
definition:
  job_type: report
  step_type: Shell
  params:
    shell: {type: MAP, value: {script: {type: STRING, value: make report}}}
"""


def _body(media: str, schema: dict[str, Any], example: Any) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {media: {"schema": schema, "example": example}}}}


JSON_BODY = _body("application/json", {"type": "object"}, _WORKFLOW)
"""A definition in Maestro's JSON, or any other form of it."""
YAML_BODY = _body("application/yaml", {"type": "string"}, _YAML)
"""A definition in YAML."""
JSON_TEMPLATE = _body("application/json", {"type": "object"}, _TEMPLATE)
"""A job template in Maestro's JSON."""
YAML_TEMPLATE = _body("application/yaml", {"type": "string"}, _YAML_TEMPLATE)
"""A job template in YAML."""
