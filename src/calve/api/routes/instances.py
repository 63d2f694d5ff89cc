"""Instances and their runs."""

from fastapi import APIRouter
from starlette.responses import Response

from calve.access import Permission
from calve.api.answers import Document
from calve.api.identifiers import PREFIX, InstanceId, RunId, WorkflowId
from calve.api.policy import needs
from calve.api.services import Call
from calve.engine import Address
from calve.engine.addresses import find_run
from calve.engine.views import overview_json, overview_of

router = APIRouter(prefix=PREFIX, tags=["instances"])


@router.get(
    "/workflows/{workflow_id}/instances/{instance_id}",
    operation_id="get_instance",
    dependencies=[needs(Permission.READ)],
)
def get_instance(call: Call, workflow_id: WorkflowId, instance_id: InstanceId) -> Response:
    """Return an instance as its latest run leaves it."""
    return _shown(call, Address(workflow_id, instance_id))


@router.get(
    "/workflows/{workflow_id}/instances/{instance_id}/runs/{run_id}",
    operation_id="get_run",
    dependencies=[needs(Permission.READ)],
)
def get_run(call: Call, workflow_id: WorkflowId, instance_id: InstanceId, run_id: RunId) -> Response:
    """Return a run of an instance."""
    return _shown(call, Address(workflow_id, instance_id, run_id))


def _shown(call: Call, address: Address) -> Response:
    run = find_run(call.engine.state, address)
    return Document(overview_json(overview_of(call.engine.tools, run)))
