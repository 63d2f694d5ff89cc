"""Lists with much that their caller may not see: no request looks through all of it."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.access_setup import AccessSetup, bearer
from tests.engines import Playground
from tests.servers import Site, site_on

from calve.api.access import guarded
from calve.operations import logs, pages, signals, triggers
from calve.store import Store
from calve.triggers import TriggerType, WantedTrigger
from calve.triggers.signals import Signals

pytestmark = pytest.mark.each_store

MANY = 30
JOB = "Workflow: {{id: {}, jobs: [{{job: {{id: a, type: NoOp}}}}]}}"


@pytest.fixture
def site(playground: Playground, access: AccessSetup, store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Give a server that looks through a little at a time, with something to see among much of others."""
    for module, name, value in (
        (pages, "LOOKS", 2),
        (logs, "_EVENTS", 5),
        (signals, "_PART", 5),
        (triggers, "_PART", 5),
    ):
        monkeypatch.setattr(module, name, value)
    board = Signals(playground.state, playground.clock)
    for number in range(MANY):
        board.announce("mine.ready" if number == MANY // 2 else "others.ready", {"n": number})
        workflow_id = f"mine.w{number}" if number == MANY // 2 else f"a.w{number}"
        version = playground.push(JOB.format(workflow_id))
        wanted = [WantedTrigger("time:0", TriggerType.TIME, {"type": "CRON", "cron": "0 0 * * *"})]
        store.triggers.sync(workflow_id, version.version_id, wanted, 0)
    playground.start(f"mine.w{MANY // 2}")
    for number in range(3):
        playground.start(f"a.w{number}")
    with site_on(playground, **guarded(access.control())) as site:
        yield site


@pytest.mark.parametrize("path", ["signals", "triggers", "events"])
def test_a_list_is_searched_in_parts(site: Site, access: AccessSetup, path: str) -> None:
    """A page may be empty, and say where to look on; all pages together hold what the caller may see."""
    headers = bearer(access.token("viewer@mine"))
    pages: list[dict[str, Any]] = []
    cursor = ""
    while not pages or pages[-1]["page_info"]["has_next_page"]:
        answer = site.client.get(f"/api/v3/{path}", params={"cursor": cursor}, headers=headers)
        assert answer.status_code == 200, answer.text
        pages.append(answer.json())
        cursor = pages[-1]["page_info"]["end_cursor"]
        assert len(pages) < MANY
    assert len(pages) > 1
    found = [one for page in pages for one in page["elements"]]
    names = {one.get("name", one.get("workflow_id")) for one in found}
    assert names == {"mine.ready" if path == "signals" else f"mine.w{MANY // 2}"}
