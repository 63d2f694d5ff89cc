"""Definitions: pushed, checked, listed, read, deleted."""

from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from calve.access import Permission, namespaces
from calve.api import shapes
from calve.api.answers import Document
from calve.api.bodies import Raw
from calve.api.callers import Call, Caller
from calve.api.documents import action_event, timeline_json, version_json, workflow_json, workflow_overview_json
from calve.api.enriching import extras_of
from calve.api.examples import JSON_BODY, YAML_BODY
from calve.api.identifiers import Version, WorkflowId
from calve.api.paging import Paged, page_json, page_of_numbers
from calve.api.policy import EDIT, EDIT_SOMEWHERE, READ, READ_SOMEWHERE
from calve.api.reaching import awaited_by, sent_by, started_by
from calve.api.routing import Routes
from calve.definition import Definition, load
from calve.errors import WorkflowMissing

TIMELINE = 300
routes = Routes("workflows")
_Enriched = Annotated[bool, Query(description="Add the params as they will be, and when it starts next.")]


@routes.post(
    "/workflows", "push_workflow", EDIT_SOMEWHERE, shapes.WorkflowDefinition, openapi_extra=JSON_BODY, is_slow=True
)
@routes.post(
    "/workflows/yaml",
    "push_workflow_yaml",
    EDIT_SOMEWHERE,
    shapes.WorkflowDefinition,
    openapi_extra=YAML_BODY,
    is_slow=True,
)
def push(call: Call, body: Raw) -> Response:
    """Keep a definition as the next version of its workflow."""
    definition, warnings = _read(call, body)
    record = call.engine.push(definition, author=call.name)
    written = version_json(call.engine.workflow(record.workflow_id), record)
    # Maestro has the document inside; calve's own clients look for its fields outside.
    return Document({"workflow_definition": written, **written, **warnings})


@routes.put(
    "/workflows/actions/validate",
    "validate_workflow",
    EDIT_SOMEWHERE,
    shapes.ActionEvent,
    openapi_extra=JSON_BODY,
    is_slow=True,
)
@routes.put(
    "/workflows/actions/validate/yaml",
    "validate_workflow_yaml",
    EDIT_SOMEWHERE,
    shapes.ActionEvent,
    openapi_extra=YAML_BODY,
    is_slow=True,
)
def validate(call: Call, body: Raw) -> Response:
    """Check a definition, and keep nothing."""
    _, warnings = _read(call, body)
    message = "the workflow definition is valid."
    event = action_event("VALIDATE", call.name, call.engine.tools.clock(), message)
    return Document({**event.as_json(), **warnings})


def defined(call: Caller, body: bytes) -> Definition:
    """Return the definition of a body, if the caller may push it.

    Raises:
        DefinitionInvalid: it is none.
    """
    definition, _ = _read(call, body)
    return definition


def _read(call: Caller, body: bytes) -> tuple[Definition, dict[str, Any]]:
    """Return the definition of a body, and what looks wrong in it, for the answer."""
    loaded = load(body, name="the body", vocabulary=call.engine.tools.vocabulary)
    definition = loaded.required()
    workflow = definition.workflow
    call.require(Permission.EDIT, workflow.id)
    for name in (*started_by(workflow), *sent_by(workflow)):
        call.require(Permission.RUN, name)
    for name in awaited_by(workflow):
        call.require(Permission.READ, name)
    warnings = [problem.as_json() for problem in loaded.problems]
    return definition, {"warnings": warnings} if warnings else {}


@routes.get("/workflows", "list_workflows", READ_SOMEWHERE, shapes.Workflows)
def list_workflows(call: Call, page: Paged, search: Annotated[str, Query(max_length=128)] = "") -> Response:
    """List workflows by id; with ``search``, those whose id holds that text."""
    page = page.forward()
    found = call.engine.state.workflows(
        after=page.cursor or "",
        limit=page.limit + 1,
        contains=search,
        namespaces=namespaces(call.principal, Permission.READ),
    )
    return Document(page_json(found, page, workflow_json, lambda one: one.workflow_id))


@routes.delete("/workflows/{workflow_id}", "delete_workflow", EDIT, shapes.ActionEvent)
def delete(call: Call, workflow_id: WorkflowId) -> Response:
    """Forget a workflow and everything that it has done."""
    call.engine.delete(workflow_id)
    message = f"The workflow [{workflow_id}] is deleted."
    return Document(action_event("DELETE", call.name, call.engine.tools.clock(), message).as_json())


@routes.get("/workflows/{workflow_id}/versions/pagination", "list_versions", READ, shapes.Versions, is_slow=True)
def list_versions(call: Call, workflow_id: WorkflowId, page: Paged) -> Response:
    """List the versions of a workflow, newest first."""
    workflow = call.engine.workflow(workflow_id)
    versions = call.engine.state.versions(workflow_id)
    return Document(
        page_of_numbers(versions, page, lambda one: one.version_id, lambda one: version_json(workflow, one))
    )


@routes.get("/workflows/{workflow_id}/versions/{version}", "get_version", READ, shapes.WorkflowDefinition, is_slow=True)
def get_version(call: Call, workflow_id: WorkflowId, version: Version, *, enriched: _Enriched = False) -> Response:
    """Return a version of a workflow."""
    workflow = call.engine.workflow(workflow_id)
    record = call.engine.state.version(workflow_id, version.lower())
    if record is None:
        raise WorkflowMissing(f"{workflow_id} has no version {version}.", workflow=workflow_id)
    return Document(version_json(workflow, record, extras_of(call, record) if enriched else None))


@routes.get("/workflows/{workflow_id}/overview", "get_workflow_overview", READ, shapes.WorkflowOverview)
def overview(call: Call, workflow_id: WorkflowId) -> Response:
    """Return a workflow at a glance: its versions, its properties, how many instances are in which state."""
    workflow = call.engine.workflow(workflow_id)
    state = call.engine.state
    latest = next((run.instance_id for run in state.numbered(workflow_id, limit=1)), None)
    return Document(workflow_overview_json(workflow, state.instance_counts(workflow_id), latest))


@routes.get("/workflows/{workflow_id}/timeline", "get_workflow_timeline", READ, shapes.WorkflowTimeline, is_slow=True)
def timeline(call: Call, workflow_id: WorkflowId) -> Response:
    """Return which versions were pushed, when and by whom, newest first."""
    call.engine.workflow(workflow_id)
    versions = call.engine.state.versions(workflow_id)[:TIMELINE]
    return Document(timeline_json(workflow_id, versions))
