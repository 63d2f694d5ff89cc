"""A consumer belongs to the namespace of its workflow."""

import json

import pytest

from calve.definition import installed, load

CAPTURE = "{{job: {{id: c, type: IpCapture, ip_capture: {{source_tables: db.t, consumer: {!r}}}}}}}"
OLD = "{{job: {{id: c, type: ICDC, icdc: {{source_table: db.t, target_table: db.c, consumer: {!r}}}}}}}"
LOOP = f"{{{{foreach: {{{{id: l, ranges: {{{{i: {{{{from: 0, to: 1}}}}}}}}, jobs: [{CAPTURE}]}}}}}}}}"


def refusals(text: str) -> list[str]:
    """Return what is said of consumers."""
    problems = load(text, name="test", vocabulary=installed()).problems
    return [f"{problem.message}; {problem.hint}" for problem in problems if problem.code == "foreign_consumer"]


@pytest.mark.parametrize("job", [CAPTURE, OLD, LOOP])
@pytest.mark.parametrize("consumer", ["b.etl/capture", "etl/capture", "b.daily", "ab.etl/c", "b.a.etl/c"])
def test_a_consumer_of_another_namespace_is_refused(job: str, consumer: str) -> None:
    """Wherever the step stands."""
    (said,) = refusals(f"Workflow: {{id: a.w, jobs: [{job.format(consumer)}]}}")
    assert said == (
        f"the consumer {consumer} is not in the namespace of the workflow; omit consumer, or start its name with a."
    )


@pytest.mark.parametrize("job", [CAPTURE, OLD, LOOP])
@pytest.mark.parametrize("consumer", ["a.etl/capture", "a.daily", "a.sub.etl/c", "${x}", "b.${x}", "daily"])
def test_a_consumer_of_the_own_namespace_is_taken(job: str, consumer: str) -> None:
    """Those below it too; what only a run can name, and what belongs to no namespace, the run checks."""
    assert refusals(f"Workflow: {{id: a.w, x: y, jobs: [{job.format(consumer)}]}}") == []


@pytest.mark.parametrize("consumer", ["b.etl/capture", "daily"])
def test_a_workflow_without_a_namespace_may_name_any_consumer(consumer: str) -> None:
    """Only those who may push everywhere can push it."""
    assert refusals(f"Workflow: {{id: w, jobs: [{CAPTURE.format(consumer)}]}}") == []


def test_a_consumer_in_a_map_of_texts_is_found_too() -> None:
    """As canonical documents may have it."""
    param = {"type": "STRING_MAP", "value": {"source_tables": "db.t", "consumer": "b.etl/c"}}
    step = {"step": {"id": "c", "type": "IpCapture", "params": {"ip_capture": param}}}
    assert len(refusals(json.dumps({"workflow": {"id": "a.w", "steps": [step]}}))) == 1
