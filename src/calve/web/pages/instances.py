"""An instance: its steps as a graph, a timeline or a list; and the cause, the log and the data of one step."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query, Request
from markupsafe import Markup
from starlette.responses import RedirectResponse, Response

from calve.addresses import instance_page, workflow_page
from calve.api import Call, WebCaller
from calve.errors import CalveError, WorkflowMissing
from calve.operations import READ, RUN, Operations
from calve.web.charts import Span, run_spans
from calve.web.deliveries import captured, delivered, targets_of
from calve.web.formats import duration, number
from calve.web.frame import may
from calve.web.graph import Edge
from calve.web.graph_svg import NodeText, arrange, graph_svg
from calve.web.page import Page, Pages
from calve.web.pages.parts import InstanceId

pages = Pages("instances", is_slow=True)

Document = dict[str, Any]
_OVER = frozenset({"SUCCEEDED", "FAILED", "STOPPED", "TIMED_OUT"})
_VIEWS = ("graph", "time", "list")
_LOG_BYTES = 65_536
"""Maximum size of the end of a log that is part of a page; ``<log-tail>`` loads pages of the same size."""
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
    instance_id: InstanceId,
    *,
    run: _Number = None,
    step: _Text = "",
    attempt: _Number = None,
    tab: _Text = "",
    view: _Text = "graph",
    find: _Text = "",
) -> Page:
    """Show a run of an instance, by default the latest, and one of its steps."""
    operations = Operations(call)
    document = operations.instance(workflow_id, instance_id, run)
    runs = _runs(operations, document, run)
    is_old = document["workflow_run_id"] != (runs or [document["workflow_run_id"]])[-1]
    chosen = step or _most_urgent(document)
    view = view if view in _VIEWS else "graph"
    address = _Address(workflow_id, instance_id, {"run": run, "view": view if view != "graph" else None})
    shown = _step(operations, document, chosen, attempt, is_old=is_old)
    log = _log(operations, document, chosen, shown, find) if tab == "log" else None
    values = {
        "address": address,
        "view": view,
        "step": shown,
        "chosen": chosen,
        "attempt": attempt,
        "tab": tab or _first_tab(shown),
        "tabs": _tabs(call, document, shown, chosen),
        "picture": _picture(document, chosen, address, view, call.engine.tools.clock()),
        "took": took,
        "runs": runs,
        "is_old": is_old,
        "actions": _NO_ACTIONS if is_old else _actions(operations, document, shown, chosen),
        "plan": None if is_old else _plan(call, operations, document),
        "targets": targets_of(shown) if shown else [],
        "captured": captured(document, chosen),
        "signals": _signals(operations, document),
        "log": log,
        "find": find,
        "attempts": _attempts(operations, document, chosen, shown) if tab == "attempts" else [],
        "failure": next((one for one in document["failures"] if one["path"] == chosen), None),
        "wait": next((one for one in document["waiting"] if one["path"] == chosen), None),
    }
    # While a log is searched, the stream leaves out the step: each event would repeat the search.
    regions = ("summary", "steps", "history") if tab == "log" and find else ("summary", "steps", "step", "history")
    title = f"Instance {instance_id}"
    return Page("instances/show.html", title, document, values, here="workflows", regions=regions)


class _Address:
    """The address of the page, whose query is the state of the page."""

    def __init__(self, workflow_id: str, instance_id: int, query: Mapping[str, Any]) -> None:
        self.base = instance_page(workflow_id, instance_id)
        self.query = query

    def __call__(self, **changed: Any) -> str:
        """Return the address with some values of its query changed."""
        query = {name: value for name, value in {**self.query, **changed}.items() if value is not None}
        return f"{self.base}?{urlencode(query)}" if query else self.base


def _runs(operations: Operations, document: Document, run: int | None) -> list[int]:
    """Return the numbers of the instance's runs, if there is more than one."""
    if run is None and document["workflow_run_id"] == 1:
        return []
    found = operations.list_runs(document["workflow_id"], document["workflow_instance_id"])
    return [one["workflow_run_id"] for one in found["elements"]][::-1]


def _most_urgent(document: Document) -> str:
    """Return the step to show by default: the first that failed, else that waits or runs, else the first of all."""
    for one in (*document["failures"], *document["waiting"], *document["progress"]):
        return str(one["path"])
    running = [one for one in document["steps"] if "end_time" not in one.get("runtime_state", {"end_time": 0})]
    first = (running or document["steps"])[:1]
    return str(first[0]["step_id"]) if first else ""


def _step(
    operations: Operations, document: Document, path: str, attempt: int | None, *, is_old: bool
) -> Document | None:
    """Return the document of the selected step; None if the run has no such attempt.

    The document of the run contains the newest attempts of its own steps; others, such as those of steps inside other
    steps, are read separately.
    """
    which = document["workflow_id"], document["workflow_instance_id"], path
    at_hand = next((one for one in document["steps"] if one["step_id"] == path), None)
    if not path or (at_hand is not None and attempt in {None, at_hand.get("step_attempt_id")}):
        return at_hand
    try:
        if attempt is None and not is_old:
            return operations.step(*which)
        return operations.attempt(*which, attempt or "latest", run_id=_run_of(document, path))
    except WorkflowMissing:
        return None


def _run_of(document: Document, path: str) -> int:
    """Return the run that executed a step: an earlier one, if this run has kept the result of the step."""
    known = {one["step_id"]: one.get("workflow_run_id") for one in document["steps"]}
    return int(known.get(path) or document["workflow_run_id"])


def _first_tab(step: Document | None) -> str:
    return "cause" if step is not None and step.get("message") else "about"


def _tabs(call: WebCaller, document: Document, step: Document | None, path: str) -> list[tuple[str, str]]:
    """Return the name and the label of each tab that a step has."""
    if step is None or "step_attempt_id" not in step:
        return [("about", "About")]
    artifacts = step.get("artifacts", {})
    names = [("cause", "Cause")] if step.get("message") else []
    names.append(("about", "About"))
    if "maestro_foreach" not in artifacts and may(call, "get_logs", document["workflow_id"]):
        names.append(("log", "Log"))
    names.append(("params", "Params"))
    is_about_data = any(key in artifacts for key in ("capture_id", "published", "spark", "merge", "tables_read"))
    if is_about_data or targets_of(step) or captured(document, path):
        names.append(("data", "Data"))
    return [*names, ("attempts", "Attempts")]


def _picture(document: Document, chosen: str, address: _Address, view: str, now: int) -> Markup | None:
    """Return the graph or the timeline of the steps; None if the page shows a list."""
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
    """Return the times of steps, in the order of their starts; steps that have not started are left out."""
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
    """Return the second line of a step: what it did and how long it took; its status if neither is known."""
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


_NO_ACTIONS: Document = {
    "instance": [],
    "is_restartable": False,
    "is_blocking": False,
    "step": [],
    "is_step_restartable": False,
    "breakpoint": None,
    "named": {},
}
"""The actions on a run that is not the latest one."""


def _actions(operations: Operations, document: Document, step: Document | None, path: str) -> Document:
    """Return the actions that the statuses of the instance and of the step allow."""
    named = {"workflow_id": document["workflow_id"], "instance_id": document["workflow_instance_id"]}
    of_instance = operations.instance_actions()[document["status"]]
    of_step = operations.step_actions()[step["status"]] if step is not None else []
    is_over = document["status"] in _OVER
    return {
        "instance": [(*_INSTANCE_ACTIONS[one], named) for one in of_instance if one in _INSTANCE_ACTIONS],
        "is_restartable": "RESTART" in of_instance,
        "is_blocking": "UNBLOCK" in of_instance and _is_strict(operations, document["workflow_id"]),
        "step": [
            (*_STEP_ACTIONS[one], {**named, "step_id": path}) for one in of_step if one in _STEP_ACTIONS and not is_over
        ],
        "is_step_restartable": "RESTART" in of_step and "/" not in path,
        "breakpoint": _breakpoint(operations, document, step, path),
        "named": named,
    }


def _is_strict(operations: Operations, workflow_id: str) -> bool:
    """Tell whether a failed instance blocks later ones, by the run strategy STRICT_SEQUENTIAL."""
    strategy = operations.properties(workflow_id).get("run_strategy") or {}
    return bool(strategy.get("rule") == "STRICT_SEQUENTIAL")


def _breakpoint(
    operations: Operations, document: Document, step: Document | None, path: str
) -> tuple[str, str, Document] | None:
    """Return the operation that sets or removes a breakpoint at a step, its label and its arguments.

    None if the step will not start again in this instance, or belongs to a subworkflow, which has its own breakpoints.
    """
    *around, step_id = path.split("/")
    is_own = len(around) % 2 == 0 and all(part.isdecimal() for part in around[1::2])
    if step is None or not is_own or (document["status"] == "SUCCEEDED" or _has_passed(document, step)):
        return None
    named, instance_id = {"workflow_id": document["workflow_id"], "step_id": step_id}, document["workflow_instance_id"]
    known = (one["workflow_instance_id"] for one in operations.breakpoints(**named))
    here = max((one for one in known if one in {0, instance_id}), default=None)
    if here is None:
        return "add_breakpoint", "Set a breakpoint", {**named, "workflow_instance_id": instance_id}
    label = "Remove the breakpoint" if here else "Remove the breakpoint of all instances"
    return "delete_breakpoint", label, {**named, "instance_id": here}


def _has_passed(document: Document, step: Document) -> bool:
    return document["status"] not in _OVER and "end_time" in step.get("runtime_state", {})


def _signals(operations: Operations, document: Document) -> list[tuple[str, Document]]:
    """Return the signals that started the instance or released its steps, and those that it sent."""
    try:
        found = operations.instance_signals(document["workflow_id"], document["workflow_instance_id"])
    except CalveError:  # the server has no signals
        return []
    labels = (("started_by", "started by"), ("released_by", "released by"), ("sent", "sent"))
    return [(label, one) for key, label in labels for one in found[key]]


def _plan(call: WebCaller, operations: Operations, document: Document) -> Document | None:
    """Return which steps a restart would run again, if the instance did not succeed and the caller may restart it."""
    if document["status"] not in _OVER - {"SUCCEEDED"} or not may(call, "plan_restart", document["workflow_id"]):
        return None
    try:
        plan = operations.plan_restart(document["workflow_id"], document["workflow_instance_id"])
    except CalveError:  # it was restarted or deleted meanwhile
        return None
    return {**plan, **_sorted_fates(plan), "delivered": delivered(document["steps"])}


def _sorted_fates(plan: Document) -> Document:
    again = [one["step_id"] for one in plan["steps"] if one["fate"] != "KEPT"]
    return {"again": again, "kept": [one["step_id"] for one in plan["steps"] if one["fate"] == "KEPT"]}


def _log(operations: Operations, document: Document, path: str, step: Document | None, find: str) -> Document | None:
    """Return the end of the step's log, or its lines that contain a text; None if there is no readable log."""
    if step is None or "step_attempt_id" not in step:
        return None
    which = document["workflow_id"], document["workflow_instance_id"], path
    place = {"attempt": step["step_attempt_id"], "run": _run_of(document, path)}
    try:
        if find:
            found = operations.find_in_log(*which, find, ignore_case=True, **place)
        else:
            found = operations.log_page(*which, offset=-_LOG_BYTES, limit=_LOG_BYTES, **place)
    except CalveError:
        return None
    return {**found, **place}


def _attempts(operations: Operations, document: Document, path: str, step: Document | None) -> list[Document]:
    """Return the newest 50 attempts of the step in its run, newest first."""
    last = 0 if step is None else step.get("step_attempt_id", 0)
    which = document["workflow_id"], document["workflow_instance_id"], path
    found = []
    for attempt_id in range(last, max(0, last - 50), -1):
        try:
            found.append(operations.attempt(*which, attempt_id, run_id=_run_of(document, path)))
        except CalveError:  # it was deleted meanwhile
            break
    return found


@pages.get("/workflows/{workflow_id}/instances/{instance_id}/restart", "restart_page", RUN)
def restart(call: Call, request: Request, workflow_id: str, instance_id: InstanceId, step: _Text = "") -> Page:
    """Show which steps a restart would run again and which it would keep, and ask for confirmation."""
    operations = Operations(call)
    plan = operations.plan_restart(workflow_id, instance_id, step or None)
    latest = operations.version(workflow_id, "latest")
    values = {
        "plan": {**plan, **_sorted_fates(plan)},
        "step": step,
        "workflow_id": workflow_id,
        "instance_id": instance_id,
        "delivered": delivered(operations.instance(workflow_id, instance_id)["steps"]),
        "next": _Address(workflow_id, instance_id, {})(),
        "is_newer": plan["restart_version_id"] != latest["metadata"]["workflow_version_id"],
    }
    is_fragment = request.headers.get("x-calve-fragment") == "1"
    template = "instances/_restart.html" if is_fragment else "instances/restart.html"
    return Page(template, "Restart", plan, values, here="workflows")


@pages.get("/workflows/{workflow_id}/instances", "instances_page", READ)
def instances(workflow_id: str, call: Call) -> Response:  # noqa: ARG001 - pages take the caller
    """Redirect to the runs of the workflow."""
    return RedirectResponse(f"{workflow_page(workflow_id)}?tab=runs", 303)
