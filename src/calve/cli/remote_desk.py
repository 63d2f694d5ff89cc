"""A server, as commands ask it."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from calve.cli.desk import PAGE, Action, Again, Document, Which
from calve.errors import RequestInvalid, WorkflowMissing

if TYPE_CHECKING:
    from calve.client import Client
    from calve.definition import Definition, JobTemplate
    from calve.engine import Address

_LIVE = ("CREATED", "IN_PROGRESS", "PAUSED")


@dataclass(frozen=True, slots=True)
class RemoteDesk:
    """Asks a server; who asks is what its token says."""

    client: "Client"

    def push(self, definition: "Definition") -> Document:
        """Keep a definition as the next version of its workflow."""
        answer = self.client.push(definition.as_json())
        about = answer["metadata"]
        return {
            "workflow_id": about["workflow_id"],
            "workflow_version_id": about["workflow_version_id"],
            "is_active": answer["is_active"],
            "create_time": about["create_time"],
            "author": about.get("version_author", ""),
        }

    def instances_kept(self) -> int | None:
        """Return None: the server has settings of its own."""
        return None

    def templates(self) -> "list[JobTemplate]":
        """Return the job templates that the server knows."""
        from calve.definition import JobTemplate

        return [JobTemplate.model_validate(one) for one in self.client.templates()]

    def delete(self, workflow: str) -> None:
        """Forget a workflow and everything that it has done."""
        self.client.delete(workflow)

    def start(
        self, workflow: str, *, version: str | int, params: Mapping[str, Any], request_id: str | None
    ) -> Document:
        """Start an instance."""
        return self.client.start(workflow, params, version=version, request_id=request_id)

    def restart(self, place: "Address", again: Again) -> Document:
        """Run an instance again, or a step of it."""
        step, request = _asked(place, again)
        return self.client.restart(place.workflow_id, place.instance_id, step, **request)

    def plan_restart(self, place: "Address", again: Again) -> Document:
        """Return what a restart would keep and what it would run again."""
        step, request = _asked(place, again)
        return self.client.plan_restart(place.workflow_id, place.instance_id, step, **request)

    def act(self, action: Action, place: "Address", **said: str) -> Document:
        """Do something with an instance or a step."""
        step = _path(place) if place.path else None
        blocking = False if step else None
        given = {name: text for name, text in said.items() if text}
        answer = self.client.act(action, place.workflow_id, place.instance_id, step, is_blocking=blocking, **given)
        return _run(answer)

    def act_on_all(self, action: Literal["stop", "kill"], workflow: str, *, reason: str) -> list[Document]:
        """Stop or kill all instances of a workflow that are not over."""
        found = self.instances(workflow, statuses=_LIVE)
        if reason:
            self.client.act(action, workflow, reason=reason)
        else:
            self.client.act(action, workflow)
        return found

    def pause(self, workflow: str, step: str, instance: int | None) -> None:
        """Set a breakpoint."""
        self.client.pause(workflow, step, instance)

    def resume(self, workflow: str, step: str | None, place: "Address | None") -> list[Document]:
        """Take the breakpoint at a step away, or let the step of one instance go on."""
        if place is not None:
            answer = self.client.act(
                "resume", workflow, place.instance_id, _path(place), is_blocking=False
            )  # its breakpoint stays: a server knows those of steps only
            return [_run(answer)]
        if step is None:
            raise RequestInvalid("A server resumes step by step.", remedy="Name the STEP, too.")
        if not self.client.breakpoints(workflow, step):
            raise RequestInvalid(
                f"There is no breakpoint at step {step} of {workflow}.",
                remedy="To set one: calve pause WORKFLOW STEP.",
            )
        paused = self.client.paused(workflow, step)
        self.client.unpause(workflow, step)
        return [_run(attempt) for attempt in paused]

    def activate(self, workflow: str, version: str) -> int | None:
        """Make a version the active one."""
        return int(self.client.activate(workflow, version)["workflow_version_id"])

    def deactivate(self, workflow: str) -> None:
        """Leave a workflow without an active version."""
        self.client.deactivate(workflow)

    def announce(
        self, name: str, params: Mapping[str, Any], payload: Mapping[str, Any], request_id: str | None
    ) -> Document:
        """Announce a signal."""
        return self.client.announce(name, params, payload=payload, request_id=request_id)

    def signals(self, name: str | None, limit: int) -> list[Document]:
        """Return signals, newest first."""
        return list(islice(self.client.signals(name), limit))

    def signal_lineage(self, name: str, seq: int | None) -> Document:
        """Return a signal, who sent it, and what it did."""
        return self.client.lineage(name, "latest" if seq is None else seq)

    def instances(self, workflow: str | None, *, statuses: Sequence[str] = (), limit: int = 1_000) -> list[Document]:
        """Return instances, newest first."""
        if workflow is not None:
            self.client.workflow(workflow)
        return list(islice(self.client.instances(workflow, statuses=statuses), limit))

    def instance(self, place: "Address") -> Document:
        """Return an instance with its steps."""
        return self.client.instance(place.workflow_id, place.instance_id, place.run_id)

    def overview(self, place: "Address") -> Document:
        """Return an instance with its steps."""
        return self.instance(place)

    def events(self, run: Document, after: int) -> list[Document]:
        """Return the events of a run in order."""
        found = self.client.past_events(run["workflow_id"], run["workflow_instance_id"], after=after)
        return [event for event in found if event["workflow_uuid"] == run["workflow_uuid"]]

    def told(self, run: Document, step_id: str, attempt_id: int) -> str:
        """Return what was said about an attempt of a step."""
        which = run["workflow_id"], run["workflow_instance_id"], step_id
        attempt = self.client.attempt(*which, attempt_id, run_id=run["workflow_run_id"])
        return str(attempt.get("message", ""))

    def approvals(self, workflow: str | None, limit: int) -> list[Document]:
        """Return the Approval steps that wait for people, oldest first."""
        if workflow is not None:
            self.client.workflow(workflow)
        return list(islice(self.client.approvals(workflow), limit))

    def attempt(self, place: "Address", attempt_id: int | None) -> Document:
        """Return an attempt of a step, the newest if none is named."""
        if attempt_id is None:
            return self.client.step(place.workflow_id, place.instance_id, _path(place))
        return self.client.attempt(place.workflow_id, place.instance_id, _path(place), attempt_id)

    def log(self, place: "Address", attempt: Document, which: Which, *, is_followed: bool) -> Iterator[str]:
        """Yield what an attempt has written."""
        from calve.engine.log_reader import LogPage

        where = place.workflow_id, place.instance_id, _path(place)
        number = attempt["step_attempt_id"]
        if is_followed or which == Which():
            yield from self.client.logs(
                *where, attempt=number, is_followed=is_followed, offset=which.offset, tail=which.tail
            )
            return
        page = LogPage(
            **self.client.log_page(*where, attempt=number, offset=which.offset, limit=which.limit, tail=which.tail)
        )
        left = page.size if which.limit is None else which.limit
        yield page.shown()
        while (left := left - (page.next_offset - page.offset)) > 0 and not page.is_last:
            limit = min(PAGE, left)
            page = LogPage(**self.client.log_page(*where, attempt=number, offset=page.next_offset, limit=limit))
            yield page.shown()

    def find(self, place: "Address", attempt: Document, text: str, which: Which, *, ignore_case: bool) -> Document:
        """Return the lines of a log that hold a text."""
        return self.client.find_in_log(
            place.workflow_id,
            place.instance_id,
            _path(place),
            text,
            attempt=attempt["step_attempt_id"],
            offset=which.offset,
            limit=which.limit,
            ignore_case=ignore_case,
        )

    def permits(self) -> list[Document]:
        """Return the limits of tags."""
        return self.client.permits()

    def limit_tag(self, tag: str, number: int | None) -> None:
        """Limit how many steps of a tag run at once, or lift the limit."""
        if number is not None:
            self.client.limit_tag(tag, number)
            return
        try:
            self.client.unlimit_tag(tag)
        except WorkflowMissing as error:
            raise RequestInvalid(f"The tag {tag} has no limit.") from error

    def now(self) -> int:
        """Return the time of this machine."""
        return int(time.time() * 1_000)

    def is_worked(self) -> bool:
        """Leave it to the server to see that somebody works."""
        return True

    def view(self, run: Document) -> str | None:
        """Return the address of the page that shows an instance."""
        return self.client.view_url(run)


def _asked(place: "Address", again: Again) -> tuple[str | None, Document]:
    """Return the step that a restart is about, if there is one, and what it asks of a server.

    Raises:
        RequestInvalid: a server does not take that together.
    """
    latest = {"latest": True, "keep": list(again.keep)} if again.is_latest or again.keep else {}
    if not place.path:
        policy = "RESTART_FROM_BEGINNING" if again.is_from_beginning else "RESTART_FROM_INCOMPLETE"
        return None, {
            "restart_policy": policy,
            "run_params": again.params,
            "step_run_params": again.step_params,
            "skip": again.skip,
            **latest,
        }
    step = place.steps[-1]
    if again.params or again.skip or set(again.step_params) - {step}:
        raise RequestInvalid(
            f"A server restarts a step with params of {step} only.", remedy="Leave --step out, or the other params."
        )
    return _path(place), {"step_run_params": again.step_params.get(step, {}), **latest}


def _path(place: "Address") -> str:
    return "/".join(place.path)


def _run(answer: Document) -> Document:
    """Return which run an answer is about."""
    names = ("workflow_id", "workflow_instance_id", "workflow_run_id")
    about = {name: answer[name] for name in names if name in answer}
    status = answer.get("workflow_instance_status")
    return about if status is None else {**about, "status": status}
