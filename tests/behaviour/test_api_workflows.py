"""Workflows and their instances through REST, on a real server."""

from collections.abc import Iterator

import pytest
from tests.engines import Playground
from tests.servers import Site, site_on

JOB = """
Workflow:
  id: w
  day: '20260101'
  jobs:
    - job:
        id: job
        type: NoOp
"""


@pytest.fixture
def site(playground: Playground) -> Iterator[Site]:
    """Give a server on an empty state database."""
    with site_on(playground) as site:
        yield site


def test_a_definition_becomes_a_version(site: Site) -> None:
    """A push answers with the version, as Maestro does."""
    pushed = site.push(JOB)
    assert pushed["metadata"]["workflow_id"] == "w"
    assert pushed["metadata"]["workflow_version_id"] == 1
    assert pushed["is_active"] is True
    assert site.get("/workflows/w/versions/latest") == pushed


def test_an_instance_is_started_and_seen(site: Site) -> None:
    """A start answers with the instance, which can be followed to its end."""
    site.push(JOB)
    started = site.start(run_params={"day": {"type": "STRING", "value": "20260202"}})
    assert started["status"] == "CREATED"
    assert started["workflow_instance_id"] == 1
    site.playground.settle()
    seen = site.get("/workflows/w/instances/1")
    assert seen["status"] == "SUCCEEDED"
    assert seen["params"]["day"]["evaluated_result"] == "20260202"
    assert seen == site.get("/workflows/w/instances/1/runs/1")


def test_what_is_not_there_is_a_problem_document(site: Site) -> None:
    """Errors have Maestro's body, and that of RFC 9457 where the caller takes it."""
    missing = site.get("/workflows/nothing/versions/active", 404)
    assert missing["status"] == "NOT_FOUND"
    assert missing["code"] == "workflow_missing"
    problem = site.get("/workflows/nothing/versions/active", 404, headers={"accept": "application/problem+json"})
    assert problem["status"] == 404
    assert problem["type"] == "urn:calve:error:workflow_missing"
    assert problem["detail"] == missing["message"]
