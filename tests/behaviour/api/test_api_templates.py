"""Job templates through REST, as in Maestro: pushed, used, replaced, deleted."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.access_setup import AccessSetup, bearer
from tests.engines import Playground
from tests.servers import Site, site_on

from calve.api.access import guarded
from calve.store import Store

USER = "Workflow: {id: w, jobs: [{job: {id: a, type: nap}}, {job: {id: b, type: nap, type_version: v2}}]}"
YAML = """
owner: ann
status: stable
support: us
channel: "#naps"
definition:
  job_type: nap
  step_type: Sleep
  version: v2
  inherit_from: {nap: default}
  params:
    deep: {type: BOOLEAN, value: true}
"""
PIECE = """
owner: ann
status: stable
support: us
definition: {job_type: twice, jobs: [{job: {id: one, type: nap}}, {job: {id: two, type: NoOp}}], dag: sequential}
"""


@pytest.fixture
def site(playground: Playground) -> Iterator[Site]:
    """Give a server."""
    with site_on(playground) as site:
        yield site


def template(seconds: int) -> dict[str, Any]:
    """Return a template in Maestro's JSON."""
    params = {"sleep_seconds": {"type": "LONG", "value": seconds}}
    definition = {"job_type": "nap", "step_type": "Sleep", "params": params}
    return {"owner": "ann", "status": "stable", "support": "us", "definition": definition}


def names(site: Site, version: str = "default") -> list[str]:
    """Return the types of the templates in a version."""
    return [one["definition"]["job_type"] for one in site.get(f"/job-templates?version={version}")]


def push_yaml(site: Site, text: str, status: int = 200) -> Any:
    """Push a template in YAML."""
    headers = {"content-type": "application/yaml"}
    return site.ask("POST", "/job-templates/yaml", status, content=text, headers=headers)


def test_templates_are_kept_by_type_and_version(site: Site, playground: Playground) -> None:
    """Those that are installed stand beside them."""
    assert {"incremental", "write_audit_publish"} <= set(names(site))
    pushed = site.post("/job-templates", template(5))
    assert pushed["metadata"] == {
        "owner": "ann",
        "status": "stable",
        "support": "us",
        "version_author": "local",
        "create_time": playground.clock(),
    }
    assert (pushed["definition"]["job_type"], pushed["definition"]["version"]) == ("nap", "default")
    assert push_yaml(site, YAML)["metadata"]["extra_info"] == {"channel": "#naps"}
    assert site.get("/job-templates/nap") == pushed
    assert site.get("/job-templates/nap?version=v2")["definition"]["inherit_from"] == {"nap": "default"}
    assert names(site, "v2") == ["nap"]
    assert names(site, "*") == [*names(site), "nap"]
    for one in site.get("/job-templates"):
        assert site.get(f"/job-templates/{one['definition']['job_type']}") == one
    site.get("/job-templates/nothing", 404)
    site.get("/job-templates/nap?version=v3", 404)


def test_steps_take_the_template_as_it_stands_when_they_begin(site: Site, playground: Playground) -> None:
    """With what it inherits; a push of the same version replaces it, for workflows that were pushed before, too."""
    assert "nap" in site.push(USER, 400)["message"]
    site.post("/job-templates", template(5))
    push_yaml(site, YAML)
    step = site.push(USER)["workflow"]["steps"][0]["step"]
    assert (step["type"], step["sub_type"]) == ("Sleep", "nap")
    run = playground.start()
    assert [playground.result(run, step_id, "sleep_seconds") for step_id in "ab"] == [5, 5]
    assert playground.result(run, "b", "deep") is True
    site.post("/job-templates", template(7))
    run = playground.start()
    assert [playground.result(run, step_id, "sleep_seconds") for step_id in "ab"] == [7, 7]


def test_a_template_of_steps_becomes_the_steps(site: Site, playground: Playground) -> None:
    """When a workflow with it is pushed."""
    site.post("/job-templates", template(5))
    push_yaml(site, PIECE)
    site.push("Workflow: {id: w, jobs: [{template: {id: t, type: twice}}]}")
    run = playground.start()
    assert len(playground.statuses(run)) == 2


def test_templates_are_deleted_in_one_version_or_all(site: Site) -> None:
    """The answer says how many there were, as Maestro does; those that are installed stay."""
    site.post("/job-templates", template(5))
    push_yaml(site, YAML)
    said = site.delete("/job-templates/nap?version=v2")["message"]
    assert said == "Removed [1] job template versions for job type: [nap][v2]"
    site.get("/job-templates/nap?version=v2", 404)
    push_yaml(site, YAML)
    assert "[2]" in site.delete("/job-templates/nap")["message"]
    assert "[0]" in site.delete("/job-templates/nap")["message"]
    assert "is built in" in site.delete("/job-templates/incremental", 400)["message"]


def test_a_template_that_is_used_stays(site: Site) -> None:
    """By an active version, or by a template that inherits from it: steps would run without its params."""
    site.post("/job-templates", template(5))
    push_yaml(site, YAML)
    assert "the template nap v2" in site.delete("/job-templates/nap?version=default", 400)["message"]
    assert "the template heir v2" in push_yaml_heir(site)
    for name in "abcdef":
        site.push(USER.replace("id: w", f"id: {name}").replace(", type_version: v2", ""))
    site.push("Workflow: {id: other, nap: nap, jobs: [{job: {id: nap, type: NoOp}}]}")
    refused = site.delete("/job-templates/nap", 400)
    assert refused["message"] == "The job template nap is used by a, b, c, d, e and 2 more."
    site.delete("/job-templates/nap?version=default", 400)
    site.delete("/job-templates/heir")
    assert "[1]" in site.delete("/job-templates/nap?version=v2")["message"]
    for name in "abcdef":
        site.put(f"/workflows/{name}/actions/deactivate")
    assert "[1]" in site.delete("/job-templates/nap")["message"]


def test_a_template_stays_while_an_instance_may_come_to_it(site: Site) -> None:
    """Also one of a version that is no longer active: its steps would run without the template's params."""
    site.post("/job-templates", template(5))
    site.push(USER.replace(", type_version: v2", ""))
    site.start()
    site.push("Workflow: {id: w, jobs: [{job: {id: nap, type: NoOp}}]}")
    assert "used by w." in site.delete("/job-templates/nap", 400)["message"]
    site.put("/workflows/w/instances/1/actions/kill")
    site.playground.settle()
    assert "[1]" in site.delete("/job-templates/nap")["message"]


def push_yaml_heir(site: Site) -> str:
    """Push a template that inherits from another one; return why that one cannot be deleted."""
    push_yaml(site, YAML.replace("job_type: nap", "job_type: heir").replace("{nap: default}", "{nap: v2}"))
    return str(site.delete("/job-templates/nap?version=v2", 400)["message"])


def test_a_template_that_could_not_be_used_is_refused(site: Site) -> None:
    """With every problem, and nothing is kept."""
    assert site.post("/job-templates", {}, 400)["code"] == "definition_invalid"
    site.post("/job-templates", template(5) | {"definition": {"job_type": "nap", "step_type": "Nothing"}}, 400)
    assert "inherits" in push_yaml(site, YAML.replace("{nap: default}", "{nap: v2}"), 400)["message"]
    push_yaml(site, YAML.replace("nap", "incremental"), 400)
    site.get("/job-templates/nap", 404)


def test_only_who_may_edit_everything_changes_templates(playground: Playground, store: Store) -> None:
    """They change what workflows of all do; who did it is written down."""
    access = AccessSetup(store.access)
    with site_on(playground, **guarded(access.control())) as site:
        for grant in ("viewer", "runner", "editor@sales"):
            headers = bearer(access.token(grant))
            site.post("/job-templates", template(5), 403, headers=headers)
            site.delete("/job-templates/nap", 403, headers=headers)
            site.get("/job-templates", headers=headers)
        site.post("/job-templates", template(5), headers=bearer(access.token("editor")))
        site.delete("/job-templates/nap", headers=bearer(access.token("editor")))
    acts = [(action, result) for _, action, result in access.acts()]
    assert acts.count(("push_job_template", "denied")) == 3
    assert {("push_job_template", "ok"), ("delete_job_template", "ok")} <= set(acts)
