"""Limits of tags: how many steps of a tag may run at once, over all workflows."""

from starlette.responses import Response

from calve.access import Permission
from calve.api import shapes
from calve.api.answers import Document
from calve.api.bodies import TagPermitRequest
from calve.api.callers import Call, Caller
from calve.api.documents import permit_json
from calve.api.identifiers import Tag
from calve.api.policy import READ_SOMEWHERE, Policy, Scope
from calve.api.routing import Routes
from calve.engine.model import TagPermit
from calve.errors import WorkflowMissing

routes = Routes("tag permits")
_CHANGE = Policy(Permission.EDIT, Scope.EVERYWHERE)


@routes.post("/tag-permits", "set_tag_permit", _CHANGE, shapes.TagPermit)
def set_permit(call: Call, request: TagPermitRequest) -> Response:
    """Limit how many steps of a tag run at once."""
    call.engine.limit_tag(request.tag, request.max_allowed)
    return Document(permit_json(_permit(call, request.tag)))


@routes.get("/tag-permits", "list_tag_permits", READ_SOMEWHERE, list[shapes.TagPermit])
def list_permits(call: Call) -> Response:
    """Return all limits."""
    return Document([permit_json(permit) for permit in call.engine.state.tag_permits()])


@routes.get("/tag-permits/{tag}", "get_tag_permit", READ_SOMEWHERE, shapes.TagPermit)
def get_permit(call: Call, tag: Tag) -> Response:
    """Return the limit of a tag."""
    return Document(permit_json(_permit(call, tag)))


@routes.delete("/tag-permits/{tag}", "delete_tag_permit", _CHANGE, shapes.TagPermit)
def delete_permit(call: Call, tag: Tag) -> Response:
    """Lift the limit of a tag."""
    before = _permit(call, tag)
    call.engine.state.delete_tag_permit(tag)
    return Document(permit_json(before))


def _permit(call: Caller, tag: str) -> TagPermit:
    found = next((permit for permit in call.engine.state.tag_permits() if permit.tag == tag), None)
    if found is None:
        raise WorkflowMissing(f"There is no limit of the tag {tag}.", tag=tag)
    return found
