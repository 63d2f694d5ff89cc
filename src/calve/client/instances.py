"""What a server knows of instances: started, followed, acted upon."""

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import httpx

from calve.client.following import Ear, wait
from calve.client.server import Document, Server, path
from calve.client.workflows import document, pages


class Instances:
    """Starts and restarts instances, tells how they stand, and acts upon them."""

    server: Server

    def start(
        self,
        workflow_id: str,
        params: Mapping[str, Any] | None = None,
        *,
        version: str | int = "active",
        request_id: str | None = None,
    ) -> Document:
        """Start an instance.

        Args:
            workflow_id: which workflow.
            params: run params as plain values, or as definitions in Maestro's form.
            version: active, latest, default, or a number.
            request_id: names the request: the same one again gives the same instance. One is made up if none is
                given, so that a lost answer never starts anything twice.

        Returns:
            Which instance it is: workflow_id, workflow_instance_id, workflow_run_id, status …

        Raises:
            RequestInvalid: a param is not known to the workflow.
        """
        place = path("workflows", workflow_id, "versions", version, "actions", "start")
        return document(self.server.ask("POST", place, _request(params, request_id), is_repeatable=True))

    def start_batch(self, workflow_id: str, requests: Sequence[Mapping[str, Any]]) -> list[Document]:
        """Start up to ten instances; each request is the params of one, and all are started once or refused at once."""
        place = path("workflows", workflow_id, "actions", "start-batch")
        body = [_request(params, None) for params in requests]
        answer = self.server.ask("POST", place, body, is_repeatable=True)
        return list(answer["elements"])

    def wait(
        self, workflow_id: str, instance_id: int, run_id: int | None = None, *, timeout: float | None = None
    ) -> Document:
        """Return an instance once it is over, as ``instance`` gives it.

        Raises:
            WaitedTooLong: it is not over after ``timeout`` seconds.
        """
        ear = Ear(self.server, after=0, pause=time.sleep, workflow_id=workflow_id, instance_id=instance_id)
        return wait(
            ear,
            lambda: self.instance(workflow_id, instance_id, run_id),
            name=f"{workflow_id} {instance_id}",
            timeout=timeout,
            pause=time.sleep,
        )

    def instance(self, workflow_id: str, instance_id: int, run_id: int | None = None) -> Document:
        """Return an instance with its params and steps: its latest run, or the one that is named."""
        run: tuple[str | int, ...] = () if run_id is None else ("runs", run_id)
        return document(self.server.get(path("workflows", workflow_id, "instances", instance_id, *run)))

    def instances(
        self, workflow_id: str | None = None, *, statuses: Sequence[str] = (), limit: int | None = None
    ) -> Iterator[Document]:
        """Yield instances, newest first: of a workflow, or of all of them."""
        query = {"workflow_id": workflow_id, "status": list(statuses) or None}
        found = pages(self.server, path("instances"), **query)
        return found if limit is None else (one for one, _ in zip(found, range(limit), strict=False))

    def approvals(self, workflow_id: str | None = None) -> Iterator[Document]:
        """Yield the Approval steps that wait for people, oldest first: of a workflow, or of all of them."""
        return pages(self.server, path("approvals"), workflow_id=workflow_id)

    def runs(self, workflow_id: str, instance_id: int) -> list[Document]:
        """Return every run of an instance, newest first."""
        return list(pages(self.server, path("workflows", workflow_id, "instances", instance_id, "runs")))

    def steps(self, workflow_id: str, instance_id: int) -> list[Document]:
        """Return the steps of an instance, each as its newest attempt leaves it."""
        return list(self.server.get(path("workflows", workflow_id, "instances", instance_id, "steps")))

    def step(self, workflow_id: str, instance_id: int, step_id: str) -> Document:
        """Return the newest attempt of a step."""
        return document(self.server.get(path("workflows", workflow_id, "instances", instance_id, "steps", step_id)))

    def attempt(
        self, workflow_id: str, instance_id: int, step_id: str, attempt_id: int, *, run_id: int | str = "latest"
    ) -> Document:
        """Return an attempt of a step."""
        step = path("workflows", workflow_id, "instances", instance_id, "runs", run_id, "steps", step_id)
        return document(self.server.get(f"{step}/attempts/{attempt_id}"))

    def restart(self, workflow_id: str, instance_id: int, step_id: str | None = None, **request: Any) -> Document:
        """Run an instance again, or one of its steps and what comes after it.

        ``request`` is what Maestro takes: restart_policy, run_params, step_run_params, and a list of steps to skip.
        With ``latest=True`` the instance continues with the newest version: what succeeded and did not change is kept,
        and so are the steps that ``keep`` lists. A step is its id, or its path: ``loop/3/job``.
        """
        place = path("workflows", workflow_id, "instances", instance_id, *_step(step_id), "actions", "restart")
        body = {"request_id": str(uuid.uuid4()), "refuse_unknown_params": True, **request}
        return document(self.server.ask("POST", place, body, is_repeatable=True))

    def plan_restart(self, workflow_id: str, instance_id: int, step_id: str | None = None, **request: Any) -> Document:
        """Return what ``restart`` would keep and what it would run again, step by step; nothing is started."""
        place = path("workflows", workflow_id, "instances", instance_id, *_step(step_id), "actions", "plan-restart")
        return document(self.server.ask("POST", place, request, is_repeatable=True))

    def act(
        self,
        action: str,
        workflow_id: str,
        instance_id: int | None = None,
        step_id: str | None = None,
        *,
        is_blocking: bool | None = None,
        **body: Any,
    ) -> Any:
        """Do something with a step, an instance, or all instances of a workflow.

        Args:
            action: stop, kill, unblock; of a step also skip, bypass, approve, reject.
            workflow_id: which workflow.
            instance_id: which instance; all of them that are not over, if none is named.
            step_id: which step.
            is_blocking: wait some seconds for the effect.
            body: what the action brings, such as a reason or a comment.
        """
        instance: tuple[str | int, ...] = () if instance_id is None else ("instances", instance_id)
        place = path("workflows", workflow_id, *instance, *_step(step_id), "actions", action)
        return self.server.ask("PUT", place, body or None, query={"blocking": is_blocking})

    def stop(self, workflow_id: str, instance_id: int | None = None, step_id: str | None = None) -> Any:
        """Stop a step, an instance, or all instances of a workflow: they end as STOPPED."""
        return self.act("stop", workflow_id, instance_id, step_id)

    def kill(self, workflow_id: str, instance_id: int | None = None, step_id: str | None = None) -> Any:
        """Kill a step, an instance, or all instances of a workflow: they end as FAILED."""
        return self.act("kill", workflow_id, instance_id, step_id)

    def skip(self, workflow_id: str, instance_id: int, step_id: str) -> Any:
        """Skip a step: the steps after it go on."""
        return self.act("skip", workflow_id, instance_id, step_id)

    def bypass(self, workflow_id: str, instance_id: int, step_id: str) -> Any:
        """Let a step go on without the signals that it waits for."""
        return self.act("bypass", workflow_id, instance_id, step_id)

    def unblock(self, workflow_id: str, instance_id: int | None = None) -> Any:
        """Let STRICT_SEQUENTIAL go on in spite of failed instances."""
        return self.act("unblock", workflow_id, instance_id)

    def log_page(
        self,
        workflow_id: str,
        instance_id: int,
        step_id: str,
        *,
        attempt: int | None = None,
        offset: int | None = None,
        limit: int | None = None,
        tail: int | None = None,
    ) -> Document:
        """Return a part of what a step has written: ``text``, ``offset``, ``next_offset``, ``size``, ``left_out``.

        Args:
            workflow_id: the workflow.
            instance_id: its instance.
            step_id: the step, however deep: ``loop/3/job``.
            attempt: an earlier attempt than the newest.
            offset: the byte to begin at; below 0, from the end.
            limit: how many bytes at most.
            tail: how many of the last lines, in place of an offset.
        """
        given = {"attempt": attempt, "offset": offset, "limit": limit, "tail": tail}
        if tail is None and offset is None:
            given["offset"] = 0
        return document(self.server.get(_logs(workflow_id, instance_id, step_id), **given))

    def find_in_log(
        self,
        workflow_id: str,
        instance_id: int,
        step_id: str,
        text: str,
        *,
        attempt: int | None = None,
        offset: int | None = None,
        limit: int | None = None,
        ignore_case: bool = False,
    ) -> Document:
        """Return the lines that hold a text: ``matches``, each with ``offset``, ``line`` and ``text``."""
        given = {"attempt": attempt, "offset": offset, "limit": limit, "ignore_case": ignore_case or None}
        return document(self.server.get(_logs(workflow_id, instance_id, step_id), find=text, **given))

    def logs(
        self,
        workflow_id: str,
        instance_id: int,
        step_id: str,
        *,
        attempt: int | None = None,
        is_followed: bool = False,
        offset: int | None = None,
        tail: int | None = None,
    ) -> Iterator[str]:
        """Yield what a step has written; if followed, until the attempt has ended, from a byte or the last lines on."""
        place = _logs(workflow_id, instance_id, step_id)
        start = {"offset": offset, "tail": tail} if is_followed else {}
        query = {"attempt": attempt, "follow": is_followed or None, **start}
        silence = 3_600.0 if is_followed else self.server.timeout
        try:
            with self.server.stream(place, accept="text/plain", silence=silence, query=query) as answer:
                yield from answer.iter_text()
        except httpx.TransportError as error:
            raise self.server.unreachable(error) from error

    def events(
        self, *, after: int = 0, workflow_id: str | None = None, instance_id: int | None = None
    ) -> Iterator[Document]:
        """Yield events in order, without end, from the one after number ``after``; cut off, it goes on where it was.

        Each has its ``seq``: keep the last one to go on there another day.
        """
        return iter(Ear(self.server, after=after, pause=time.sleep, workflow_id=workflow_id, instance_id=instance_id))

    def past_events(self, workflow_id: str, instance_id: int, *, after: int = 0) -> list[Document]:
        """Return what has happened in an instance, and below it, after event number ``after``."""
        query = {"after": after, "workflow_id": workflow_id, "instance_id": instance_id}
        return list(pages(self.server, path("events"), **query))


def _logs(workflow_id: str, instance_id: int, step_id: str) -> str:
    return path("workflows", workflow_id, "instances", instance_id, "steps", step_id, "logs")


def _step(step_id: str | None) -> tuple[str, ...]:
    return () if step_id is None else ("steps", step_id)


def _request(params: Mapping[str, Any] | None, request_id: str | None) -> Document:
    return {
        "initiator": {"type": "MANUAL"},
        "request_id": request_id or str(uuid.uuid4()),
        "run_params": dict(params or {}),
        "refuse_unknown_params": True,
    }
