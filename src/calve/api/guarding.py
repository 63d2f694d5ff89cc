"""What makes an application one that not everybody can use."""

import json
from collections.abc import Mapping
from typing import Any

import httpx
from fastapi import FastAPI
from starlette.middleware import Middleware

from calve.api import administration, sessions
from calve.api.access import Entrance, Gate
from calve.errors import Unauthenticated

_SECONDS = 10.0
_BYTES = 1_000_000


def guarded(entrance: Entrance) -> dict[str, Any]:
    """Return what ``create_app`` is to be given besides: the gate, and the routes to sign in and to administer."""

    def extend(app: FastAPI) -> None:
        app.state.entrance = entrance
        app.router.routes.extend([*sessions.router.routes, *administration.router.routes])

    return {"middleware": [Middleware(Gate, entrance=entrance)], "extend": extend}


class HttpFetch:
    """Speaks with a provider of identities (the port is ``calve.access.oidc.Fetch``)."""

    def get(self, url: str) -> Any:
        """Return a document."""
        return self._ask("GET", url)

    def post(self, url: str, form: Mapping[str, str]) -> Any:
        """Send a form, and return the document that is answered."""
        return self._ask("POST", url, data=dict(form))

    def _ask(self, method: str, url: str, **body: Any) -> Any:
        try:
            with httpx.Client(timeout=_SECONDS, follow_redirects=False) as client:
                answer = client.request(method, url, headers={"accept": "application/json"}, **body)
                document = json.loads(answer.content[:_BYTES]) if answer.is_success else None
        except (httpx.HTTPError, ValueError):  # what they say may hold what was sent
            document = None
        if not isinstance(document, dict):
            raise Unauthenticated("The provider of identities does not answer as it should.") from None
        return document
