"""Definitions: pushed, checked, read."""

from fastapi import APIRouter
from starlette.responses import Response

from calve.access import Permission
from calve.api.answers import Document
from calve.api.documents import version_json
from calve.api.identifiers import PREFIX, Body, Version, WorkflowId
from calve.api.policy import Scope, needs
from calve.api.services import Call
from calve.definition import load
from calve.errors import WorkflowMissing

router = APIRouter(prefix=PREFIX, tags=["workflows"])


@router.post("/workflows", operation_id="push_workflow", dependencies=[needs(Permission.EDIT, Scope.SOMEWHERE)])
@router.post(
    "/workflows/yaml", operation_id="push_workflow_yaml", dependencies=[needs(Permission.EDIT, Scope.SOMEWHERE)]
)
def push(call: Call, body: Body) -> Response:
    """Keep a definition as the next version of its workflow."""
    definition = load(body, name="the body", vocabulary=call.engine.tools.vocabulary).required()
    call.require(Permission.EDIT, definition.workflow.id)
    record = call.engine.push(definition, author=call.name)
    return Document(version_json(call.engine.workflow(record.workflow_id), record))


@router.get(
    "/workflows/{workflow_id}/versions/{version}",
    operation_id="get_workflow_version",
    dependencies=[needs(Permission.READ)],
)
def get_version(call: Call, workflow_id: WorkflowId, version: Version) -> Response:
    """Return a version of a workflow."""
    workflow = call.engine.workflow(workflow_id)
    record = call.engine.state.version(workflow_id, version.lower())
    if record is None:
        raise WorkflowMissing(f"{workflow_id} has no version {version}.", workflow=workflow_id)
    return Document(version_json(workflow, record))
