"""What the server tells about itself and about its own interface."""

from starlette.requests import Request
from starlette.responses import Response

from calve.access import Permission
from calve.api.answers import Document
from calve.api.callers import Call
from calve.api.identifiers import PREFIX
from calve.api.policy import READ_SOMEWHERE, Policy, Scope
from calve.api.routing import Routes
from calve.telemetry import CONTENT_TYPE

routes = Routes("about", prefix="", is_slow=True)
_TEXT = {"content": {"text/plain": {"schema": {"type": "string"}}}}


@routes.get("/metrics", "get_metrics", Policy(Permission.READ, Scope.EVERYWHERE), answers=_TEXT)
def metrics(call: Call) -> Response:
    """Return what Prometheus reads."""
    return Response(call.services.scrape(), media_type=CONTENT_TYPE)


@routes.get(f"{PREFIX}/openapi.json", "get_openapi", READ_SOMEWHERE)
async def openapi(request: Request) -> Response:
    """Return the description of this interface."""
    return Document(request.app.openapi())
