"""Overviews of everything that a caller may read: what needs attention, and search."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import ceil
from typing import Annotated, Any
from urllib.parse import urlencode

from calve.access import Permission, namespaces
from calve.addresses import instance_page, table_page, workflow_page
from calve.engine import SET_ASIDE, FailedRun, RecentRun, RunStatus, WorkflowOrder, WorkflowQuery, WorkflowRow
from calve.engine.views import approval_json
from calve.errors import AccessError, CaptureMissing, RequestInvalid
from calve.operations import shapes
from calve.operations.caller import Caller
from calve.operations.declaration import Argument, Document, Topic, operation
from calve.operations.documents import recent_run_json
from calve.operations.pages import FIRST, Page, page_json
from calve.operations.policy import READ_SOMEWHERE
from calve.operations.steps import paused_rows
from calve.operations.triggers import trigger_json
from calve.operations.workflows import after_workflow, workflow_cursor

SHOWN = 50
"""Maximum number of rows in a part of an overview."""
LOOKED_AT = 500
"""Maximum number of failed instances to check, newest first."""
GRACE = 120_000
"""After how many milliseconds a trigger that has not fired counts as late."""
SUCCESSES = 20
"""The usual duration of a workflow is that of this many successful instances …"""
HISTORY = 40
"""… among how many of the newest instances."""
FEWEST = 3
"""Minimum number of successful instances for a usual duration."""
FACTOR = 1.5
MATCHES = 5
"""Maximum number of matches of a workflow in a search."""
WIDTH = 160
"""Maximum number of characters of a match in a search."""
JUMPS = 5
"""Maximum number of results of each kind besides workflows and instances."""
FIELDS = ("id", "owner", "tag", "step", "table", "subworkflow", "text")
"""Where a text may be found, the most significant first."""
_KINDS = {
    "id": "step",
    "source_tables": "table",
    "source_table": "table",
    "targets": "table",
    "table": "table",
    "subworkflow_id": "subworkflow",
    "workflow_id": "subworkflow",
}
_START = re.compile(r"start(?:\s+(?P<name>\S*))?$", re.IGNORECASE)
_CAPTURE = re.compile(r"[a-z0-9]{8,36}$")
"""The pattern of the ids of captures."""
_NUMBERED = re.compile(r"(?P<word>[^\s/#]+)[\s/#]+(?P<number>[0-9]{1,18})$")


class Overviews(Topic):
    """Lists what needs attention, and searches."""

    __slots__ = ()
    tag = "overviews"

    @operation("GET /attention", READ_SOMEWHERE, id="get_attention", answer=shapes.Attention, is_slow=True)
    def attention(self) -> Document:
        """Return what may need attention: what failed, what is late, and what waits for a person."""
        granted = namespaces(self.call.principal, Permission.READ)
        now = self.call.engine.tools.clock()
        failed = self.call.engine.state.failed_runs(limit=LOOKED_AT + 1, namespaces=granted)
        return {
            "at": now,
            "failed": _part(_causes(failed[:LOOKED_AT]), min(len(failed), LOOKED_AT), has_more=len(failed) > LOOKED_AT),
            "late": _part([*_late_triggers(self.call, granted, now), *_long_runs(self.call, granted, now)]),
            "waiting": _waiting(self.call, granted, failed[:LOOKED_AT]),
        }

    @operation("GET /search", READ_SOMEWHERE, answer=shapes.Page, is_slow=True)
    def search(
        self,
        q: Annotated[str, Argument("The text to find, or a workflow id and a number.", min_length=1, max_length=128)],
        page: Page = FIRST,
        *,
        include: Annotated[
            str,
            Argument(
                "What else to find: jumps (steps, tables, consumers, captures; `start WORKFLOW` finds its start form).",
                pattern="^(jumps)?$",
                examples=["jumps"],
            ),
        ] = "",
    ) -> Document:
        """Find workflows by id, owner, tag, step, table or any text of the definition, and instances by number."""
        page, granted = page.forward(), namespaces(self.call.principal, Permission.READ)
        state = self.call.engine.state
        found = state.workflow_rows(
            WorkflowQuery(
                text=q.strip(),
                namespaces=granted,
                order=WorkflowOrder.MATCH,
                after=after_workflow(page.cursor, WorkflowOrder.MATCH),
                limit=page.limit + 1,
            )
        )
        document = page_json(
            found, page, lambda row: _found_json(row, q.strip()), lambda row: workflow_cursor(row, WorkflowOrder.MATCH)
        )
        if page.cursor is not None:
            return document
        if include:
            every = [*document["elements"], *_jumps(self.call, q.strip(), found, granted)]
            document["elements"] = sorted(every, key=lambda one: not _is_named(one, q.strip().lower()))
        numbered = _NUMBERED.match(q.strip())
        if numbered is not None:
            word, number = numbered["word"], int(numbered["number"])
            runs = state.instances_numbered(number, contains=word, namespaces=granted)
            document["elements"][:0] = [_instance_found_json(run) for run in runs]
        return document


def _is_named(found: Document, text: str) -> bool:
    """Tell whether the text names a result, rather than occurring somewhere in it."""
    return found["kind"] == "action" or text in found["title"].lower()


def _instance_found_json(run: RecentRun) -> Document:
    return {
        "kind": "instance",
        "title": f"{run.workflow_id} {run.instance_id}",
        "path": instance_page(run.workflow_id, run.instance_id),
        "matches": [{"field": "instance", "value": str(run.instance_id)}],
        "workflow_id": run.workflow_id,
        **recent_run_json(run),
    }


def _found_json(row: WorkflowRow, text: str) -> Document:
    workflow_id = row.workflow.workflow_id
    known = (("id", workflow_id), ("owner", row.owner or ""), *(("tag", tag) for tag in row.tags))
    written = (*known, *texts_of(row.definition), *texts_of(row.workflow.properties))
    found: dict[str, str] = {}
    for kind, value in sorted(written, key=lambda one: FIELDS.index(one[0])):
        if text.lower() in value.lower():
            found.setdefault(value, kind)  # a tag is a text, too: the most significant match is shown
    return {
        "kind": "workflow",
        "title": workflow_id,
        "path": workflow_page(workflow_id),
        "matches": [{"field": kind, "value": _around(value, text)} for value, kind in found.items()][:MATCHES],
        "workflow_id": workflow_id,
        "owner": row.owner,
        "tags": list(row.tags),
    }


def texts_of(value: Any, kind: str = "text") -> Iterator[tuple[str, str]]:
    """Yield all texts of a JSON value with their kind: a step's id, a table, a subworkflow, or any other text."""
    match value:
        case str():
            yield kind, value
        case Mapping():
            for name, one in value.items():
                yield from texts_of(one, _KINDS.get(name, kind))
        case list() | tuple():
            for one in value:
                yield from texts_of(one, kind)
        case _:
            return


def _around(value: str, text: str) -> str:
    """Return a text, or the part around the match if the text is long."""
    start = max(0, value.lower().find(text.lower()) - WIDTH // 2)
    return value if len(value) <= WIDTH else value[start : start + WIDTH]


def _jumps(call: Caller, text: str, rows: Sequence[WorkflowRow], granted: Sequence[str]) -> Iterator[Document]:
    """Yield the results of a search that are neither workflows nor instances.

    Args:
        call: the caller, for whom only what they may see is found.
        text: the text to search for.
        rows: the workflows that contain the text.
        granted: the namespaces whose workflows the caller may read.
    """
    yield from _starts(call, text, granted)
    yield from _steps(call, text.lower(), rows)
    try:
        yield from _of_lake(call, text.lower())
    except RequestInvalid:
        return  # there is no lake


def _starts(call: Caller, text: str, granted: Sequence[str]) -> Iterator[Document]:
    """Yield the forms that start workflows, if the text is ``start`` and a part of their ids."""
    asked = _START.match(text)
    if asked is None:
        return
    found = call.engine.state.workflow_rows(WorkflowQuery(contains=asked["name"] or "", namespaces=granted))
    ids = [row.workflow.workflow_id for row in found if call.may(Permission.RUN, row.workflow.workflow_id)]
    for workflow_id in sorted(ids, key=len)[:JUMPS]:
        yield _jump("action", f"start {workflow_id}", f"{workflow_page(workflow_id)}/start")


def _steps(call: Caller, text: str, rows: Iterable[WorkflowRow]) -> Iterator[Document]:
    """Yield the steps whose ids contain a text, each in the newest instance of its workflow."""
    found = [(row.workflow.workflow_id, step) for row in rows for step in _ids(row) if text in step.lower()][:JUMPS]
    newest = call.engine.state.recent_runs(sorted({workflow_id for workflow_id, _ in found}), 1) if found else {}
    for workflow_id, step in found:
        runs = newest[workflow_id]
        page = instance_page(workflow_id, runs[0].instance_id, step) if runs else workflow_page(workflow_id)
        yield _jump("step", f"{workflow_id} · {step}", page)


def _ids(row: WorkflowRow) -> Iterator[str]:
    """Yield the ids of the outer steps of a workflow; steps in loops have no page of their own outside an iteration."""
    for written in row.definition["workflow"].get("steps", ()):
        yield from (str(step["id"]) for step in written.values())


def _of_lake(call: Caller, text: str) -> Iterator[Document]:
    tables = call.tables
    uses = tables.known()
    names = [name for use in uses if text in (name := tables.short(use.table)).lower()]
    yield from (_jump("table", name, table_page(name)) for name in names[:JUMPS])
    consumers = sorted({one for use in uses for one in use.consumers if text in one.lower()})
    yield from (_jump("consumer", name, f"/captures?{urlencode({'consumer': name})}") for name in consumers[:JUMPS])
    if _CAPTURE.match(text):
        with suppress(CaptureMissing, AccessError):
            call.captures.show(text)
            yield _jump("capture", text, f"/captures/{text}")


def _jump(kind: str, title: str, path: str) -> Document:
    return {"kind": kind, "title": title, "path": path, "matches": []}


def _part(rows: Sequence[Document], count: int | None = None, *, has_more: bool = False) -> Document:
    """Return a part of an overview; ``has_more`` tells that there are more rows than were counted."""
    return {
        "count": len(rows) if count is None else count,
        "has_more": has_more or len(rows) > SHOWN,
        "elements": list(rows[:SHOWN]),
    }


def _causes(failed: Iterable[FailedRun]) -> list[Document]:
    """Return failed instances by workflow and first line of the error, the newest first."""
    groups: dict[tuple[str, str], list[FailedRun]] = {}
    for one in failed:
        groups.setdefault((one.run.workflow_id, one.error), []).append(one)
    return [
        {
            "workflow_id": workflow_id,
            "error": error,
            "count": len(group),
            "since": min(_end(one.run) for one in group),
            "until": max(_end(one.run) for one in group),
            **_failed_json(group[0]),
        }
        for (workflow_id, error), group in groups.items()
    ]


def _failed_json(failed: FailedRun) -> Document:
    return {**recent_run_json(failed.run), "path": "/".join(failed.path) or None}


def _end(run: RecentRun) -> int:
    return run.ended_at or run.created_at


def _late_triggers(call: Caller, granted: Sequence[str], now: int) -> list[Document]:
    state = call.services.triggers
    found = [] if state is None else state.overdue(now - GRACE, limit=SHOWN + 1, namespaces=granted)
    return [{"kind": "trigger", **trigger_json(one)} for one in found]


def _long_runs(call: Caller, granted: Sequence[str], now: int) -> list[Document]:
    """Return the instances that have run longer than 1.5 times what 95 % of the last 20 successful ones took."""
    state = call.engine.state
    running = state.running_since(now, namespaces=granted)
    history = state.recent_runs(sorted({run.workflow_id for run in running}), HISTORY) if running else {}
    usual = {workflow_id: _usual(runs) for workflow_id, runs in history.items()}
    late = []
    for run in running:
        usually, taken = usual.get(run.workflow_id), now - (run.started_at or now)
        if usually is not None and taken > FACTOR * usually:
            times = {"duration": taken, "usual_duration": usually}
            late.append({"kind": "run", "workflow_id": run.workflow_id, **recent_run_json(run), **times})
    return late


def _usual(runs: Iterable[RecentRun]) -> int | None:
    """Return within how many milliseconds 95 % of the last successful runs ended; None if there are too few."""
    ended = [run for run in runs if run.status is RunStatus.SUCCEEDED][:SUCCESSES]
    taken = sorted(_end(run) - (run.started_at or run.created_at) for run in ended)
    return taken[ceil(0.95 * len(taken)) - 1] if len(taken) >= FEWEST else None


def _waiting(call: Caller, granted: Sequence[str], failed: Iterable[FailedRun]) -> Document:
    state = call.engine.state
    approvals, paused = state.waiting_counts(namespaces=granted)
    asking = call.engine.approvals(limit=SHOWN, namespaces=granted) if approvals else []
    held = paused_rows(call, granted, SHOWN) if paused else []
    kept = state.held_work(limit=SHOWN + 1, namespaces=granted)
    aside = [one for one in failed if one.message.startswith(SET_ASIDE)]
    rows: list[Document] = [{"kind": "approval", **approval_json(one)} for one in asking]
    rows += [{"kind": "breakpoint", **one} for one in held]
    rows += [
        {
            "kind": "set_aside",
            "workflow_id": one.run.workflow_id,
            **_failed_json(one),
            "since": _end(one.run),
            "message": one.message,
        }
        for one in aside
    ]
    rows += [
        {
            "kind": "held",
            "workflow_id": one.run.workflow_id,
            **recent_run_json(one.run),
            "path": one.step_id,
            "capture_id": one.capture_id,
            "since": one.since,
        }
        for one in kept
    ]
    return _part(rows, approvals + paused + len(aside) + len(kept))
