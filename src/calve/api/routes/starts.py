"""Starts of instances."""

from fastapi import APIRouter
from starlette.responses import Response

from calve.access import Permission
from calve.api.answers import Document
from calve.api.bodies import StartRequest
from calve.api.identifiers import PREFIX, Version, WorkflowId
from calve.api.policy import needs
from calve.api.services import Call
from calve.engine.views import started_json

router = APIRouter(prefix=PREFIX, tags=["starts"])


@router.post(
    "/workflows/{workflow_id}/versions/{version}/actions/start",
    operation_id="start_workflow",
    dependencies=[needs(Permission.RUN)],
)
def start(call: Call, workflow_id: WorkflowId, version: Version, request: StartRequest) -> Response:
    """Start an instance; the same request id starts it once."""
    started = call.engine.start(workflow_id, version=version, **request.as_start(call.name))
    return Document(started_json(started))
