"""The health of the server, its metrics, and its OpenAPI document."""

from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import Response

from calve.api.caller import Call
from calve.api.responses import Document
from calve.api.routes import Routes
from calve.errors import CalveError
from calve.operations import PREFIX, PUBLIC, READ_EVERYWHERE, READ_SOMEWHERE
from calve.telemetry import CONTENT_TYPE

health_routes = Routes("health", prefix="", is_slow=True)
about_routes = Routes("about", prefix="", is_slow=True)
_TEXT = {"content": {"text/plain": {"schema": {"type": "string"}}}}


class Health(BaseModel):
    """The health of the server."""

    model_config = ConfigDict(extra="allow")

    status: str


@health_routes.get("/health", "health", PUBLIC, Health)
async def health() -> Response:
    """Report that the server is running."""
    return Document({"status": "ok"})


@health_routes.get("/ready", "ready", PUBLIC, Health)
def ready(call: Call) -> Response:
    """Report whether the server is ready: 503 if the database is unavailable or disk space is low."""
    problems: dict[str, str] = {}
    for name, probe in call.services.probes.items():
        try:
            if problem := probe():
                problems[name] = problem
        except CalveError as error:
            problems[name] = error.message
    if not problems:
        return Document({"status": "ready", "problems": {}})
    return Document({"status": "degraded", "problems": problems}, 503)


@about_routes.get("/metrics", "get_metrics", READ_EVERYWHERE, answers=_TEXT)
def metrics(call: Call) -> Response:
    """Return the metrics, for Prometheus."""
    return Response(call.services.scrape(), media_type=CONTENT_TYPE)


@about_routes.get(f"{PREFIX}/openapi.json", "get_openapi", READ_SOMEWHERE)
async def openapi(request: Request) -> Response:
    """Return the OpenAPI document of this interface."""
    return Document(request.app.openapi())
