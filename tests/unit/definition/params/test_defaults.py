"""The params that every workflow and every step has."""

from dataclasses import dataclass
from typing import Any

import pytest
from tests.unit.definition.params.cases import params

from calve.definition.model import Params
from calve.definition.params.defaults import DEFAULT_PARAMS
from calve.definition.params.evaluation import Language, evaluate_step_params, evaluate_workflow_params
from calve.definition.params.functions import InstanceFunctions, InstanceView, StepView
from calve.definition.params.parameter import InitiatorType
from calve.definition.params.precedence import fresh_workflow_params, step_params
from calve.definition.params.scopes import StepScope
from calve.errors import ParamError

# 2020-03-08 09:30 UTC: 01:30 in Los Angeles, half an hour before the clocks go forward; 18:30 in Tokyo.
_NOW = 1_583_659_800_000


@dataclass(frozen=True)
class _Facts:
    instance: InstanceView
    own_step: StepView | None = None


def _evaluated(run: Params, **view: Any) -> dict[str, Any]:
    facts: Any = _Facts(InstanceView("w", owner="me", **view))
    merged = fresh_workflow_params(
        defaults=DEFAULT_PARAMS.workflow, definition={}, run=run, initiator=InitiatorType.MANUAL
    )
    language = Language(functions=InstanceFunctions(facts), clock=lambda: _NOW)
    found = evaluate_workflow_params(merged, workflow_id="w", language=language)
    return {name: one.result for name, one in found.items()}


def test_a_workflow_knows_its_dates_in_utc() -> None:
    """Without a trigger; what is optional and not given is not there."""
    assert _evaluated({}) == {
        "DSL_DEFAULT_TZ": "UTC",
        "WORKFLOW_CRON_TIMEZONE": "UTC",
        "RUN_TS": _NOW,
        "TARGET_RUN_DATE": "20200308",
        "TARGET_RUN_HOUR": "09",
        "DERIVED_RUN_TS": _NOW - 1_800_000,
        "DERIVED_RUN_DATE_US_PACIFIC": "20200308",
        "DERIVED_RUN_DATE_US_PACIFIC_MINUS_ONE": "20200307",
        "DERIVED_RUN_DATE_UTC": "20200308",
        "DERIVED_RUN_DATE_UTC_MINUS_ONE": "20200307",
        "DERIVED_RUN_DATE_UTC_PLUS_ONE": "20200309",
        "DERIVED_RUN_DATE_UTC_MINUS_ONE_HOUR": "20200308",
        "DERIVED_RUN_DATE_UTC_PLUS_ONE_HOUR": "20200308",
        "DERIVED_RUN_HOUR_US_PACIFIC": "01",
        "DERIVED_RUN_HOUR_UTC": "09",
        "DERIVED_RUN_HOUR_UTC_MINUS_ONE_HOUR": "08",
        "DERIVED_RUN_HOUR_UTC_PLUS_ONE_HOUR": "10",
        "LOCAL_RUN_DATE": "20200308",
        "RUN_DATE": "20200308",
        "RUN_DATE_MINUS_1": "20200307",
        "RUN_DATE_MINUS_7": "20200301",
        "owner": "me",
        "workflow_id": "w",
    }


def test_the_zone_of_the_initiator_comes_before_that_of_the_first_trigger() -> None:
    """And UTC is last."""
    first = _evaluated({}, first_time_trigger_timezone="Asia/Tokyo")
    assert (first["DSL_DEFAULT_TZ"], first["WORKFLOW_CRON_TIMEZONE"]) == ("Asia/Tokyo", "Asia/Tokyo")
    assert (first["TARGET_RUN_HOUR"], first["DERIVED_RUN_HOUR_UTC"]) == ("18", "09")
    both = _evaluated({}, first_time_trigger_timezone="Asia/Tokyo", initiator_timezone="US/Pacific")
    assert (both["DSL_DEFAULT_TZ"], both["WORKFLOW_CRON_TIMEZONE"]) == ("Asia/Tokyo", "US/Pacific")
    assert both["TARGET_RUN_HOUR"] == "01"


def test_whoever_gives_the_date_moves_all_that_is_derived() -> None:
    """The run's own time stays."""
    moved = _evaluated(params(TARGET_RUN_DATE="20200101", job_template_version="2"))
    assert moved["DERIVED_RUN_DATE_UTC_MINUS_ONE"] == "20191231"
    assert moved["RUN_DATE"] == "20200308"
    assert moved["job_template_version"] == "2"
    assert _evaluated(params(RUN_TS=0))["RUN_DATE"] == "19700101"


def test_what_is_reserved_cannot_be_given() -> None:
    """By anybody but the system."""
    with pytest.raises(ParamError, match=r"Cannot modify param with mode \[CONSTANT\] for parameter \[owner\]"):
        _evaluated(params(owner="you"))


def _step(step_type: str, definition: Params) -> dict[str, Any]:
    merged = step_params(
        defaults=DEFAULT_PARAMS.step,
        type_defaults=DEFAULT_PARAMS.of_type(step_type),
        template={},
        injected={},
        definition=definition,
        run={},
        restart={},
        initiator=InitiatorType.MANUAL,
        is_fresh=True,
    )
    facts: Any = _Facts(InstanceView("w", workflow_instance_id=3), StepView("s", 1, "uuid", 2, step_type))
    language = Language(functions=InstanceFunctions(facts))
    found = evaluate_step_params(merged, scope=StepScope("s"), language=language)
    return {name: one.result for name, one in found.items()}


def test_a_step_knows_itself() -> None:
    """Whatever its type."""
    assert _step("NoOp", {}) == {
        "workflow_instance_id": 3,
        "step_instance_uuid": "uuid",
        "step_attempt_id": 2,
        "step_id": "s",
    }


def test_a_subworkflow_step_needs_an_id() -> None:
    """Its version is the active one."""
    with pytest.raises(ParamError, match=r"\[subworkflow_id\] is a required parameter"):
        _step("subworkflow", {})
    found = _step("SUBWORKFLOW", params(subworkflow_id="other"))
    assert (found["subworkflow_id"], found["subworkflow_version"]) == ("other", "active")


def test_a_loop_has_an_index_and_a_while_loop_a_condition() -> None:
    """Before the first iteration."""
    loop = params(loop_params={"type": "MAP", "value": params(i=[1, 2])})
    found = _step("foreach", loop)
    assert (found["loop_params"], found["loop_index"]) == ({"i": [1, 2]}, -1)
    assert _step("while", loop)["condition"] is False


def test_the_caller_may_have_other_defaults() -> None:
    """By name: the others stay."""
    changed = DEFAULT_PARAMS.with_changes(
        workflow=params(DSL_DEFAULT_TZ="Asia/Tokyo"), by_type={"Sleep": params(sleep_seconds=3)}
    )
    assert changed.workflow["DSL_DEFAULT_TZ"].value == "Asia/Tokyo"
    assert len(changed.workflow) == len(DEFAULT_PARAMS.workflow)
    assert changed.of_type("SLEEP")["sleep_seconds"].value == 3
    assert changed.of_type("foreach") == DEFAULT_PARAMS.of_type("foreach")
    assert DEFAULT_PARAMS.with_changes() == DEFAULT_PARAMS
    assert changed.with_changes(step=params(a=1), dry_run=params(b=2)).dry_run.keys() == {"FROM_DATE", "TO_DATE", "b"}
