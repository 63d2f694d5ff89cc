"""Every action that a page offers, performed as people do it: by its button and its dialog; REST shows what it did."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect
from tests.access_setup import PASSWORD
from tests.browser.page_checks import ALL, DESK, PHONE, Site, Watched, reveal, watched
from tests.engines import BUSY, DONE, FATAL_ERROR, live
from tests.http_receiver import Receiver, receiving
from tests.pages import parse
from tests.projects import SOURCE, WebProject, crawl, filled_project

from calve.capture import Wanted
from calve.engine import Breakpoint
from calve.operations import declared

CHANGES = {one.id for _, one in declared() if not one.is_read}
NO_BUTTON = {
    "push_workflow": "definitions are files, which calve push sends",
    "push_workflow_yaml": "the same",
    "validate_workflow": "the same",
    "validate_workflow_yaml": "the same",
    "push_job_template": "the same in JSON",
    "start_batch": "for programs",
    "put_output_data": "for steps",
    "table_changed": "for catalogs",
    "set_valid_through": "for programs that write tables",
    "capture": "for programs that process what they capture",
    "plan_capture": "changes nothing",
    "plan_restart": "changes nothing: a restart's dialog shows it",
    "plan_step_restart": "the same",
    "resume_attempt": "resume_step does the same for the newest attempt",
    "stop_run": "stop_instance does the same for the latest run",
    "kill_run": "kill_instance does",
    "unblock_run": "unblock_instance does",
    "prune": "up and the scheduler do it by themselves; calve prune",
    "collect_garbage": "the same; calve gc",
}
"""Operations that change something, or are asked by POST, and that no page offers: why."""
_TEMPLATE = """
{{owner: ann, status: stable, support: team,
  definition: {{job_type: {name}, step_type: Sleep, params: {{sleep_seconds: {{type: LONG, value: 1}}}}}}}}
"""


@dataclass
class Stage:
    """A project whose instances move by themselves, its server, and a page in a browser."""

    made: WebProject
    site: Watched
    api: httpx.Client
    receiver: Receiver

    def workflow(
        self, name: str, part: Any = DONE, *, kind: str = "{type: Shell, shell: {script: x}}", rule: str = ""
    ) -> str:
        """Push a workflow with one step, which has the workflow's name and does something; return its address."""
        playground = self.made.playground
        playground.script.parts[name] = part
        text = f"{{Workflow: {{id: acts.{name}, run_strategy: {rule or 'parallel'}, day: '20260101', jobs: [{{job: "
        playground.push(f"{text}{kind.replace('{', f'{{id: {name}, ', 1)}}}]}}}}")
        return f"/workflows/acts.{name}"

    def instance(self, name: str, part: Any = DONE, status: str = "IN_PROGRESS", **given: Any) -> str:
        """Start an instance of such a workflow; return its address, once it stands as it is to."""
        workflow = self.workflow(name, part, **given)
        self.made.playground.begin(f"acts.{name}")
        self.shows(f"{workflow}/instances/1", lambda one: one["status"] == status)
        at_step = ("RUNNING", "PAUSED", "WAITING_FOR_SIGNALS")
        if status == "IN_PROGRESS":
            self.shows(f"{workflow}/instances/1/steps/{name}", lambda one: one["runtime_state"]["status"] in at_step)
        return f"{workflow}/instances/1"

    def paused(self, name: str) -> str:
        """Start an instance that stands at a breakpoint; return its address."""
        self.workflow(name)
        self.made.playground.engine.pause(Breakpoint(f"acts.{name}", name))
        return self.instance(name)

    def capture(self, consumer: str, *, is_committed: bool = False) -> str:
        """Capture the table; return the capture's id."""
        captures = self.made.project.captures
        capture_id = captures.capture([SOURCE], consumer, Wanted()).capture_id or ""
        if is_committed:
            captures.commit(capture_id)
        return capture_id

    def put(self, method: str, path: str, **given: Any) -> None:
        """Change something by REST."""
        answer = self.api.request(method, f"/api/v3{path}", **given)
        assert answer.is_success, answer.text

    def shows(self, path: str, what: Callable[[Any], object]) -> None:
        """Wait until REST shows it."""
        seen: list[Any] = []

        def is_shown() -> bool:
            seen[:] = [self.api.get(f"/api/v3{path}").json()]
            return bool(what(seen[0]))

        until = time.monotonic() + 10
        while not is_shown():
            assert time.monotonic() < until, f"{path}: {seen}"
            time.sleep(0.05)

    def press(self, address: str, action: str, *, naming: str = "", opener: str = "", **fields: str) -> None:
        """Press the button of an action, check its dialog in all looks, fill it in and send it.

        Args:
            address: of the page.
            action: the operation.
            naming: what the button's address names, where several are of the action.
            opener: which button it is, if its dialog is not that of all actions.
            fields: what is filled in.
        """
        page = self.site.open(address)
        link = opener or f'a[data-dialog][href^="/actions/{action}?"][href*="{naming or action}"]'
        reveal(page.locator(link).first).click()
        dialog = page.locator("#dialog")
        expect(dialog.locator(f'[action="/actions/{action}"], [formaction="/actions/{action}"]').first).to_be_visible()
        wrong = self.site.wrong(action, ALL, "#dialog")
        page.set_viewport_size(PHONE)
        wrong += self.site.wrong(f"{action} on a phone", within="#dialog")
        page.set_viewport_size(DESK)
        assert wrong == []
        for name, text in fields.items():
            field = reveal(dialog.locator(f'[name="{name}"], [name="{name}:json"], [name^="run_params.{name}"]').first)
            field.check() if field.get_attribute("type") == "checkbox" else field.fill(text)
        dialog.locator("button.primary").click()
        expect(page.locator(".flash, .note.bad[role=alert], #token").first).to_be_visible()
        assert page.locator(".note.bad[role=alert]").all_inner_texts() == []


@pytest.fixture(scope="module")
def stage(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Give a project on which everything can be done, and workflows on which to do it."""
    with ExitStack() as stack:
        receiver = stack.enter_context(receiving())
        folder = tmp_path_factory.mktemp("project")
        (folder / "calve.toml").write_text(f'[alerts.channels.hook]\ntype = "webhook"\nurl = "{receiver.url}"\n')
        environment = {"CALVE_SECRET_STORE__KEY": "A" * 43 + "="}
        made = stack.enter_context(filled_project(folder, environment, commits=8, runs=2))
        stack.enter_context(live(made.playground, tick=0.1, heartbeat=0.5, poll=0.1))
        url = stack.enter_context(Site(made).up())
        site = stack.enter_context(watched(browser, url))
        yield Stage(made, site, stack.enter_context(httpx.Client(base_url=url, timeout=30)), receiver)


def _status(*wanted: str) -> Callable[[Any], bool]:
    return lambda one: one["status"] in wanted


def _start(stage: Stage) -> None:
    workflow = stage.workflow("start")
    stage.press(workflow, "start_workflow", opener=f'a[data-dialog][href^="{workflow}/start"]', day="20260202")
    expect(stage.site.page).to_have_url(re.compile(f"{workflow}/instances/1$"))
    stage.shows(f"{workflow}/instances/1", lambda one: one["params"]["day"]["evaluated_result"] == "20260202")


def _stop_instance(stage: Stage) -> None:
    at = stage.instance("stop", BUSY)
    stage.press(at, "stop_instance", reason="wrong day")
    stage.shows(at, _status("STOPPED"))


def _kill_instance(stage: Stage) -> None:
    at = stage.instance("kill", BUSY)
    stage.press(at, "kill_instance", reason="wrong day")
    stage.shows(at, _status("FAILED"))


def _blocked(stage: Stage, name: str) -> str:
    """Let an instance fail that the next one waits for; return its address."""
    at = stage.instance(name, FATAL_ERROR, "FAILED", rule="strict_sequential")
    stage.made.playground.script.parts[name] = DONE
    stage.made.playground.begin(f"acts.{name}")
    return at


def _unblock_instance(stage: Stage) -> None:
    at = _blocked(stage, "unblock")
    stage.press(at, "unblock_instance")
    stage.shows(at.replace("instances/1", "instances/2"), _status("SUCCEEDED"))


def _unblock_workflow(stage: Stage) -> None:
    at = _blocked(stage, "unblock_all")
    stage.press("/workflows/acts.unblock_all", "unblock_workflow")
    stage.shows(at.replace("instances/1", "instances/2"), _status("SUCCEEDED"))


def _restarted(stage: Stage, name: str, action: str, opener: str) -> None:
    at = stage.instance(name, FATAL_ERROR, "FAILED")
    stage.made.playground.script.parts[name] = DONE
    stage.press(at, action, opener=opener)
    stage.shows(at, lambda one: (one["workflow_run_id"], one["status"]) == (2, "SUCCEEDED"))


def _step(name: str, action: str, status: str) -> Callable[[Stage], None]:
    """Return what does something to a step that runs, and sees that the step ends so."""

    def perform(stage: Stage) -> None:
        at = stage.instance(name, BUSY)
        stage.press(at, action)
        stage.shows(f"{at}/steps/{name}", lambda one: one["runtime_state"]["status"] == status)

    return perform


def _resume_step(stage: Stage) -> None:
    at = stage.paused("resume")
    stage.press("/breakpoints", "resume_step", naming="acts.resume&")
    stage.shows(at, _status("SUCCEEDED"))


def _resume_workflow(stage: Stage) -> None:
    at = stage.paused("resume_all")
    stage.press("/workflows/acts.resume_all", "resume_workflow")
    stage.shows(at, _status("SUCCEEDED"))


def _bypass(stage: Stage) -> None:
    at = stage.instance("bypass", kind="{type: NoOp, signal_dependencies: [{name: never.comes}]}")
    stage.press(at, "bypass_step")
    stage.shows(at, _status("SUCCEEDED"))


def _decided(name: str, action: str, status: str) -> Callable[[Stage], None]:
    """Return what answers an approval, and sees how the instance ends."""

    def perform(stage: Stage) -> None:
        at = stage.instance(name, kind="{type: Approval, approval: {message: Go?}}")
        stage.press("/approvals", action, naming=f"acts.{name}")
        stage.shows(at, _status(status))

    return perform


def _activity(stage: Stage) -> None:
    at = stage.workflow("active")
    stage.press(at, "deactivate")
    stage.shows(f"{at}/overview", lambda one: not one.get("active_version_id"))


def _activate(stage: Stage) -> None:
    at = stage.workflow("inactive")
    stage.made.playground.engine.deactivate("acts.inactive")
    stage.press(at, "activate")
    stage.shows(f"{at}/overview", lambda one: one["active_version_id"] == 1)


def _all_instances(name: str, action: str, status: str) -> Callable[[Stage], None]:
    """Return what ends all instances of a workflow."""

    def perform(stage: Stage) -> None:
        at = stage.instance(name, BUSY)
        stage.press(f"/workflows/acts.{name}", action, reason="wrong day")
        stage.shows(at, _status(status))

    return perform


def _add_breakpoint(stage: Stage) -> None:
    at = stage.workflow("point")
    stage.press(at, "add_breakpoint", step_id="point")
    stage.shows("/workflows/steps/breakpoints?workflowId=acts.point&stepId=point", lambda found: len(found) == 1)


def _delete_breakpoint(stage: Stage) -> None:
    stage.workflow("unpoint")
    stage.made.playground.engine.pause(Breakpoint("acts.unpoint", "unpoint"))
    stage.press("/breakpoints", "delete_breakpoint", naming="acts.unpoint")
    stage.shows("/workflows/steps/breakpoints?workflowId=acts.unpoint&stepId=unpoint", lambda found: found == [])


def _delete_workflow(stage: Stage) -> None:
    at = stage.workflow("gone")
    stage.press(at, "delete_workflow")
    stage.shows(f"{at}/versions/latest", lambda one: one["code"] == "workflow_missing")


def _change_properties(stage: Stage) -> None:
    at = stage.workflow("properties")
    stage.press(f"{at}?tab=settings", "change_properties", step_concurrency="3")
    stage.shows(f"{at}/overview", lambda one: one["step_concurrency"] == 3)


def _tags(stage: Stage, name: str) -> Callable[[Callable[[list[Any]], object]], None]:
    def shows(what: Callable[[list[str]], object]) -> None:
        stage.shows(f"/workflows?tag=browser&search=acts.{name}", lambda one: what(one["elements"]))

    return shows


def _add_tag(stage: Stage) -> None:
    at = stage.workflow("tag")
    stage.press(f"{at}?tab=settings", "add_workflow_tag", name="browser")
    _tags(stage, "tag")(lambda found: len(found) == 1)


def _delete_tag(stage: Stage) -> None:
    at = stage.workflow("untag")
    stage.put("POST", f"{at}/properties/tag", json={"name": "browser"})
    page = stage.site.open(f"{at}?tab=settings")
    page.locator('form[action="/actions/delete_workflow_tag"] button').click()
    expect(page.locator(".flash")).to_be_visible()
    _tags(stage, "untag")(lambda found: not found)


def _set_checkpoint(stage: Stage) -> None:
    stage.capture("acts.set/x", is_committed=True)
    stage.press(f"/tables/{SOURCE}/consumers", "set_checkpoint", naming="acts.set", to="latest", reason="by hand")
    stage.shows("/checkpoints/log?consumer=acts.set/x", lambda one: one["elements"][0]["reason"] == "by hand")


def _reset_checkpoint(stage: Stage) -> None:
    stage.capture("acts.reset/x", is_committed=True)
    stage.press(f"/tables/{SOURCE}/consumers", "reset_checkpoint", naming="acts.reset", reason="from the beginning")
    stage.shows("/checkpoints?consumer=acts.reset/x", lambda one: one["elements"] == [])


def _closed(consumer: str, action: str, status: str) -> Callable[[Stage], None]:
    """Return what closes a capture."""

    def perform(stage: Stage) -> None:
        at = f"/captures/{stage.capture(consumer)}"
        stage.press(at, action)
        stage.shows(at, _status(status))

    return perform


def _announce(stage: Stage) -> None:
    stage.press("/signals", "announce_signal", name="acts.done", params='{"day": 20260101}')
    stage.shows("/signals?name=acts.done", lambda one: one["elements"][0]["params"]["day"])


def _set_permit(stage: Stage) -> None:
    stage.press("/tag-permits", "set_tag_permit", tag="acts.some", max_allowed="3")
    stage.shows("/tag-permits/acts.some", lambda one: one["max_allowed"] == 3)


def _delete_permit(stage: Stage) -> None:
    stage.put("POST", "/tag-permits", json={"tag": "acts.none", "max_allowed": 1})
    stage.press("/tag-permits", "delete_tag_permit", naming="acts.none")
    stage.shows("/tag-permits", lambda found: "acts.none" not in {one["tag"] for one in found})


def _test_channel(stage: Stage) -> None:
    stage.press("/alerts", "test_channel", channel="hook")
    assert len(stage.receiver.requests) == 1


def _push_template(stage: Stage) -> None:
    stage.press("/job-templates", "push_job_template_yaml", body=_TEMPLATE.format(name="acts_new"))
    stage.shows("/job-templates/acts_new", lambda one: one["definition"]["job_type"] == "acts_new")


def _delete_template(stage: Stage) -> None:
    yaml = {"content": _TEMPLATE.format(name="acts_old"), "headers": {"content-type": "application/yaml"}}
    stage.put("POST", "/job-templates/yaml", **yaml)
    stage.press("/job-templates/acts_old", "delete_job_template")
    stage.shows("/job-templates", lambda found: "acts_old" not in {one["definition"]["job_type"] for one in found})


def _user(stage: Stage, name: str) -> Callable[[Callable[[Any], object]], None]:
    return lambda what: stage.shows(
        "/access/users", lambda found: any(what(one) for one in found if one["name"] == name)
    )


def _add_user(stage: Stage) -> None:
    stage.press("/users", "add_user", name="acts", password=PASSWORD, grants="viewer@acts")
    _user(stage, "acts")(lambda one: one["grants"] == ["viewer@acts"])


def _change_user(stage: Stage) -> None:
    stage.put("POST", "/access/users", json={"name": "other", "password": PASSWORD, "grants": ["viewer"]})
    stage.press("/users", "change_user", naming="name=other", grants="runner@acts")
    _user(stage, "other")(lambda one: one["grants"] == ["runner@acts"])


def _create_token(stage: Stage) -> None:
    stage.press("/tokens", "create_token", name="acts", grants="viewer")
    token = stage.site.page.locator("#token").input_value()
    assert stage.api.get("/api/v3/workflows", headers={"authorization": f"Bearer {token}"}).status_code == 200


def _revoke_token(stage: Stage) -> None:
    made = stage.api.post("/api/v3/access/tokens", json={"name": "acts.old", "grants": ["viewer"]}).json()
    stage.press("/tokens", "revoke_token", naming=made["token_id"])
    refused = stage.api.get("/api/v3/workflows", headers={"authorization": f"Bearer {made['token']}"})
    assert refused.status_code == 401


def _secret_names(stage: Stage, what: Callable[[set[str]], object]) -> None:
    stage.shows("/secrets", lambda found: what({one["name"] for one in found}))


def _set_secret(stage: Stage) -> None:
    stage.press("/secrets", "set_secret", name="acts.new", text="hush")
    _secret_names(stage, lambda names: "acts.new" in names)


def _delete_secret(stage: Stage) -> None:
    stage.put("PUT", "/secrets/acts.old", json={"text": "hush"})
    stage.press("/secrets", "delete_secret", naming="acts.old")
    _secret_names(stage, lambda names: "acts.old" not in names)


PERFORMED: dict[str, Callable[[Stage], None]] = {
    "start_workflow": _start,
    "stop_instance": _stop_instance,
    "kill_instance": _kill_instance,
    "unblock_instance": _unblock_instance,
    "unblock_workflow": _unblock_workflow,
    "restart_instance": lambda stage: _restarted(stage, "restart", "restart_instance", 'a[href$="/restart"]'),
    "restart_step": lambda stage: _restarted(stage, "again", "restart_step", 'a[href*="/restart?step="]'),
    "stop_step": _step("stop_one", "stop_step", "STOPPED"),
    "kill_step": _step("kill_one", "kill_step", "FATALLY_FAILED"),
    "skip_step": _step("skip_one", "skip_step", "SKIPPED"),
    "resume_step": _resume_step,
    "resume_workflow": _resume_workflow,
    "bypass_step": _bypass,
    "approve_step": _decided("yes", "approve_step", "SUCCEEDED"),
    "reject_step": _decided("no", "reject_step", "FAILED"),
    "deactivate": _activity,
    "activate": _activate,
    "stop_workflow": _all_instances("stop_all", "stop_workflow", "STOPPED"),
    "kill_workflow": _all_instances("kill_all", "kill_workflow", "FAILED"),
    "add_breakpoint": _add_breakpoint,
    "delete_breakpoint": _delete_breakpoint,
    "delete_workflow": _delete_workflow,
    "change_properties": _change_properties,
    "add_workflow_tag": _add_tag,
    "delete_workflow_tag": _delete_tag,
    "set_checkpoint": _set_checkpoint,
    "reset_checkpoint": _reset_checkpoint,
    "commit_capture": _closed("acts.commit/x", "commit_capture", "committed"),
    "abandon_capture": _closed("acts.abandon/x", "abandon_capture", "abandoned"),
    "announce_signal": _announce,
    "set_tag_permit": _set_permit,
    "delete_tag_permit": _delete_permit,
    "test_channel": _test_channel,
    "push_job_template_yaml": _push_template,
    "delete_job_template": _delete_template,
    "add_user": _add_user,
    "change_user": _change_user,
    "create_token": _create_token,
    "revoke_token": _revoke_token,
    "set_secret": _set_secret,
    "delete_secret": _delete_secret,
}
"""What performs each action that a page offers, and sees by REST that it was done."""


@pytest.mark.parametrize("operation_id", PERFORMED)
def test_an_action_is_performed_by_its_button(stage: Stage, operation_id: str) -> None:
    """Its dialog can be seen and reached by all, in all looks; once it is sent, REST shows what was done."""
    PERFORMED[operation_id](stage)


def test_every_action_is_performed_here(stage: Stage) -> None:
    """Each operation that changes something is performed above, or is offered by no page, for a reason."""
    assert CHANGES - PERFORMED.keys() - NO_BUTTON.keys() == set()
    links = {link for _, answer in crawl(stage.api, ["/", *stage.made.addresses()]) for link in _actions(answer)}
    assert {link.split("/")[2] for link in links} & CHANGES - PERFORMED.keys() == set()


def _actions(answer: httpx.Response) -> set[str]:
    page = parse(answer.text)
    forms = {one.attributes.get("action", "") for one in page.all("form")}
    return {one.partition("?")[0] for one in page.links | forms if one.startswith("/actions/")}
