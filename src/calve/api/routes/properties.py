"""Properties of workflows, apart from any version."""

from starlette.responses import Response

from calve.api import shapes
from calve.api.answers import Document
from calve.api.bodies import PropertiesRequest, TagBody
from calve.api.callers import Call
from calve.api.documents import properties_json
from calve.api.identifiers import Tag, Word, WorkflowId
from calve.api.policy import EDIT, READ
from calve.api.routing import Routes
from calve.errors import WorkflowMissing

routes = Routes("properties")


@routes.post("/workflows/{workflow_id}/properties", "change_properties", EDIT, shapes.PropertiesSnapshot)
def change(call: Call, workflow_id: WorkflowId, request: PropertiesRequest) -> Response:
    """Change properties; what is not named stays."""
    changed = call.engine.change_properties(workflow_id, request.changes(), reset=request.reset())
    return Document(properties_json(changed))


@routes.get(
    "/workflows/{workflow_id}/properties-snapshot/{snapshot}", "get_properties", READ, shapes.PropertiesSnapshot
)
def get_properties(call: Call, workflow_id: WorkflowId, snapshot: Word) -> Response:
    """Return the newest properties: ``latest``, or the time of their change. Earlier ones are not kept."""
    workflow = call.engine.workflow(workflow_id)
    if snapshot.lower() not in {"latest", "current", str(workflow.modified_at)}:
        raise WorkflowMissing(
            f"{workflow_id} has no snapshot {snapshot} of its properties.", remedy="Only the latest one is kept."
        )
    return Document(properties_json(workflow))


@routes.post("/workflows/{workflow_id}/properties/tag", "add_workflow_tag", EDIT, shapes.PropertiesSnapshot)
def add_tag(call: Call, workflow_id: WorkflowId, tag: TagBody) -> Response:
    """Give a workflow a tag, whatever its version."""
    given = tag.model_dump(exclude={"namespace"})
    by = {"creator": {"name": call.name}, "created_at_milli": call.engine.tools.clock()}
    return Document(properties_json(call.engine.tag(workflow_id, {**given, **by, "namespace": "PLATFORM"})))


@routes.delete("/workflows/{workflow_id}/properties/tag/{tag}", "delete_workflow_tag", EDIT, shapes.PropertiesSnapshot)
def delete_tag(call: Call, workflow_id: WorkflowId, tag: Tag) -> Response:
    """Take a tag from a workflow."""
    return Document(properties_json(call.engine.untag(workflow_id, tag)))
