"""How a provider of identities is spoken with."""

import json
from collections.abc import Mapping
from typing import Any

import httpx

from calve.access.oidc import refusal_of
from calve.errors import AccessError, ProviderFailed, Unauthenticated

_SECONDS = 10.0
_BYTES = 1_000_000


class ProviderHttp:
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
        except httpx.HTTPError:  # what they say may hold what was sent
            raise ProviderFailed("The provider of identities does not answer.") from None
        document = _document(answer)
        if not answer.is_success:
            raise _refusal(answer.status_code, document)
        if document is None:
            raise ProviderFailed
        return document


def _document(answer: httpx.Response) -> dict[str, Any] | None:
    try:
        document = json.loads(answer.content[:_BYTES])
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _refusal(status: int, document: dict[str, Any] | None) -> AccessError:
    """Return whose mistake it is: that of who signs in, or that of our settings."""
    code = refusal_of((document or {}).get("error"))
    if code == "invalid_grant":
        return Unauthenticated("The provider does not take what the browser brought back.", remedy="Sign in again.")
    return ProviderFailed(f"The provider of identities has answered {status}{f' {code}' if code else ''}.")
