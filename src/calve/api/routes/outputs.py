"""What the work of a step hands over while it runs."""

from starlette.responses import Response

from calve.access import Permission
from calve.api.answers import Document
from calve.api.bodies import OutputRequest
from calve.api.callers import Call
from calve.api.policy import RUN_SOMEWHERE
from calve.api.routing import Routes
from calve.engine.sending import named_in
from calve.errors import WorkflowMissing

routes = Routes("outputs")


@routes.put("/output-data", "put_output_data", RUN_SOMEWHERE)
def put(call: Call, request: OutputRequest) -> Response:
    """Take output params and artifacts of an attempt that runs."""
    attempt = call.engine.state.attempt(request.step_instance_uuid)
    snapshot = call.engine.state.load(attempt.run_uuid) if attempt else None
    if snapshot is None:
        raise WorkflowMissing(f"There is no attempt {request.step_instance_uuid}.")
    call.require(Permission.RUN, snapshot.run.owner_workflow)
    for name in named_in(request.artifacts):
        call.require(Permission.RUN, name)
    call.engine.put_outputs(request.step_instance_uuid, request.params, request.artifacts)
    return Document({})
