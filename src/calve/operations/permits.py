"""Tag permits: how many steps with a tag may run at once, in all workflows."""

from calve.engine import TagPermit
from calve.errors import WorkflowMissing
from calve.operations import models
from calve.operations.arguments import Tag
from calve.operations.caller import Caller
from calve.operations.declaration import Document, Topic, operation
from calve.operations.documents import permit_json
from calve.operations.policy import EDIT_EVERYWHERE, READ_SOMEWHERE
from calve.operations.requests import TagPermitRequest


class Permits(Topic):
    """Limits how many steps with a tag run at once."""

    __slots__ = ()
    tag = "tag permits"

    @operation(
        "POST /tag-permits",
        EDIT_EVERYWHERE,
        id="set_tag_permit",
        answer=models.TagPermit,
        body=TagPermitRequest,
        is_repeatable=True,
    )
    def limit_tag(self, tag: str, max_allowed: int) -> Document:
        """Limit how many steps with a tag run at once."""
        self.call.engine.limit_tag(tag, max_allowed)
        return permit_json(_permit(self.call, tag))

    @operation("GET /tag-permits", READ_SOMEWHERE, id="list_tag_permits", answer=list[models.TagPermit])
    def permits(self) -> list[Document]:
        """Return the limits of all tags, and how many permits are in use."""
        return [permit_json(permit) for permit in self.call.engine.state.tag_permits()]

    @operation("GET /tag-permits/{tag}", READ_SOMEWHERE, id="get_tag_permit", answer=models.TagPermit)
    def permit(self, tag: Tag) -> Document:
        """Return the limit of a tag."""
        return permit_json(_permit(self.call, tag))

    @operation("DELETE /tag-permits/{tag}", EDIT_EVERYWHERE, id="delete_tag_permit", answer=models.TagPermit)
    def unlimit_tag(self, tag: Tag) -> Document:
        """Remove the limit of a tag."""
        before = _permit(self.call, tag)
        self.call.engine.state.delete_tag_permit(tag)
        return permit_json(before)


def _permit(call: Caller, tag: str) -> TagPermit:
    found = next((permit for permit in call.engine.state.tag_permits() if permit.tag == tag), None)
    if found is None:
        raise WorkflowMissing(f"The tag {tag} has no limit.", tag=tag)
    return found
