"""What a server lets one hold and limit: breakpoints, and how many steps of a tag run at once."""

from calve.client.server import Document, Server, path
from calve.client.workflows import document

_POINTS = ("workflows", "steps", "breakpoints")


class Controls:
    """Sets breakpoints and limits."""

    server: Server

    def pause(self, workflow_id: str, step_id: str, instance_id: int | None = None) -> Document:
        """Set a breakpoint: the step pauses before it begins, in one instance or in all."""
        body = {"workflow_id": workflow_id, "step_id": step_id, "workflow_instance_id": instance_id or 0}
        return document(self.server.ask("POST", path(*_POINTS), body, is_repeatable=True))

    def breakpoints(self, workflow_id: str, step_id: str) -> list[Document]:
        """Return the breakpoints at a step."""
        return list(self.server.get(path(*_POINTS), workflowId=workflow_id, stepId=step_id))

    def paused(self, workflow_id: str, step_id: str) -> list[Document]:
        """Return the attempts of a step that are paused."""
        place = path(*_POINTS, "paused-step-attempts")
        return list(self.server.get(place, workflowId=workflow_id, stepId=step_id))

    def unpause(self, workflow_id: str, step_id: str) -> Document:
        """Take the breakpoint at a step away, and let go on what it has paused."""
        query = {"workflowId": workflow_id, "stepId": step_id, "resume": True}
        return document(self.server.ask("DELETE", path(*_POINTS), query=query, is_repeatable=True))

    def permits(self) -> list[Document]:
        """Return the limits of tags, and how many permits are held."""
        return list(self.server.get(path("tag-permits")))

    def limit_tag(self, tag: str, max_allowed: int) -> Document:
        """Limit how many steps of a tag run at once."""
        body = {"tag": tag, "max_allowed": max_allowed}
        return document(self.server.ask("POST", path("tag-permits"), body, is_repeatable=True))

    def unlimit_tag(self, tag: str) -> Document:
        """Lift the limit of a tag."""
        return document(self.server.ask("DELETE", path("tag-permits", tag)))
