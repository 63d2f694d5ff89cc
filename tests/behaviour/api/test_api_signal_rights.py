"""Who may announce signals by a roundabout way: by a definition, or as the work of a step."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.access_setup import AccessSetup, bearer
from tests.engines import BUSY, Playground
from tests.servers import Site, site_on

from calve.api.access import guarded


@pytest.fixture
def site(playground: Playground, access: AccessSetup) -> Iterator[Site]:
    """Give a server where everybody has to sign in."""
    with site_on(playground, **guarded(access.control())) as site:
        yield site


@pytest.mark.parametrize(
    ("sent", "status"), [("sales.ready", 200), ("finance.ready", 403), ("ready", 403), ("sales.${x}", 403)]
)
def test_a_definition_cannot_announce_signals_without_permission(
    site: Site, access: AccessSetup, sent: str, status: int
) -> None:
    """A signal of another namespace, or one that only a run names, takes a right to announce it."""
    inner = f"{{job: {{id: a, type: NoOp, signal_outputs: {{definitions: [{{name: '{sent}'}}]}}}}}}"
    loop = f"{{foreach: {{id: loop, ranges: {{i: {{from: 0, to: 2}}}}, jobs: [{inner}]}}}}"
    definition = f"Workflow: {{id: sales.w, x: a, jobs: [{loop}]}}"
    headers = bearer(access.token("editor@sales")) | {"content-type": "application/yaml"}
    answer = site.client.post("/api/v3/workflows/yaml", content=definition, headers=headers)
    assert answer.status_code == status, answer.text


@pytest.mark.parametrize(("sent", "status"), [("sales.ready", 200), ({"value": "finance.ready"}, 403)], ids=str)
def test_outputs_of_a_step_cannot_announce_signals_without_permission(
    site: Site, access: AccessSetup, playground: Playground, sent: Any, status: int
) -> None:
    """Who hands over outputs says which signals the step sends, and needs the right to announce them."""
    playground.push("Workflow: {id: sales.w, jobs: [{job: {id: a, type: Sleep}}]}")
    playground.script.parts["a"] = BUSY
    attempt = playground.state.attempts(playground.start("sales.w").uuid)[0]
    artifacts = {"maestro_dynamic_output": {"signal_outputs": [{"name": sent}]}}
    body = {"step_instance_uuid": attempt.uuid, "artifacts": artifacts}
    headers = bearer(access.token("runner@sales"))
    assert site.client.put("/api/v3/output-data", json=body, headers=headers).status_code == status
    found = playground.state.attempt(attempt.uuid)
    assert found is not None
    assert ("maestro_dynamic_output" in found.artifacts) is (status == 200)
