"""A workflow: its graph, runs, definition, triggers, data and settings, each at its own address."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query

from calve.addresses import instance_page, workflow_page
from calve.api import Call, Paged, WebCaller
from calve.definition import to_json, to_yaml
from calve.errors import CalveError
from calve.operations import READ, Operations, Page as Part
from calve.web.formats import duration, shown
from calve.web.frame import may
from calve.web.graph import Edge
from calve.web.graph_svg import NodeText, arrange, graph_svg
from calve.web.highlight import diff_html, json_html, left_out, yaml_html
from calve.web.legend import legend_json, legend_list, status_legend
from calve.web.page import Page, Pages
from calve.web.pages.instance_lists import Filtered, InstanceFilters
from calve.web.pages.workflows import behind_of, run_bars

pages = Pages("workflow", is_slow=True)

Document = dict[str, Any]
TABS = ("graph", "runs", "definition", "triggers", "data", "settings")
_RUNS = 50
"""Maximum number of runs in the grid."""
_VERSIONS = Part(limit=20)
_FIXED = frozenset({"CONSTANT", "IMMUTABLE"})
"""Modes of params that a start cannot set."""
_Text = Annotated[str, Query(max_length=128)]


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The values in the address of the page."""

    workflow_id: str
    tab: str
    page: Part
    is_json: bool
    filters: InstanceFilters

    @property
    def base(self) -> str:
        """The address of the workflow."""
        return workflow_page(self.workflow_id)

    def address(self, **query: Any) -> str:
        """Return the address of the workflow with a query."""
        given = {name: value for name, value in query.items() if value not in {None, ""}}
        return f"{self.base}?{urlencode(given, doseq=True)}" if given else self.base


@dataclass(frozen=True, slots=True)
class _Tab:
    """The content of a tab: a document of the API, and further variables of its template."""

    document: Any
    values: Mapping[str, Any] = field(default_factory=dict)


@pages.get("/workflows/{workflow_id}", "workflow_page", READ, live=True)
def workflow(
    call: Call,
    page: Paged,
    workflow_id: str,
    *,
    filters: Filtered,
    tab: _Text = "graph",
    format_: Annotated[str, Query(alias="format", max_length=4)] = "yaml",
) -> Page:
    """Show a tab of a workflow, by default the graph."""
    operations = Operations(call)
    name = tab if tab in TABS else "graph"
    chosen = _Chosen(workflow_id, name, page, format_ == "json", filters)
    overview = operations.workflow(workflow_id)
    shown_version = operations.version(workflow_id, "default")
    made = _MAKERS[name](call, operations, chosen, shown_version)
    values = {
        "overview": overview,
        "version": shown_version,
        "owner": _owner(overview),
        "tags": _tags(overview, shown_version),
        "is_blocked": _may_be_blocked(overview),
        "tab": name,
        "tabs": [(one, chosen.address(tab=None if one == "graph" else one), one.capitalize()) for one in TABS],
        "chosen": chosen,
        "address": chosen.address,
        "name": workflow_id,
        **made.values,
    }
    # The stream must not replace a form while the user fills it in.
    regions = ("summary", name) if name in {"graph", "runs", "triggers"} else ("summary",)
    return Page("workflows/show.html", workflow_id, made.document, values, here="workflows", regions=regions)


def _owner(overview: Document) -> str:
    owner = overview["properties_snapshot"].get("owner") or ""
    return str(owner.get("name", "")) if isinstance(owner, dict) else str(owner)


def _may_be_blocked(overview: Document) -> bool:
    """Tell whether a failed instance may block later ones; it may have been unblocked already."""
    strategy = overview["properties_snapshot"].get("run_strategy") or {}
    return strategy.get("rule") == "STRICT_SEQUENTIAL" and overview["failed_instances"] > 0


def _tags(overview: Document, version: Document) -> list[str]:
    """Return the tags of the version, and those of the workflow's properties."""
    own = overview["properties_snapshot"].get("tags") or []
    named = [*version["workflow"].get("tags", []), *own]
    return list(dict.fromkeys(str(one["name"]) if isinstance(one, dict) else str(one) for one in named))


def _graph(call: WebCaller, operations: Operations, chosen: _Chosen, version: Document) -> _Tab:
    grid = operations.grid(chosen.workflow_id, runs=20)
    newest = grid["runs"][0] if grid["runs"] else None
    steps = _steps(version["workflow"]["steps"])
    edges = tuple(
        Edge(step_id, successor, "" if condition == "true" else condition)
        for step_id, (_, step) in steps.items()
        for successor, condition in (step.get("transition") or {}).get("successors", {}).items()
        if successor in steps
    )
    told = _told(grid, newest)
    # A definition has at most 300 steps, so the graph is never so large that groups of steps must be closed.
    texts = [_node(step_id, kind, told.get(step_id), chosen, newest) for step_id, (kind, _) in steps.items()]
    picture = graph_svg(texts, arrange(texts, edges), label=f"Steps of {chosen.workflow_id}")
    now = call.engine.tools.clock()
    bars = run_bars({"elements": [{"workflow_id": chosen.workflow_id, "runs": grid["runs"]}]}, now)
    values = {
        "picture": picture,
        "newest": newest,
        "bars": bars[chosen.workflow_id],
        "count": len(steps),
        "upcoming": operations.upcoming_starts(chosen.workflow_id, 1)["elements"],
    }
    return _Tab(operations.workflow(chosen.workflow_id), values)


def _steps(written: Sequence[Document]) -> dict[str, tuple[str, Document]]:
    """Return the steps of a definition by id, each with its type."""
    found = {}
    for one in written:
        ((kind, step),) = one.items()
        found[str(step["id"])] = (str(step.get("type", kind)) if kind == "step" else kind, step)
    return found


def _told(grid: Document, newest: Document | None) -> dict[str, tuple[str, int | None]]:
    """Return the status and the duration of each step in the newest run."""
    if newest is None:
        return {}
    cells = zip(grid["steps"], newest["steps"], newest["durations"], strict=True)
    return {one["step_id"]: (grid["legend"][letter], took) for one, letter, took in cells}


def _node(
    step_id: str, kind: str, told: tuple[str, int | None] | None, chosen: _Chosen, newest: Document | None
) -> NodeText:
    status, took = told or ("", None)
    detail = kind + (f" · {duration(took)}" if took is not None else "")
    place = chosen.address(tab="definition")
    if newest is not None:
        place = instance_page(chosen.workflow_id, newest["workflow_instance_id"], step_id)
    return NodeText(step_id, detail=detail, status=status, href=place)


def _runs(call: WebCaller, operations: Operations, chosen: _Chosen, version: Document) -> _Tab:
    del version
    document = chosen.filters.listed(operations, chosen.page, chosen.workflow_id)
    grid = operations.grid(chosen.workflow_id, runs=_RUNS)
    letters = "".join(run["steps"] for run in grid["runs"])
    query = chosen.filters.query()
    legend = status_legend(grid["legend"])
    now = call.engine.tools.clock()
    values = {
        "grid": {
            "legend": legend_json(legend),
            "items": legend_list(legend, letters),
            "columns": json.dumps([_column(run, now) for run in reversed(grid["runs"])]),
            "lines": _lines(grid),
            "count": len(grid["runs"]),
            "steps": len(grid["steps"]),
        },
        "filters": chosen.filters,
        "list_address": chosen.address(tab="runs", **query),
        "is_filtered": bool(query),
    }
    return _Tab(document, values)


def _column(run: Document, now: int) -> tuple[str, str]:
    took = max(0, run.get("end_time", now) - run.get("start_time", run["create_time"]))
    status = run["status"].replace("_", " ").lower()
    return str(run["workflow_instance_id"]), f"instance {run['workflow_instance_id']}, {status}, {duration(took)}"


def _lines(grid: Document) -> str:
    """Return the grid as one line for each step, with a letter for each run, oldest first."""
    rows = [run["steps"] for run in reversed(grid["runs"])]
    columns = ("".join(letters) for letters in zip(*rows, strict=True))
    return "\n".join(f"{one['step_id']}\t{letters}" for one, letters in zip(grid["steps"], columns, strict=False))


def _definition(call: WebCaller, operations: Operations, chosen: _Chosen, version: Document) -> _Tab:
    versions = operations.list_versions(chosen.workflow_id, _VERSIONS)
    listed = [{"is_active": one["is_active"], **one["metadata"]} for one in versions["elements"]]
    values = {"versions": listed, "has_more": versions["page_info"]["has_next_page"], "warnings": [], "diff": None}
    older, newer, wanted = chosen.filters.since, chosen.filters.until, chosen.filters.version
    if older and newer:
        document = operations.diff(chosen.workflow_id, older, newer)
        return _Tab(document, {**values, "diff": document, "code": diff_html(document["diff"]), "left_out": 0})
    document = operations.version(chosen.workflow_id, wanted) if wanted else version
    text = to_json(document["workflow"], indent=2) if chosen.is_json else to_yaml(document["workflow"])
    code = json_html(text) if chosen.is_json else yaml_html(text)
    warnings = _warnings(call, operations, document)
    return _Tab(document, {**values, "code": code, "left_out": left_out(text), "warnings": warnings})


def _warnings(call: WebCaller, operations: Operations, document: Document) -> list[Document]:
    """Return the warnings about a version, if the caller may push the workflow."""
    if not may(call, "push_workflow", document["metadata"]["workflow_id"]):
        return []
    body = json.dumps({"workflow": document["workflow"]}).encode()
    try:
        return list(operations.validate_workflow(body).get("warnings", []))
    except CalveError as error:  # for example, a step type that is no longer installed
        return [{"message": error.message}]


def _triggers(call: WebCaller, operations: Operations, chosen: _Chosen, version: Document) -> _Tab:
    del call, version
    document = operations.list_triggers(workflow_id=chosen.workflow_id)
    properties = operations.properties(chosen.workflow_id)
    kinds = ("time", "signal", "incremental")
    values = {
        "upcoming": operations.upcoming_starts(chosen.workflow_id)["elements"],
        "waiting": operations.waiting_triggers(chosen.workflow_id),
        "disabled": [kind for kind in kinds if properties.get(f"{kind}_trigger_disabled")],
    }
    return _Tab(document, values)


def _data(call: WebCaller, operations: Operations, chosen: _Chosen, version: Document) -> _Tab:
    """Show the tables that a workflow reads and writes; none if there is no lake."""
    del call, version
    try:
        document = operations.list_tables(page=Part(limit=200), workflow_id=chosen.workflow_id)
    except CalveError:
        document = {"elements": [], "page_info": {"has_next_page": False, "has_previous_page": False}}
    name = chosen.workflow_id
    values = {
        "read": [one for one in document["elements"] if name in one["read_by"]],
        "written": [one for one in document["elements"] if _is_written(one, name)],
        "behind": {one["table"]: one for one in behind_of(operations)["elements"] if one["workflow_id"] == name},
    }
    return _Tab(document, values)


def _is_written(table: Document, workflow_id: str) -> bool:
    return any(stream.partition("/")[0] == workflow_id for stream in table["written_by"])


def _settings(call: WebCaller, operations: Operations, chosen: _Chosen, version: Document) -> _Tab:
    del call
    own = operations.properties(chosen.workflow_id)
    given = [str(one["name"]) for one in own.get("tags") or [] if isinstance(one, dict)]
    written = version["workflow"]
    values = {
        "own_tags": given,
        "strategy": own.get("run_strategy") or {"rule": "SEQUENTIAL"},
        "params": {name: default_of(one) for name, one in (written.get("params") or {}).items()},
    }
    return _Tab(own, values)


_MAKERS = {
    "graph": _graph,
    "runs": _runs,
    "definition": _definition,
    "triggers": _triggers,
    "data": _data,
    "settings": _settings,
}


def default_of(param: Document) -> Document:
    """Return a param for a form: its type, its default, whether that is an expression, and whether it is fixed."""
    is_expression = "expression" in param
    text = str(param["expression"]) if is_expression else shown(param["value"]) if "value" in param else ""
    return {
        "type": str(param.get("type", "STRING")).upper(),
        "default": text,
        "is_expression": is_expression,
        "is_fixed": str(param.get("mode", "")).upper() in _FIXED,
    }
