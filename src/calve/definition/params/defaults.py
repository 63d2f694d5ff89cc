"""The default params of every workflow and every step."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from calve.definition.model import Params

_DAY = "yyyyMMdd"
_HOUR = "HH"
_PACIFIC = "America/Los_Angeles"


@dataclass(frozen=True, slots=True)
class DefaultParams:
    """Default params of workflows and steps."""

    workflow: Params
    step: Params
    by_type: Mapping[str, Params] = field(default_factory=dict)
    dry_run: Params = field(default_factory=dict)

    def of_type(self, step_type: str) -> Params:
        """Return those of a step type."""
        return self.by_type.get(step_type.lower(), {})

    def with_changes(
        self,
        *,
        workflow: Params | None = None,
        step: Params | None = None,
        by_type: Mapping[str, Params] | None = None,
        dry_run: Params | None = None,
    ) -> "DefaultParams":
        """Return default params with some replaced or added."""
        types = {name.lower(): {**self.of_type(name), **params} for name, params in (by_type or {}).items()}
        return DefaultParams(
            {**self.workflow, **(workflow or {})},
            {**self.step, **(step or {})},
            {**self.by_type, **types},
            {**self.dry_run, **(dry_run or {})},
        )


def _params(definitions: Mapping[str, Mapping[str, Any]]) -> Params:
    params: Params = TypeAdapter(Params).validate_python(definitions)
    return params


def _on_start(expression: str, type_: str = "STRING") -> dict[str, str]:
    return {"type": type_, "mode": "MUTABLE_ON_START", "expression": expression}


def _reserved(call: str, type_: str = "STRING") -> dict[str, str]:
    return {"type": type_, "internal_mode": "RESERVED", "expression": f"return params.{call};"}


def _set_or(field_name: str, otherwise: str) -> dict[str, str]:
    """Return a param with the value of a field of the instance, or a default if the field is not set."""
    return _on_start(f"found = params.getFromInstance('{field_name}'); return found.isEmpty() ? {otherwise} : found;")


def _moment(of: str, pattern: str, *, zone: str = "'UTC'", moved: str = "") -> dict[str, str]:
    """Return a param that formats a timestamp in a time zone."""
    return _on_start(
        f"moment = new DateTime({of}).withZone(DateTimeZone.forID({zone})); return moment{moved}.toString('{pattern}');"
    )


_CRON_ZONE = "WORKFLOW_CRON_TIMEZONE"
_DERIVED = "DERIVED_RUN_TS"
_WORKFLOW: dict[str, dict[str, str]] = {
    "DSL_DEFAULT_TZ": _set_or("FIRST_TIME_TRIGGER_TIMEZONE", "'UTC'"),
    "WORKFLOW_CRON_TIMEZONE": _set_or("INITIATOR_TIMEZONE", "DSL_DEFAULT_TZ"),
    "RUN_TS": _on_start("System.currentTimeMillis()", "LONG"),
    "TARGET_RUN_DATE": _moment("RUN_TS", _DAY, zone=_CRON_ZONE),
    "TARGET_RUN_HOUR": _moment("RUN_TS", _HOUR, zone=_CRON_ZONE),
    "DERIVED_RUN_TS": _on_start(
        "hours = DateTimeFormat.forPattern('yyyyMMddHH').withZone(DateTimeZone.forID(WORKFLOW_CRON_TIMEZONE)); "
        "return hours.parseDateTime(TARGET_RUN_DATE + TARGET_RUN_HOUR).getMillis();",
        "LONG",
    ),
    "DERIVED_RUN_DATE_US_PACIFIC": _moment(_DERIVED, _DAY, zone=f"'{_PACIFIC}'"),
    "DERIVED_RUN_DATE_US_PACIFIC_MINUS_ONE": _moment(_DERIVED, _DAY, zone=f"'{_PACIFIC}'", moved=".minusDays(1)"),
    "DERIVED_RUN_DATE_UTC": _moment(_DERIVED, _DAY),
    "DERIVED_RUN_DATE_UTC_MINUS_ONE": _moment(_DERIVED, _DAY, moved=".minusDays(1)"),
    "DERIVED_RUN_DATE_UTC_PLUS_ONE": _moment(_DERIVED, _DAY, moved=".plusDays(1)"),
    "DERIVED_RUN_DATE_UTC_MINUS_ONE_HOUR": _moment(_DERIVED, _DAY, moved=".minusHours(1)"),
    "DERIVED_RUN_DATE_UTC_PLUS_ONE_HOUR": _moment(_DERIVED, _DAY, moved=".plusHours(1)"),
    "DERIVED_RUN_HOUR_US_PACIFIC": _moment(_DERIVED, _HOUR, zone=f"'{_PACIFIC}'"),
    "DERIVED_RUN_HOUR_UTC": _moment(_DERIVED, _HOUR),
    "DERIVED_RUN_HOUR_UTC_MINUS_ONE_HOUR": _moment(_DERIVED, _HOUR, moved=".minusHours(1)"),
    "DERIVED_RUN_HOUR_UTC_PLUS_ONE_HOUR": _moment(_DERIVED, _HOUR, moved=".plusHours(1)"),
    "LOCAL_RUN_DATE": _moment("RUN_TS", _DAY, zone=_CRON_ZONE),
    "RUN_DATE": _moment("RUN_TS", _DAY),
    "RUN_DATE_MINUS_1": _moment("RUN_TS", _DAY, moved=".minusDays(1)"),
    "RUN_DATE_MINUS_7": _moment("RUN_TS", _DAY, moved=".minusDays(7)"),
    "job_template_version": {"type": "STRING", "internal_mode": "OPTIONAL"},
    "owner": _reserved("getFromInstance('owner')"),
    "workflow_id": _reserved("getFromInstance('workflow_id')"),
}
_STEP = {
    "workflow_instance_id": _reserved("getFromInstance('workflow_instance_id')", "LONG"),
    "step_instance_uuid": _reserved("getFromStep('step_instance_uuid')"),
    "step_attempt_id": _reserved("getFromStep('step_attempt_id')", "LONG"),
    "step_id": _reserved("getFromStep('step_id')"),
}
_LOOP: dict[str, dict[str, Any]] = {
    "loop_params": {"type": "MAP", "internal_mode": "REQUIRED", "mode": "MUTABLE_ON_START", "value": {}},
    "loop_index": {"type": "LONG", "internal_mode": "RESERVED", "value": -1},
}
_SUBWORKFLOW = {
    "subworkflow_id": {"type": "STRING", "internal_mode": "REQUIRED", "mode": "MUTABLE_ON_START"},
    "subworkflow_version": {
        "type": "STRING",
        "internal_mode": "PROVIDED",
        "mode": "MUTABLE_ON_START",
        "value": "active",
    },
}
_CONDITION = {"condition": {"type": "BOOLEAN", "internal_mode": "RESERVED", "value": False}}
_STUB = {"type": "STRING", "value": "20210101"}

DEFAULT_PARAMS = DefaultParams(
    workflow=_params(_WORKFLOW),
    step=_params(_STEP),
    by_type={
        "subworkflow": _params(_SUBWORKFLOW),
        "foreach": _params(_LOOP),
        "while": _params({**_LOOP, **_CONDITION}),
    },
    dry_run=_params({"FROM_DATE": _STUB, "TO_DATE": _STUB}),
)
"""The default params of Maestro."""
