"""The fields of a capture step, as capture wants them."""

from typing import Any

import pytest

from calve.capture import CaptureLimits, Mode, Operation
from calve.errors import StepFailed
from calve.steps.captures.request import capture_request

USUAL: dict[str, Any] = {
    "data_operations": ["append"],
    "lease": False,
    "on_gap": "fail",
    "on_schema_change": "evolve",
}


@pytest.mark.parametrize(
    ("given", "tables", "is_mapped"),
    [
        ("db.events", {"events": "db.events"}, False),
        (["db.events"], {"events": "db.events"}, False),
        (("db.events", "db.users"), {"events": "db.events", "users": "db.users"}, True),
        ({"e": "db.events"}, {"e": "db.events"}, True),
        ('["db.events", "db.users"]', {"events": "db.events", "users": "db.users"}, True),
        ('{"e": "db.events"}', {"e": "db.events"}, True),
    ],
)
def test_tables_may_be_given_in_any_form(given: object, tables: dict[str, str], is_mapped: object) -> None:
    """A reference to a list or a map gives its text."""
    request = capture_request({**USUAL, "source_tables": given})
    assert (request.tables, request.is_mapped) == (tables, is_mapped)


@pytest.mark.parametrize("given", [[], {}, ["a.t", "b.t"], "[]"])
def test_tables_that_cannot_be_told_apart_are_refused(given: object) -> None:
    """And so is none at all."""
    with pytest.raises(StepFailed, match="each with a different name"):
        capture_request({**USUAL, "source_tables": given})


def test_all_that_can_be_said_is_passed_on() -> None:
    """In the words of capture."""
    more = {"max_files": 3, "initial": "latest", "until": 5, "capture_mode": "VIEW", "range_columns": ["day"]}
    wanted = capture_request({**USUAL, "source_tables": "t", **more, "data_operations": ["append", "overwrite"]}).wanted
    assert wanted.operations == {Operation.APPEND, Operation.OVERWRITE}
    assert (wanted.mode, wanted.ranges, wanted.limits) == (Mode.VIEW, ("day",), CaptureLimits(3, None))
    assert (wanted.start, wanted.is_start_initial, wanted.end) == ("latest", True, "5")
    assert capture_request({**USUAL, "source_tables": "t", "initial": ""}).wanted.start is None
