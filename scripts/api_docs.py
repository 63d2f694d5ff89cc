"""Generate reference pages from declarations: REST routes, the GraphQL schema, Maestro's documents.

From the root of the repository: python scripts/api_docs.py [--check]
"""

import sys
from collections import defaultdict

from fastapi.routing import APIRoute  # noqa: TID253 - the routes are what the page lists
from generated import REFERENCE, between, write

from calve.api import access
from calve.api.app import routers
from calve.api.graphql.server import SCHEMA
from calve.api.routes import policy_of
from calve.engine import views
from calve.engine.views import Document
from calve.operations import PREFIX, declared, models

REST = REFERENCE / "rest.md"
GRAPHQL = REFERENCE / "graphql.md"
MAESTRO = REFERENCE / "maestro-documents.md"
DOCUMENTS: dict[str, tuple[type[Document], ...]] = {
    "instances": (
        views.WorkflowInstance,
        views.RunConfig,
        views.RestartConfig,
        views.RunProperties,
        views.InitiatorDocument,
        views.RuntimeOverview,
        views.StatusSummary,
        views.RollupOverview,
        views.CountReference,
        views.AggregatedInfo,
        views.StepAggregatedView,
    ),
    "steps": (
        views.StepInstance,
        views.RuntimeState,
        views.InstanceTransition,
        views.StepRetry,
        views.SignalDependencies,
        views.SignalOutputs,
        views.SignalOutput,
    ),
    "artifacts": (
        views.ForeachArtifact,
        views.ForeachOverview,
        views.WhileArtifact,
        views.SubworkflowArtifact,
        views.NotebookArtifact,
        views.HttpArtifact,
        views.KubernetesArtifact,
    ),
    "timelines": (views.LogEvent, views.StatusEvent, views.ActionEvent),
    "answers": (
        views.StartResponse,
        views.StepRestartResponse,
        models.InstanceAction,
        models.StepAction,
        models.WorkflowAction,
    ),
    "workflows": (
        models.WorkflowDefinition,
        models.PropertiesSnapshot,
        models.Metadata,
        models.DefinitionExtras,
        models.WorkflowOverview,
        views.WorkflowTimeline,
        views.WorkflowTimelineEvent,
    ),
    "signals, permits, breakpoints": (
        views.SignalInstance,
        models.TagPermit,
        models.StepBreakpoint,
        models.BreakpointDeleted,
        models.PausedAttempt,
    ),
}
"""The documents of each section of the page about Maestro's."""
HEAD = ("| | path | permission | method | what |", "|---|---|---|---|---|")


def rest(text: str) -> str:
    """Return the page with a table of routes for each topic."""
    rows: defaultdict[str, list[str]] = defaultdict(list)
    for router in (*routers(), *access.ROUTERS):
        rows[str(router.tags[0])] += [_row(route) for route in router.routes if isinstance(route, APIRoute)]
    for topic, lines in rows.items():
        text = between(text, topic, "\n".join([*HEAD, *lines]))
    return text


def _row(route: APIRoute) -> str:
    policy = policy_of(route)
    assert policy is not None, route.path  # noqa: S101 - the server refuses to start without
    (verb,) = route.methods or {""}
    path = route.path.replace(":path", "")
    shown = f"`{path.removeprefix(PREFIX)}`" + ("" if path.startswith(PREFIX) else f" (not under `{PREFIX}`)")
    method = _METHODS.get(route.operation_id or "", "")
    what = (route.description or "").partition("\n")[0].replace("``", "`")
    return f"| {verb} | {shown} | {policy.permission.value} {policy.scope.value} | {method} | {what} |"


_METHODS = {one.id: f"`{one.name}`" for _, one in declared()}


def graphql(text: str) -> str:
    """Return the page with the schema."""
    return between(text, "schema", f"```graphql\n{SCHEMA.as_str().strip()}\n```")


def maestro(text: str) -> str:
    """Return the page with a table for each document: which fields are the same, added, or left out."""
    for section, documents in DOCUMENTS.items():
        text = between(text, section, "\n".join(_table(one) for one in documents))
    return text


def _table(model: type[Document]) -> str:
    same = [name for name in model.names() if name not in model.ADDED]
    rows = [
        *(f"| `{name}` | same{', not in lists' if name in model.ALONE else ''} | |" for name in same),
        *(f"| `{name}` | added | {why} |" for name, why in model.ADDED.items()),
        *(f"| `{name}` | left out | {why} |" for name, why in model.LEFT_OUT.items()),
    ]
    title = model.__name__.removesuffix("Document")
    doc = (model.__doc__ or "").replace("``", "`").splitlines()[0]
    return "\n".join([f"### {title}", "", doc, "", "| field | | |", "|---|---|---|", *rows, ""])


def main() -> int:
    """Write the pages, or tell which of them are out of date."""
    pages = {REST: rest, GRAPHQL: graphql, MAESTRO: maestro}
    return write({path: page(path.read_text(encoding="utf-8")) for path, page in pages.items()}, "api-docs")


if __name__ == "__main__":
    sys.exit(main())
