"""The alerting properties of a workflow, in Maestro's form."""

from enum import StrEnum

from pydantic import Field, StrictBool, StrictInt, model_validator
from pydantic_core import PydanticCustomError

from calve.definition.model.fields import Model

Names = tuple[str, ...]


class AlertType(StrEnum):
    """The types of alerts."""

    STEP_FAILURE = "STEP_FAILURE"
    TCT_VIOLATION = "TCT_VIOLATION"
    LONG_RUNNING = "LONG_RUNNING"
    DEPENDENCY_LATE = "DEPENDENCY_LATE"
    BREAKPOINT_HIT = "BREAKPOINT_HIT"
    DEFINITION_CHANGE = "DEFINITION_CHANGE"
    RUN_SUCCESS = "RUN_SUCCESS"
    SUCCESS_WITHIN = "SUCCESS_WITHIN"


class Severity(StrEnum):
    """The severity of a PagerDuty incident."""

    CRITICAL = "CRITICAL"
    ERROR = "ERROR"
    WARNING = "WARNING"
    INFO = "INFO"


class Granularity(StrEnum):
    """Whether alerts are sent for the workflow or for each step."""

    WORKFLOW = "WORKFLOW"
    STEP = "STEP"


class Slack(Model):
    """Users and channels on Slack."""

    users: Names = ()
    channels: Names = ()
    mention_users: Names = ()


class Pagerduty(Model):
    """How PagerDuty is notified."""

    severity: Severity | None = None
    always_page: StrictBool | None = None


class BypassDigest(Model):
    """Alerts that are sent immediately instead of in a digest."""

    bypass_workflow: StrictBool = False
    steps: Names = ()


class AlertConfig(Model):
    """The recipients of one type of alert."""

    emails: Names = ()
    pagerduties: Names = ()
    slack: Slack | None = None
    disabled: StrictBool = False
    granularity: Granularity | None = None
    duration_minutes: StrictInt | None = None


class Tct(Model):
    """The target completion time of a run."""

    completed_by_hour: StrictInt | None = Field(default=None, ge=0, le=23)
    duration_minutes: StrictInt | None = Field(default=None, ge=1)
    completed_by_ts: StrictInt | None = None
    tz: str | None = None

    @model_validator(mode="after")
    def _has_one_time(self) -> "Tct":
        given = [self.completed_by_hour, self.duration_minutes, self.completed_by_ts]
        if sum(value is not None for value in given) != 1:
            raise PydanticCustomError(
                "tct_times", "exactly one of completed_by_hour, duration_minutes and completed_by_ts must be given"
            )
        return self


class Alerting(Model):
    """The recipients of a workflow's alerts, and the alerts they get."""

    emails: Names = ()
    pagerduties: Names = ()
    slack: Slack | None = None
    bypass_digest_config: BypassDigest | None = None
    pagerduty_config: Pagerduty | None = None
    type_configs: dict[AlertType, AlertConfig] = Field(default_factory=dict)
    tct: Tct | None = None
