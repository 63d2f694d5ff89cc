"""Whether the server lives, and whether it can do its work."""

from starlette.responses import Response

from calve.api import shapes
from calve.api.answers import Document
from calve.api.callers import Call
from calve.api.policy import PUBLIC
from calve.api.routing import Routes
from calve.errors import CalveError

routes = Routes("health", prefix="", is_slow=True)


@routes.get("/health", "health", PUBLIC, shapes.Health)
async def health() -> Response:
    """Say that the server lives."""
    return Document({"status": "ok"})


@routes.get("/ready", "ready", PUBLIC, shapes.Health)
def ready(call: Call) -> Response:
    """Say whether the server can do its work: 503 if the database is away, or room for state runs out."""
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
