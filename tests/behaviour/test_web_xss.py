"""Hostile strings in every field that a person or a table can name are text on every page."""

import json
from collections.abc import Iterator
from contextlib import suppress

import pytest
from starlette.testclient import TestClient
from tests.accesses import LOCAL, PASSWORD
from tests.pages import check_fragment, parse
from tests.projects import SOURCE, WebProject, crawl, filled_project

from calve.access import parse_grants
from calve.app import web_on
from calve.capture import Wanted
from calve.engine import Outcome, State, StepContext
from calve.errors import CalveError

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg onload=alert(1)>",
    "</textarea></title></pre></script><iframe src=//evil.example>",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt;<!--",
    "\u202e\u2066<b>",
]
_TEXT = "".join(HOSTILE)
_FIELDS = ("owner", "tag", "description", "name", "step", "value", "loop", "question", "error", "log", "partition")
_MARKS = {name: f"xss-{name}{_TEXT}" for name in _FIELDS}
_MARKS["tag"] = "xss-tag javascript:alert(1) '-alert(1)-' {{7+7}}&lt"
"""A tag has letters that are allowed, of which these are the worst."""
_MARKS["partition"] = f"xss-partition{HOSTILE[1]}"  # a folder has the name
_DANGEROUS = {"iframe", "img", "object", "embed", "base"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebProject]:
    """Give a project with hostile names in it."""
    with filled_project(tmp_path_factory.mktemp("project"), commits=4, runs=2) as filled:
        _fill(filled)
        yield filled


def _fill(made: WebProject) -> None:
    import pyarrow as pa

    playground, project = made.playground, made.project
    playground.script.parts |= {"bad": _failing, "item": _failing}
    for text in (_definition(), _asking()):
        playground.push(text)
    playground.start("xss.flow")
    playground.start("xss.ask")
    catalog = project.lake.catalog("lake").pyiceberg()
    table = catalog.load_table(SOURCE)
    table.append(pa.table({"id": [1], "day": [_MARKS["partition"]]}, schema=table.schema().as_arrow()))
    project.captures.capture([SOURCE], f"xss{_TEXT}"[:100], Wanted())
    for try_one in (
        lambda: project.accounts.add_user(_TEXT[:60], PASSWORD, parse_grants(["viewer"]), LOCAL),
        lambda: project.accounts.create_token(_TEXT[:60], parse_grants(["viewer"]), LOCAL, life=None),
        lambda: project.signals.announce("xss", {"value": _TEXT}, payload={"value": _TEXT}),
    ):
        with suppress(CalveError):  # a name that the rules refuse does no harm either
            try_one()


def _failing(context: StepContext) -> Outcome:
    context.log(f"{_MARKS['log']}\n")
    return Outcome(State.FATAL_ERROR, message=_MARKS["error"])


def _definition() -> str:
    step = {"id": "bad", "type": "Shell", "description": _MARKS["step"], "given<string>": _MARKS["value"]}
    loop = {
        "id": "loop",
        "loop_params": {"one": [_MARKS["loop"], "b"]},
        "jobs": [{"job": {"id": "item", "type": "Shell", "shell": {"script": "true"}}}],
    }
    workflow = {
        "id": "xss.flow",
        "name": _MARKS["name"],
        "description": _MARKS["description"],
        "owner": _MARKS["owner"],
        "tags": [_MARKS["tag"]],
        "jobs": [{"job": {**step, "shell": {"script": "true"}}}, {"foreach": loop}],
    }
    return json.dumps({"Workflow": workflow})


def _asking() -> str:
    ask = {"id": "ok", "type": "Approval", "approval": {"message": _MARKS["question"]}}
    return json.dumps({"Workflow": {"id": "xss.ask", "jobs": [{"job": ask}]}})


@pytest.fixture(scope="module")
def client(made: WebProject) -> Iterator[TestClient]:
    """Give a browser at the server of it."""
    app = web_on(made.project, "127.0.0.1")
    with TestClient(app, base_url="http://127.0.0.1", headers={"accept": "text/html"}) as client:
        yield client


def test_what_people_and_tables_name_is_text_on_every_page(client: TestClient, made: WebProject) -> None:
    """No element, attribute or address comes of it, and what is shown is what was written."""
    made.names.update(workflow_id="xss.flow", instance_id="1", loop="loop", step_id="bad")
    tabs = [
        f"/workflows/xss.flow/instances/1?step=bad&tab={tab}" for tab in ("cause", "about", "log", "params", "attempts")
    ]
    shown = ""
    for address, answer in crawl(client, ["/", *tabs, *made.addresses()]):
        page = parse(answer.text)
        check_fragment(page)
        assert [one.tag for one in page.elements if one.tag in _DANGEROUS] == [], address
        hrefs = {one.attributes[name] for one in page.elements for name in ("href", "action") if name in one.attributes}
        assert [one for one in hrefs if not one.startswith(("/", "#", "?")) and "://" in one[:12]] == [], address
        shown += "".join(one.text for one in page.all("main"))
    seen = {name for name in _MARKS if f"xss-{name}{HOSTILE[0]}" in shown}
    assert seen >= {"owner", "error", "loop", "question", "value"}, seen
    assert _MARKS["tag"] in shown
    assert _MARKS["partition"] in shown


@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_is_asked_for_is_text_too(client: TestClient, made: WebProject, hostile: str) -> None:
    """Every page takes anything in its query and in its path."""
    for address in made.addresses():
        names = ("search", "q", "tag", "owner", "step", "tab", "view", "find", "consumer", "column", "cursor", "next")
        answer = client.get(address, params=dict.fromkeys(names, hostile))
        if answer.headers["content-type"].startswith("text/html"):
            page = parse(answer.text)
            check_fragment(page)
            assert [one.tag for one in page.elements if one.tag in _DANGEROUS] == [], address
        assert answer.status_code < 500, address
