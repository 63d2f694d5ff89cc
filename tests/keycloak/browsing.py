"""A browser, as far as signing in goes: it keeps cookies, fills in Keycloak's form, and goes where it is sent."""

import html
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

PASSWORD = "correct horse battery"
"""Of everybody at the Keycloak of these tests."""
BEGIN, BACK = "/api/v3/access/oidc/begin", "/api/v3/access/oidc/callback"
_KEPT = "calve_oidc"


@dataclass(frozen=True, slots=True)
class Browser:
    """The browser of a user."""

    calve: str
    client: httpx.Client

    def sign_in(self, name: str, password: str = PASSWORD) -> httpx.Response:
        """Go all the way; return calve's answer to who comes back."""
        return self.client.get(self.let_in(name, password))

    def let_in(self, name: str, password: str = PASSWORD) -> str:
        """Go to Keycloak, fill in its form, and return where it sends the browser back to."""
        answer = self.filled_in(self.sent_off(), name, password)
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]

    def sent_off(self) -> str:
        """Begin at calve, and return where it sends the browser to."""
        answer = self.client.get(self.calve + BEGIN)
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    def filled_in(self, url: str, name: str, password: str = PASSWORD) -> httpx.Response:
        """Open Keycloak's form and send it; return what Keycloak answers, at once if it knows the browser still."""
        page = self.client.get(url)
        if page.status_code == 302:
            return page
        form = re.search(r'<form id="kc-form-login"[^>]* action="([^"]*)"', page.text)
        assert form is not None, f"{page.status_code}: no form: {page.text}"
        return self.client.post(html.unescape(form[1]), data={"username": name, "password": password})

    def me(self) -> dict[str, Any] | None:
        """Return whom calve takes us for; None: for nobody."""
        answer = self.client.get(f"{self.calve}/api/v3/access/me")
        return answer.json() if answer.status_code == 200 else None

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Ask calve for something as its own pages do."""
        headers = {"x-calve-csrf": (self.me() or {}).get("csrf", ""), **options.pop("headers", {})}
        return self.client.request(method, f"{self.calve}/api/v3{path}", headers=headers, **options)

    def kept(self) -> dict[str, str]:
        """Return what calve has asked the browser to keep until it comes back."""
        text = self.client.cookies[_KEPT].strip('"')
        return dict(json.loads(urlsafe_b64decode(text)))

    def keep(self, **changed: str) -> None:
        """Keep something else, as an attacker might."""
        text = urlsafe_b64encode(json.dumps(self.kept() | changed).encode()).decode()
        (cookie,) = [cookie for cookie in self.client.cookies.jar if cookie.name == _KEPT]
        cookie.value = text

    def forget(self) -> None:
        """Forget everything, at Keycloak too."""
        self.client.cookies.clear()


@contextmanager
def browser_at(calve: str) -> Iterator[Browser]:
    """Give a browser that has been nowhere yet."""
    with httpx.Client(timeout=60) as client:

        def trust(_: httpx.Response) -> None:
            """Send secure cookies to this machine without TLS too, as browsers do."""
            for cookie in client.cookies.jar:
                cookie.secure = False

        client.event_hooks["response"] = [trust]
        yield Browser(calve, client)


def query_of(url: str) -> dict[str, str]:
    """Return what an address asks for."""
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
