"""Logs of steps, and events."""

import time
from collections.abc import Collection, Iterator
from dataclasses import asdict
from typing import Annotated

from calve.access import Permission, allows
from calve.engine import MOST, PAGE, Address, Attempt, Event, LogReader, find_attempt, find_run
from calve.errors import RequestInvalid
from calve.namespaces import ROOT
from calve.operations import shapes
from calve.operations.arguments import InstanceId, OfWorkflow, StepPath, WorkflowId, step_address
from calve.operations.caller import Caller
from calve.operations.declaration import Argument, Document, Topic, operation
from calve.operations.documents import event_json, present
from calve.operations.pages import FIRST, Page, look_through, page_json
from calve.operations.policy import LOGS, READ_SOMEWHERE

_MOST_FOUND = 1_000
_FOUND = 100
_OFTEN = 0.2
_EVENTS = 500
_MOST_OWNERS = 10_000


class Logs(Topic):
    """Reads the logs of steps."""

    __slots__ = ()
    tag = "logs"

    def log_page(
        self,
        workflow_id: str,
        instance_id: int,
        step_id: str,
        *,
        attempt: int | None = None,
        run: int | None = None,
        offset: int | None = None,
        limit: int | None = None,
        tail: int | None = None,
    ) -> Document:
        """Return a part of a step's log: ``text``, ``offset``, ``next_offset``, ``size``, ``left_out``.

        Args:
            workflow_id: the workflow.
            instance_id: its instance.
            step_id: the step's id or path: ``loop/3/job``.
            attempt: an earlier attempt. Default: the newest.
            run: an earlier run than the last one that tried the step; each counts its attempts from 1.
            offset: the byte to start at; if negative, counted from the end.
            limit: maximum number of bytes.
            tail: only this many of the last lines, instead of an offset.
        """
        if tail is None and offset is None:
            offset = 0
        given = {"attempt": attempt, "run": run, "offset": offset, "limit": limit, "tail": tail}
        return self.get_logs(workflow_id, instance_id, step_id, **present(**given))

    def find_in_log(
        self,
        workflow_id: str,
        instance_id: int,
        step_id: str,
        text: str,
        *,
        attempt: int | None = None,
        run: int | None = None,
        offset: int | None = None,
        limit: int | None = None,
        ignore_case: bool = False,
    ) -> Document:
        """Return the lines of a log that contain a text: ``matches``, each with ``offset``, ``line`` and ``text``."""
        given = {"attempt": attempt, "run": run, "offset": offset, "limit": limit, "ignore_case": ignore_case or None}
        return self.get_logs(workflow_id, instance_id, step_id, find=text, **present(**given))

    @operation(
        "GET /workflows/{workflow_id}/instances/{instance_id}/steps/{step_id:path}/logs",
        LOGS,
        answer=shapes.LogPage | shapes.LogMatches,
        is_slow=True,
    )
    def get_logs(
        self,
        workflow_id: WorkflowId,
        instance_id: InstanceId,
        step_id: StepPath,
        attempt: Annotated[int | None, Argument("An earlier attempt. Default: the newest.", ge=1, lt=2**31)] = None,
        run: Annotated[
            int | None,
            Argument("An earlier run. Default: the last one that tried the step.", ge=1, lt=2**31),
        ] = None,
        offset: Annotated[
            int | None,
            Argument("Start at this byte; if negative, counted from the end.", ge=-(2**62), lt=2**62),
        ] = None,
        limit: Annotated[
            int | None, Argument("Maximum number of bytes, or with ``find`` lines.", ge=1, le=MOST)
        ] = None,
        tail: Annotated[int | None, Argument("Only this many of the last lines.", ge=1, le=100_000)] = None,
        find: Annotated[
            str | None,
            Argument("Only lines that contain this text, with their numbers.", min_length=1, max_length=1_000),
        ] = None,
        *,
        ignore_case: Annotated[bool, Argument("With ``find``: ignore case.")] = False,
        follow: Annotated[bool, Argument("Continue until the attempt ends.")] = False,
    ) -> Document:
        """Return the log of an attempt of a step, the newest unless another is given.

        Without ``offset``, ``tail`` or ``find`` it is the whole log as text, with a line in place of parts that are not
        kept; with ``Accept: application/json``, its first part. With ``offset`` or ``tail`` it is a part, which the
        headers ``X-Log-Offset``, ``X-Log-Next-Offset``, ``X-Log-Size`` and ``X-Log-Left-Out`` describe, or with
        ``Accept: application/json`` the keys of an object. ``find`` returns the lines that contain a text, with their
        offsets and numbers, and ``next_offset`` if there is more to search.
        """
        address = step_address(workflow_id, instance_id, step_id, run)
        _, reader = reader_of(self.call, address, attempt)
        check_log_part(offset=offset, tail=tail, find=find, follow=follow)
        if find is not None:
            return matches_json(reader, find, offset, limit, ignore_case=ignore_case)
        return asdict(reader.tail(tail) if tail is not None else reader.page(offset or 0, limit or PAGE))

    def logs(
        self,
        workflow_id: str,
        instance_id: int,
        step_id: str,
        *,
        attempt: int | None = None,
        run: int | None = None,
        is_followed: bool = False,
        offset: int | None = None,
        tail: int | None = None,
    ) -> Iterator[str]:
        """Yield a step's log; if followed, until the attempt has ended, starting at a byte or with the last lines."""
        self.call.require(Permission.LOGS, workflow_id)
        found, reader = reader_of(self.call, step_address(workflow_id, instance_id, step_id, run), attempt)
        place = reader.tail(tail).offset if tail else reader.place(offset or 0)
        while True:
            now = self.call.engine.state.attempt(found.uuid) if is_followed else None
            while not (page := reader.page(place)).is_last or page.text:
                place = page.next_offset
                yield page.shown()
            if now is None or now.status.is_terminal:
                return
            time.sleep(_OFTEN)
            reader = self.call.engine.log_reader(found.uuid)


def check_log_part(*, offset: int | None, tail: int | None, find: str | None, follow: bool) -> None:
    """Refuse a request for parts of a log that exclude each other.

    Raises:
        RequestInvalid: they do.
    """
    if (tail is not None) + (find is not None) + (offset is not None and find is None) > 1 or (find and follow):
        raise RequestInvalid("Give one of offset, tail and find; and follow with offset or tail only.")


def reader_of(call: Caller, address: Address, attempt_id: int | None) -> tuple[Attempt, LogReader]:
    """Return an attempt and the reader of its log, if the caller may read it."""
    call.require_inside(Permission.LOGS, address)
    _, attempt = find_attempt(call.engine.state, address, attempt_id)
    return attempt, call.engine.log_reader(attempt.uuid)


def matches_json(reader: LogReader, text: str, offset: int | None, limit: int | None, *, ignore_case: bool) -> Document:
    """Return the lines of a log that contain a text."""
    most = min(limit or _FOUND, _MOST_FOUND)
    return asdict(reader.find(text, ignore_case=ignore_case, offset=max(0, offset or 0), limit=most))


class Events(Topic):
    """Reads events."""

    __slots__ = ()
    tag = "events"

    def events(
        self, *, after: int = 0, workflow_id: str | None = None, instance_id: int | None = None
    ) -> Iterator[Document]:
        """Yield events in order, without end, starting after event number ``after``.

        Each has a ``seq``: keep the last one to continue there later.
        """
        chosen = ChosenEvents(self.call, workflow_id, instance_id)
        while True:
            found, last = chosen.page(after)
            yield from map(event_json, found)
            if last == after:
                time.sleep(_OFTEN)
            after = last

    def past_events(self, workflow_id: str, instance_id: int, *, after: int = 0) -> list[Document]:
        """Return the events of an instance and its subworkflows after event number ``after``."""
        return list(self.pages(self.get_events, workflow_id=workflow_id, instance_id=instance_id, after=after))

    @operation("GET /events", READ_SOMEWHERE, answer=shapes.Page, is_slow=True)
    def get_events(
        self,
        page: Page = FIRST,
        workflow_id: OfWorkflow = None,
        instance_id: Annotated[int | None, Argument(ge=1, lt=2**63)] = None,
        after: Annotated[int | None, Argument("Only events after this number.", ge=0, lt=2**63)] = None,
        kind: Annotated[
            list[str] | None,
            Argument("Only events of these kinds.", max_length=20, examples=[["STEP_INSTANCE_STATUS_CHANGE"]]),
        ] = None,
        step: Annotated[str | None, Argument("Only events of steps with this id.", max_length=128)] = None,
    ) -> Document:
        """Return events with their numbers, in order; as ``text/event-stream``, also those that happen from now on.

        ``Last-Event-ID`` (or ``after``) continues an interrupted stream. Without it, pages and streams of an instance
        start with the first event, other streams with the next one.
        """
        chosen = ChosenEvents(self.call, workflow_id, instance_id, kind or (), step)
        return page_of_events(chosen, event_number(page.forward().cursor, after) or 0, page)


def page_of_events(chosen: "ChosenEvents", after: int, page: Page) -> Document:
    """Return a page of events."""

    def look(cursor: str | None) -> tuple[list[Event], str | None]:
        place = int(cursor or 0)
        events, last = chosen.page(place)
        return events, None if last == place else str(last)

    found, onward = look_through(page, str(after), look)
    return page_json(found, page, event_json, lambda event: str(event.seq), onward)


def event_number(cursor: str | None, after: int | None) -> int | None:
    """Return the number of the event to start after, from a cursor or else a number.

    Raises:
        RequestInvalid: the cursor is not the number of an event.
    """
    if cursor is None:
        return after
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) <= 18):
        raise RequestInvalid("Last-Event-ID, or a cursor, must be the number of an event.")
    return int(cursor)


class ChosenEvents:
    """The events that a caller selects and may see."""

    def __init__(
        self,
        call: Caller,
        workflow_id: str | None,
        instance_id: int | None,
        kinds: Collection[str] = (),
        step_id: str | None = None,
    ) -> None:
        self._call = call
        self._kinds = frozenset(kinds)
        self._step_id = step_id
        self._workflow_id = workflow_id
        self._owners: dict[str, str] = {}
        self._sees_all = allows(call.principal, Permission.READ, ROOT)
        self.root: str | None = None
        if workflow_id is not None:
            call.require(Permission.READ, workflow_id)
        if instance_id is not None:
            if workflow_id is None:
                raise RequestInvalid("instance_id requires workflow_id.", remedy="Add workflow_id to the request.")
            self.root = find_run(call.engine.state, Address(workflow_id, instance_id)).root_uuid

    def page(self, after: int) -> tuple[list[Event], int]:
        """Return the next events, and the number of the last one that was checked."""
        state = self._call.engine.state
        found = state.events(after=after, root_uuid=self.root, limit=_EVENTS)
        last = found[-1].seq if found else after
        wanted = [event for event in found if self._is_wanted(event)]
        if self._workflow_id is not None or not self._sees_all:
            self._learn_owners({event.run_uuid for event in wanted})
        return [event for event in wanted if self._is_for(event)], last

    def news(self, after: int) -> tuple[bool, int]:
        """Tell whether there may be new events after an event number, and return the number to continue from.

        If many events were missed, the answer is yes without reading all of them: the page is rendered again anyway.
        """
        near = self._call.engine.state.last_event() - _EVENTS
        begin = after if self.root is not None else max(after, near)
        found, last = self.page(begin)
        return bool(found) or begin > after, max(last, near)

    def _is_wanted(self, event: Event) -> bool:
        is_kind = not self._kinds or event.kind in self._kinds
        return is_kind and self._step_id in {None, event.step_id}

    def _is_for(self, event: Event) -> bool:
        if self._workflow_id is None and self._sees_all:
            return True
        if self.root is not None and event.workflow_id == self._workflow_id:
            return True
        owner = self._owners.get(event.run_uuid, event.workflow_id)
        is_wanted = self.root is not None or self._workflow_id in {None, owner}
        return is_wanted and self._call.may(Permission.READ, owner)

    def _learn_owners(self, run_uuids: set[str]) -> None:
        """Look up which workflows runs belong to: iterations have workflow ids of their own."""
        if len(self._owners) > _MOST_OWNERS:
            self._owners.clear()
        unknown = sorted(run_uuids - self._owners.keys())
        found = self._call.engine.state.ancestry(unknown) if unknown else {}
        self._owners |= {uuid: run.owner_workflow for uuid, run in found.items()}
