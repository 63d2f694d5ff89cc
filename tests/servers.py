"""A real web server on a free port, for tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from tests.engines import Playground

from calve.api import WebServices, create_app, serve
from calve.triggers.signals import Signals

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Site:
    """A server, and a client of it."""

    playground: Playground
    url: str
    client: httpx.Client

    def get(self, path: str, status: int = 200, **options: Any) -> Any:
        """Get a document; fail if the answer is another one than expected."""
        return self.ask("GET", path, status, **options)

    def post(self, path: str, body: Any = None, status: int = 200, **options: Any) -> Any:
        """Post a document."""
        return self.ask("POST", path, status, json={} if body is None else body, **options)

    def put(self, path: str, body: Any = None, status: int = 200, **options: Any) -> Any:
        """Put a document."""
        return self.ask("PUT", path, status, json={} if body is None else body, **options)

    def delete(self, path: str, status: int = 200, **options: Any) -> Any:
        """Delete something."""
        return self.ask("DELETE", path, status, **options)

    def push(self, text: str, status: int = 200) -> Any:
        """Push a definition in YAML."""
        headers = {"content-type": "application/yaml"}
        return self.ask("POST", "/workflows/yaml", status, content=text, headers=headers)

    def start(self, workflow_id: str = "w", version: str = "active", status: int = 200, **request: Any) -> Any:
        """Start an instance, and move nothing."""
        return self.post(f"/workflows/{workflow_id}/versions/{version}/actions/start", request, status)

    def ask(self, method: str, path: str, status: int, **options: Any) -> Any:
        """Ask for something under ``/api/v3``; fail if the answer has another status than expected."""
        answer = self.client.request(method, f"/api/v3{path}", **options)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None


def services_on(playground: Playground, **more: Any) -> WebServices:
    """Return what a server on a playground's state calls; captures need a lake besides."""
    store = playground.store
    signals = Signals(store.engine, playground.clock)
    return WebServices(playground.engine, signals=signals, triggers=store.triggers, **more)


@contextmanager
def site_on(playground: Playground, services: WebServices | None = None, **given: Any) -> Iterator[Site]:
    """Serve a playground's engine; ``create_app`` says what may be given."""
    app = create_app(services or services_on(playground), **given)
    with serve(app, drain=1) as serving, httpx.Client(base_url=serving.url, timeout=30) as client:
        yield Site(playground, serving.url, client)
