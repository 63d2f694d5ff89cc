"""What a search finds besides workflows: their steps, tables, consumers, captures, and workflows to start."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from urllib.parse import urlencode

from calve.access import Permission
from calve.addresses import instance_page, table_page, workflow_page
from calve.engine import WorkflowQuery, WorkflowRow
from calve.errors import AccessError, CaptureMissing, RequestInvalid
from calve.operations.caller import Caller
from calve.operations.declaration import Document

MOST = 5
"""Maximum number of results of each kind."""
_START = re.compile(r"start(?:\s+(?P<name>\S*))?$", re.IGNORECASE)
_CAPTURE = re.compile(r"[a-z0-9]{8,36}$")
"""The pattern of the ids of captures."""


def jumps(call: Caller, text: str, rows: Sequence[WorkflowRow], granted: Sequence[str]) -> Iterator[Document]:
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
    for workflow_id in sorted(ids, key=len)[:MOST]:
        yield _jump("action", f"start {workflow_id}", f"{workflow_page(workflow_id)}/start")


def _steps(call: Caller, text: str, rows: Iterable[WorkflowRow]) -> Iterator[Document]:
    """Yield the steps whose ids contain a text, each in the newest instance of its workflow."""
    found = [(row.workflow.workflow_id, step) for row in rows for step in _ids(row) if text in step.lower()][:MOST]
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
    yield from (_jump("table", name, table_page(name)) for name in names[:MOST])
    consumers = sorted({one for use in uses for one in use.consumers if text in one.lower()})
    yield from (_jump("consumer", name, f"/captures?{urlencode({'consumer': name})}") for name in consumers[:MOST])
    if _CAPTURE.match(text):
        with suppress(CaptureMissing, AccessError):
            call.captures.show(text)
            yield _jump("capture", text, f"/captures/{text}")


def _jump(kind: str, title: str, path: str) -> Document:
    return {"kind": kind, "title": title, "path": path, "matches": []}
