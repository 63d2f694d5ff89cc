"""Capture steps: what they give, and that a commit names one."""

from dataclasses import fields

from tests.unit.definition.placing import only
from tests.unit.definition.step_types.steps import step

from calve.capture import CaptureReport, Mode, OnGap, OnSchemaChange, Operation, TableReport
from calve.definition.document import Node
from calve.definition.model import ParamType
from calve.definition.problems import Problems
from calve.definition.step_types import STEP_TYPES, Outputs, StepTypes, check_references

TYPES = StepTypes()


def _capture(**fields: object) -> Outputs:
    return TYPES.outputs(step("IpCapture", ip_capture=fields))


def test_a_capture_of_one_table_gives_its_table_and_ranges() -> None:
    """All of it on the step itself."""
    outputs = _capture(source_tables=["db.events"], range_columns=["day", "at.hour"])
    assert {
        "icdc_table",
        "relation",
        "deletes_table",
        "changed",
        "range_predicate",
        "day_lower",
        "day_upper",
        "at_hour_lower",
        "at_hour_upper",
        "rows",
        "records",
        "files",
        "bytes",
        "capture_id",
    } <= outputs.params.keys()
    assert outputs.params["changed"].type is ParamType.BOOLEAN
    assert "events" not in outputs.params
    assert not outputs.is_open


def test_a_capture_of_several_tables_gives_a_map_for_each() -> None:
    """What is true of all stays on the step; what belongs to one table stands under its alias."""
    outputs = _capture(source_tables=["db.events", "`db`.`users`"], range_columns=["day"])
    assert {"events", "users", "changed", "day_lower", "capture_id"} <= outputs.params.keys()
    assert "icdc_table" not in outputs.params
    inner = {output.name for output in outputs.params["events"].params}
    assert {"icdc_table", "relation", "changed", "day_lower"} <= inner
    assert "capture_id" not in inner


def test_the_map_form_gives_maps_by_its_own_names() -> None:
    """Even for one table, which then has both."""
    outputs = _capture(source_tables={"e": "db.events"})
    assert {"e", "icdc_table"} <= outputs.params.keys()


def test_tables_or_columns_that_are_not_known_yet_leave_the_outputs_open() -> None:
    """What can be told is told."""
    for outputs in (
        _capture(source_tables="${tables}"),
        _capture(source_tables=["${table}"]),
        _capture(source_tables=["t"], range_columns=["${column}"]),
        _capture(source_tables=["t"], range_columns="${columns}"),
        _capture(),
    ):
        assert outputs.is_open
        assert "icdc_table" in outputs.params


def test_the_one_step_form_gives_the_same() -> None:
    """ICDC has one table."""
    outputs = TYPES.outputs(step("ICDC", icdc={"source_table": "db.t", "range_columns": ["d"]}))
    assert {"icdc_table", "d_lower", "changed"} <= outputs.params.keys()
    assert TYPES.outputs(step("ICDC", icdc={"source_table": "${t}"})).is_open


def _choices(field: str) -> set[str]:
    return set(STEP_TYPES["IpCapture"].known()[field].choices)


def test_a_capture_step_offers_what_capture_offers() -> None:
    """The same operations and policies; ICDC is its word for a table."""
    assert _choices("data_operations") == set(Operation) - {Operation.REPLACE}
    assert _choices("on_gap") == set(OnGap)
    assert _choices("on_schema_change") == set(OnSchemaChange)
    assert {"table" if mode == "ICDC" else mode.lower() for mode in _choices("capture_mode")} == set(Mode)


def test_the_outputs_are_named_as_capture_reports_them() -> None:
    """But for those that the step makes of a report."""
    reported = {item.name for report in (CaptureReport, TableReport) for item in fields(report)}
    made = {"rows", "range_predicate"}
    assert _capture(source_tables=["t"]).params.keys() - made <= reported


def _references(*steps: Node) -> Problems:
    problems = Problems()
    check_references(steps, problems)
    return problems


CAPTURE = step("IpCapture", "capture_change", ip_capture={"source_tables": ["t"]})


def test_a_commit_of_a_capture_step_is_fine() -> None:
    """Of the older form too."""
    commit = step("IpCommit", "c", ip_commit={"capture_step": "capture_change"})
    assert not _references(CAPTURE, commit).found
    problems = Problems()
    TYPES.check_references([CAPTURE, commit], problems)
    assert not problems.found
    old = step("ICDC", "old", icdc={})
    assert not _references(old, step("IpCommit", "c", ip_commit={"capture_step": "old"})).found
    assert not _references(old, step("IpCommit", "c")).found


def test_a_commit_of_no_step_names_the_nearest() -> None:
    """And the capture is then not committed."""
    commit = step("IpCommit", "c", ip_commit={"capture_step": "capture_chnage"})
    error, warning = _references(CAPTURE, commit)
    assert error.code == "unknown_capture_step"
    assert error.message == "ip_commit.capture_step: there is no step capture_chnage"
    assert error.hint == "did you mean capture_change?"
    assert warning.code == "capture_uncommitted"
    assert warning.hint == "add a step of type IpCommit with ip_commit: {capture_step: capture_change}"


def test_a_commit_of_another_kind_of_step_is_told_so() -> None:
    """The id is right, the step is not."""
    commit = step("IpCommit", "c", ip_commit={"capture_step": "job"})
    problem = only(_references(step("NoOp", "job"), commit))
    assert problem.message == "ip_commit.capture_step: job is not an IpCapture step"
    assert problem.hint == "add an IpCapture step"


def test_a_commit_by_a_reference_may_be_of_any_capture() -> None:
    """Nothing can be said before the run."""
    commit = step("IpCommit", "c", ip_commit={"capture_step": "${which}"})
    assert not _references(CAPTURE, commit).found
