"""A definition with its params resolved: what can be told is there, the rest stays as it is written."""

from typing import Any

import pytest
from tests.unit.definition.test_loader import workflow

from calve.definition import installed, rendered
from calve.errors import CalveError, ParamError, RequestInvalid

NOW = 1_600_000_000_000


def _rendered(jobs: str, more: str = "", **given: Any) -> dict[str, Any]:
    result = rendered(workflow(jobs, more).required(), given, installed(), clock=lambda: NOW)
    found: dict[str, Any] = result.as_json()["workflow"]
    return found


def test_params_have_their_values() -> None:
    """Those of the workflow, those of the steps, and those inside config maps."""
    found = _rendered(
        "- job: {id: a, type: Spark, spark: {script: 'SELECT ${day}'}, '!n<long>': day + 1}",
        "'!day<long>(constant)': 20260101 + 1",
    )
    assert found["params"] == {"day": {"type": "LONG", "value": 20260102, "mode": "CONSTANT"}}
    params = found["steps"][0]["step"]["params"]
    assert params["n"] == {"type": "LONG", "value": 20260103}
    assert params["spark"]["value"]["script"] == {"type": "STRING", "value": "SELECT 20260102"}


def test_a_given_param_wins_and_moves_what_depends_on_it() -> None:
    """It may be one that the workflow does not define."""
    found = _rendered("- job: {id: a, type: NoOp, x: '$b-$c'}", "a: 1\n'!b<long>': a + 1", a=5, c="new")
    assert found["params"]["b"]["value"] == 6
    assert found["params"]["c"] == {"type": "STRING", "value": "new"}
    assert found["steps"][0]["step"]["params"]["x"]["value"] == "6-new"


def test_a_given_value_takes_the_type_that_is_declared() -> None:
    """A whole number is a number with a fraction too; a text is not."""
    assert _rendered("- job: {id: a, type: NoOp}", "a: 1.5", a=2)["params"]["a"]["value"] == 2.0
    with pytest.raises(ParamError, match=r"'x' of the param \[a\] is not a DOUBLE"):
        _rendered("- job: {id: a, type: NoOp}", "a: 1.5", a="x")
    with pytest.raises(ParamError, match="cannot be given"):
        _rendered("- job: {id: a, type: NoOp}", "a: 1.5", a=None)


def test_what_only_a_run_can_tell_stays_as_it_is_written() -> None:
    """Inside loops too."""
    found = _rendered(
        """
        - job: {id: c, type: IpCapture, ip_capture: {source_tables: [db.t]}, transition: [s]}
        - job: {id: s, type: IpCommit, ip_commit: {capture_step: c}, t: '${c.icdc_table}'}
        - foreach: {id: l, loop_params: {i: [1]}, jobs: [{job: {id: n, type: NoOp, '!j<long>': i + 1, k: $two}}]}
        """,
        "two: 2",
    )
    assert found["steps"][1]["step"]["params"]["t"]["value"] == "${c.icdc_table}"
    inner = found["steps"][2]["foreach"]["steps"][0]["step"]["params"]
    assert inner["j"] == {"type": "LONG", "expression": "i + 1"}
    assert inner["k"]["value"] == "2"


def test_a_secret_is_never_shown() -> None:
    """Nor a text made with it."""
    found = _rendered(
        "- job: {id: a, type: NoOp, url: 'db://me:$password@host'}", "password<secret>: warehouse/password"
    )
    assert found["params"]["password"] == {"type": "SECRET", "value": "warehouse/password"}
    assert found["steps"][0]["step"]["params"]["url"]["value"] == "db://me:$password@host"


def test_a_dollar_in_a_value_is_no_reference_afterwards() -> None:
    """What is rendered can be rendered again."""
    found = _rendered("- job: {id: a, type: NoOp, x: costs $$5 $price}", "price: $$9")
    assert found["steps"][0]["step"]["params"]["x"]["value"] == "costs $$5 $$9"


def test_a_value_that_spoils_another_is_an_error() -> None:
    """It is raised, not shown."""
    with pytest.raises(CalveError, match="by zero"):
        _rendered("- job: {id: a, type: NoOp}", "a: 1\n'!b<long>': 5 / a", a=0)


def test_the_time_is_that_of_the_clock() -> None:
    """So that a rendering can be repeated."""
    found = _rendered("- job: {id: a, type: NoOp, d: $RUN_DATE}")
    assert found["steps"][0]["step"]["params"]["d"]["value"] == "20200913"


def test_a_given_param_that_nothing_knows_is_refused() -> None:
    """A typing mistake would show the default."""
    with pytest.raises(RequestInvalid, match=r"Workflow \S+ has no param dya") as refused:
        _rendered("- job: {id: a, type: NoOp, x: $day}", "day: x", dya="y")
    assert refused.value.remedy == "Did you mean day?"
