"""The interface against its own description: whatever is sent, the answer is one that the description knows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance
from tests.engines import BUSY, Playground
from tests.servers import Site, services_on, site_on

from calve.app import captures_on
from calve.lake import Lake
from calve.settings import load

JOB = "Workflow:\n  id: w\n  run_strategy: parallel\n  jobs:\n    - job: {id: job, type: Sleep}\n"
CHECKS: list[Any] = [not_a_server_error, content_type_conformance, response_schema_conformance]
APART = {"get_events", "get_logs"}
"""What might not end: they have tests of their own."""


@pytest.fixture
def site(playground: Playground, tmp_path: Path) -> Iterator[Site]:
    """Give a server with a lake, a workflow and an instance that runs."""
    lake = Lake(load(tmp_path, {}))
    services = services_on(playground, captures=captures_on(lake, playground.store))
    with site_on(playground, services) as site:
        site.push(JOB)
        playground.script.parts["job"] = BUSY
        site.start()
        playground.settle()
        yield site
    lake.close()


def test_every_answer_is_as_described(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """No request that fits the description, or nearly does, brings the server down or a surprise back."""
    monkeypatch.setattr("calve.operations.steps.wait_for_effect.__defaults__", (0.0,))
    schema = schemathesis.openapi.from_dict(site.get("/openapi.json"))
    found: list[Any] = list(schema.get_all_operations())
    operations = [each.ok() for each in found]
    assert len(operations) > 60
    for operation in operations:
        if operation.definition.raw["operationId"] not in APART:
            _tried(site, operation)


def _tried(site: Site, operation: Any) -> None:
    cases = operation.as_strategy()
    negative = operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)

    @given(st.one_of(cases, negative))
    @settings(
        max_examples=5,
        phases=[Phase.explicit, Phase.generate],
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def attempt(case: Any) -> None:
        if "workflow_id" in (case.path_parameters or {}):
            case.path_parameters["workflow_id"] = "w"
        case.call_and_validate(base_url=site.url, checks=CHECKS)

    attempt()
