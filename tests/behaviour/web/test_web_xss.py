"""Hostile strings in every field that a person or a table can name are text on every page."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient
from tests.hostile_project import DANGEROUS, HOSTILE, MARKS, addresses, hostile_project, seen
from tests.pages import check_fragment, parse
from tests.projects import WebProject, crawl

from calve.app import web_on


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebProject]:
    """Give a project with hostile names in it."""
    with hostile_project(tmp_path_factory.mktemp("project")) as made:
        yield made


@pytest.fixture(scope="module")
def client(made: WebProject) -> Iterator[TestClient]:
    """Give a browser at the server of it."""
    app = web_on(made.project, "127.0.0.1")
    with TestClient(app, base_url="http://127.0.0.1", headers={"accept": "text/html"}) as client:
        yield client


def test_what_people_and_tables_name_is_text_on_every_page(client: TestClient, made: WebProject) -> None:
    """No element, attribute or address comes of it, and what is shown is what was written."""
    shown = set[str]()
    for address, answer in crawl(client, ["/", *addresses(made)]):
        page = parse(answer.text)
        check_fragment(page)
        assert [one.tag for one in page.elements if one.tag in DANGEROUS] == [], address
        hrefs = {one.attributes[name] for one in page.elements for name in ("href", "action") if name in one.attributes}
        assert [one for one in hrefs if not one.startswith(("/", "#", "?")) and "://" in one[:12]] == [], address
        shown |= seen(page.one("main").text)
    assert shown == MARKS.keys()


@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_is_asked_for_is_text_too(client: TestClient, made: WebProject, hostile: str) -> None:
    """Every page takes anything in its query and in its path."""
    for address in made.addresses():
        names = ("search", "q", "tag", "owner", "step", "tab", "view", "find", "consumer", "column", "cursor", "next")
        answer = client.get(address, params=dict.fromkeys(names, hostile))
        if answer.headers["content-type"].startswith("text/html"):
            page = parse(answer.text)
            check_fragment(page)
            assert [one.tag for one in page.elements if one.tag in DANGEROUS] == [], address
        assert answer.status_code < 500, address
