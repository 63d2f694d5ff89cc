"""An instance: its steps as a graph, by time or as a list; and of one step the cause, the log and what it delivered."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import Query, Request
from markupsafe import Markup
from starlette.responses import RedirectResponse, Response

from calve.api import Call, WebCaller
from calve.errors import AccessError, CalveError
from calve.operations import READ, RUN, Operations
from calve.web.charts import Span, run_spans
from calve.web.formats import duration, number
from calve.web.frame import may
from calve.web.graph import Edge
from calve.web.graph_svg import NodeText, arrange, graph_svg
from calve.web.page import Page, Pages

pages = Pages("instances", is_slow=True)

Document = dict[str, Any]
_OVER = frozenset({"SUCCEEDED", "FAILED", "STOPPED", "TIMED_OUT"})
_VIEWS = ("graph", "time", "list")
_LOG_LINES = 400
_HARMLESS = frozenset(
    {"NoOp", "Approval", "Sleep", "IpCapture", "IpCommit", "ICDC", "foreach", "while", "subworkflow", "template"}
)
"""Types of steps without effects that a second attempt would repeat."""
_STEP_ACTIONS = {
    "STOP": ("stop_step", "Stop"),
    "KILL": ("kill_step", "Kill"),
    "SKIP": ("skip_step", "Skip"),
    "RESUME": ("resume_step", "Resume"),
    "BYPASS_STEP_DEPENDENCIES": ("bypass_step", "Continue without signals"),
}
"""The operation and the label of each action on a step; a restart has a page of its own."""
_INSTANCE_ACTIONS = {"STOP": ("stop_instance", "Stop"), "KILL": ("kill_instance", "Kill")}
_Text = Annotated[str, Query(max_length=1_000)]
_Number = Annotated[int | None, Query(ge=1, lt=2**31)]


@pages.get("/workflows/{workflow_id}/instances/{instance_id}", "instance_page", READ, live=True)
def instance(
    call: Call,
    workflow_id: str,
    instance_id: int,
    *,
    run: _Number = None,
    step: _Text = "",
    attempt: _Number = None,
    tab: _Text = "",
    view: _Text = "graph",
    find: _Text = "",
) -> Page:
    """Show a run of an instance, the latest unless ``run`` names another, and one of its steps."""
    operations = Operations(call)
    document = operations.instance(workflow_id, instance_id, run)
    chosen = step or _most_urgent(document)
    view = view if view in _VIEWS else "graph"
    query = {"run": run, "view": view if view != "graph" else None}
    address = _Address(workflow_id, instance_id, query)
    shown = _step(operations, document, chosen, attempt)
    log = _log(operations, document, chosen, shown, find) if tab == "log" else None
    values = {
        "address": address,
        "view": view,
        "step": shown,
        "chosen": chosen,
        "tab": tab or _first_tab(shown),
        "tabs": _tabs(call, workflow_id, shown),
        "picture": _picture(document, chosen, address, view, call.engine.tools.clock()),
        "took": took,
        "runs": _runs(operations, document, run),
        "actions": _actions(operations, document, shown, chosen),
        "plan": _plan(call, operations, document),
        "log": log,
        "find": find,
        "attempts": _attempts(operations, document, chosen, shown) if tab == "attempts" else [],
        "failure": next((one for one in document["failures"] if one["path"] == chosen), None),
        "wait": next((one for one in document["waiting"] if one["path"] == chosen), None),
    }
    # A search through a whole log is not repeated with each event.
    regions = ("summary", "steps") if tab == "log" and find else ("summary", "steps", "step")
    title = f"Instance {instance_id}"
    return Page("instances/show.html", title, document, values, here="workflows", regions=regions)


class _Address:
    """The address of the page, and of parts of it: the URL is the state of the page."""

    def __init__(self, workflow_id: str, instance_id: int, query: Mapping[str, Any]) -> None:
        self.base = f"/workflows/{quote(workflow_id, safe='')}/instances/{instance_id}"
        self._query = query

    def __call__(self, **changed: Any) -> str:
        """Return the address with other values of its query."""
        query = {name: value for name, value in {**self._query, **changed}.items() if value is not None}
        return f"{self.base}?{urlencode(query)}" if query else self.base


def _runs(operations: Operations, document: Document, run: int | None) -> list[int]:
    """Return the numbers of the instance's runs, if there is more than one."""
    if run is None and document["workflow_run_id"] == 1:
        return []
    found = operations.list_runs(document["workflow_id"], document["workflow_instance_id"])
    return [one["workflow_run_id"] for one in found["elements"]][::-1]


def _most_urgent(document: Document) -> str:
    """Return which step to show if none is chosen: what failed, else what waits or runs, else the first."""
    for one in (*document["failures"], *document["waiting"], *document["progress"]):
        return str(one["path"])
    running = [one for one in document["steps"] if "end_time" not in one.get("runtime_state", {"end_time": 0})]
    first = (running or document["steps"])[:1]
    return str(first[0]["step_id"]) if first else ""


def _step(operations: Operations, document: Document, path: str, attempt: int | None) -> Document | None:
    """Return the document of the step that is shown: from the run itself, unless it is inside of another step."""
    if attempt is not None:
        which = document["workflow_id"], document["workflow_instance_id"], path, attempt
        return operations.attempt(*which, run_id=document["workflow_run_id"])
    at_hand = next((one for one in document["steps"] if one["step_id"] == path), None)
    if at_hand is not None or not path:
        return at_hand
    return operations.step(document["workflow_id"], document["workflow_instance_id"], path)


def _first_tab(step: Document | None) -> str:
    return "cause" if step is not None and step.get("message") else "about"


def _tabs(call: WebCaller, workflow_id: str, step: Document | None) -> list[tuple[str, str]]:
    """Return the tabs that a step has: name and label of each."""
    if step is None or "step_attempt_id" not in step:
        return [("about", "About")]
    artifacts = step.get("artifacts", {})
    names = [("cause", "Cause")] if step.get("message") else []
    names.append(("about", "About"))
    if "maestro_foreach" not in artifacts and may(call, "get_logs", workflow_id):
        names.append(("log", "Log"))
    names.append(("params", "Params"))
    if any(key in artifacts for key in ("capture_id", "published", "spark", "merge", "tables_read")):
        names.append(("data", "Data"))
    return [*names, ("attempts", "Attempts")]


def _picture(document: Document, chosen: str, address: _Address, view: str, now: int) -> Markup | None:
    """Return the graph or the times of the steps, as SVG."""
    rows = document["steps"]
    if view == "list" or not rows:
        return None
    if view == "time":
        return run_spans(_spans(rows, address), now=now)
    selected = chosen.partition("/")[0]
    texts = [
        NodeText(
            one["step_id"],
            detail=detail_of(one, now),
            status=one["status"],
            href=address(step=one["step_id"]),
            is_selected=one["step_id"] == selected,
        )
        for one in rows
    ]
    return graph_svg(texts, arrange(texts, _edges(document)), label=f"Steps of {document['workflow_id']}")


def _spans(steps: Iterable[Document], address: _Address) -> list[Span]:
    """Return when steps ran, in the order of their starts; steps that have not started are omitted."""
    begun = [(one, one["runtime_state"]) for one in steps if "start_time" in one.get("runtime_state", {})]
    spans = [
        Span(one["step_id"], one["status"], times["start_time"], times.get("end_time"), address(step=one["step_id"]))
        for one, times in begun
    ]
    return sorted(spans, key=lambda span: span.start)


def _edges(document: Document) -> list[Edge]:
    dag = document["runtime_dag"]
    return [
        Edge(name, successor, "" if condition == "true" else condition)
        for name, node in dag.items()
        for successor, condition in node.get("successors", {}).items()
        if successor in dag
    ]


def took(step: Document, now: int) -> str:
    """Return how long a step took, or has run so far; empty if it has not started."""
    times = step.get("runtime_state", {})
    if "start_time" not in times:
        return ""
    end = times.get("end_time")
    return duration(max(0, (now if end is None else end) - times["start_time"])) + ("" if end else " so far")


def detail_of(step: Document, now: int) -> str:
    """Return the second line about a step: what it moved, or how far it is, and how long it took."""
    parts = [_moved(step), took(step, now)]
    return " · ".join(part for part in parts if part) or step["status"].replace("_", " ").lower()


def _moved(step: Document) -> str:
    """Return what a step did, in a few words."""
    if "iterations" in step:
        found = step["iterations"]
        of = f"{found['done']} of {found['total']}" if found.get("total") is not None else str(found["done"])
        return f"{of} iterations" + (f", {found['failed']} failed" if found["failed"] else "")
    if "child" in step:
        return f"{step['child']['workflow_id']} {step['child']['workflow_instance_id']}"
    outputs = {name: one.get("evaluated_result") for name, one in step.get("params", {}).items()}
    if step.get("type") in {"IpCapture", "ICDC"} and outputs.get("files") is not None:
        return f"{number(outputs['files'])} files"
    written = step.get("artifacts", {}).get("spark", {}).get("rows_written")
    return f"{number(written)} rows" if written else ""


def _actions(operations: Operations, document: Document, step: Document | None, path: str) -> Document:
    """Return what can be done with the instance and with the step, as their statuses allow it."""
    named = {"workflow_id": document["workflow_id"], "instance_id": document["workflow_instance_id"]}
    of_instance = operations.instance_actions()[document["status"]]
    of_step = operations.step_actions()[step["status"]] if step is not None else []
    is_over = document["status"] in _OVER
    return {
        "instance": [(*_INSTANCE_ACTIONS[one], named) for one in of_instance if one in _INSTANCE_ACTIONS],
        "is_restartable": "RESTART" in of_instance,
        "is_blocking": "UNBLOCK" in of_instance,
        "step": [
            (*_STEP_ACTIONS[one], {**named, "step_id": path}) for one in of_step if one in _STEP_ACTIONS and not is_over
        ],
        "is_step_restartable": "RESTART" in of_step and "/" not in path,
        "named": named,
    }


def _plan(call: WebCaller, operations: Operations, document: Document) -> Document | None:
    """Return what a restart would run again, if the instance failed and the viewer may restart it."""
    if document["status"] not in _OVER - {"SUCCEEDED"} or not may(call, "plan_restart", document["workflow_id"]):
        return None
    try:
        plan = operations.plan_restart(document["workflow_id"], document["workflow_instance_id"])
    except CalveError:  # it was restarted or deleted meanwhile
        return None
    fates = _sorted_fates(plan)
    return {**plan, **fates, "delivered": _delivered(document), "repeated": _repeated(document, fates["again"])}


def _sorted_fates(plan: Document) -> Document:
    again = [one["step_id"] for one in plan["steps"] if one["fate"] != "KEPT"]
    return {"again": again, "kept": [one["step_id"] for one in plan["steps"] if one["fate"] == "KEPT"]}


def _repeated(document: Document, again: Sequence[str]) -> list[str]:
    """Return the steps whose work a restart repeats although nothing undoes what they did: they have no targets."""
    begun = [step for step in document["steps"] if step["step_id"] in again and "step_attempt_id" in step]
    own = [step for step in begun if step["type"] not in _HARMLESS]
    return [step["step_id"] for step in own if not step["definition"].get("step", {}).get("targets")]


def _delivered(document: Document) -> list[Document]:
    """Return what the steps of a run have published: step, table and snapshot of each."""
    return [
        {"step_id": step["step_id"], **one}
        for step in document["steps"]
        for one in step.get("artifacts", {}).get("published", [])
    ]


def _log(operations: Operations, document: Document, path: str, step: Document | None, find: str) -> Document | None:
    """Return the end of the step's log, or the lines that hold a text; None if it has none or it may not be read."""
    if step is None or "step_attempt_id" not in step:
        return None
    which = document["workflow_id"], document["workflow_instance_id"], path
    try:
        if find:
            return operations.find_in_log(*which, find, attempt=step["step_attempt_id"], ignore_case=True)
        return operations.log_page(*which, attempt=step["step_attempt_id"], tail=_LOG_LINES)
    except AccessError:
        return None


def _attempts(operations: Operations, document: Document, path: str, step: Document | None) -> list[Document]:
    """Return the attempts of the step in this run, newest first; those of an earlier run are on its page."""
    last = 0 if step is None else step.get("step_attempt_id", 0)
    which = document["workflow_id"], document["workflow_instance_id"], path
    found = []
    for attempt_id in range(last, max(0, last - 50), -1):
        try:
            found.append(operations.attempt(*which, attempt_id, run_id=document["workflow_run_id"]))
        except CalveError:  # an attempt of an earlier run
            break
    return found


@pages.get("/workflows/{workflow_id}/instances/{instance_id}/restart", "restart_page", RUN)
def restart(call: Call, request: Request, workflow_id: str, instance_id: int, step: _Text = "") -> Page:
    """Show which steps a restart would run again and which it would keep, and ask for confirmation."""
    operations = Operations(call)
    plan = operations.plan_restart(workflow_id, instance_id, step or None)
    latest = operations.version(workflow_id, "latest")
    values = {
        "plan": {**plan, **_sorted_fates(plan)},
        "step": step,
        "workflow_id": workflow_id,
        "instance_id": instance_id,
        "delivered": _delivered(operations.instance(workflow_id, instance_id)),
        "next": _Address(workflow_id, instance_id, {})(),
        "is_newer": plan["restart_version_id"] != latest["metadata"]["workflow_version_id"],
    }
    is_fragment = request.headers.get("x-calve-fragment") == "1"
    template = "instances/_restart.html" if is_fragment else "instances/restart.html"
    return Page(template, "Restart", plan, values, here="workflows")


@pages.get("/workflows/{workflow_id}/instances", "instances_page", READ)
def instances(workflow_id: str, call: Call) -> Response:  # noqa: ARG001 - pages take the caller
    """Lead to the runs of the workflow."""
    return RedirectResponse(f"/workflows/{quote(workflow_id, safe='')}?tab=runs", 303)
