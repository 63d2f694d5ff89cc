"""Signing in with an identity provider."""

import html
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

import httpx
from fastapi import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from calve.access import ANONYMOUS, OF_PROVIDER, Actor, Provider, SignInRequest, refusal_of
from calve.api.access.control import AccessControl
from calve.api.access.cookies import SESSION, cookie_in, set_cookie
from calve.api.access.requests import RequestInfo
from calve.api.access.sign_in import ACCESS, ControlDep, RequestDep
from calve.api.routes import Routes
from calve.errors import AccessError, ProviderFailed, RequestInvalid, Unauthenticated
from calve.operations import PUBLIC

_TIMEOUT = 10.0
_BYTES = 1_000_000


class ProviderHttp:
    """Sends requests to an identity provider (the port is ``calve.access.oidc.Fetch``)."""

    def get(self, url: str) -> Any:
        """Return a document."""
        return self._ask("GET", url)

    def post(self, url: str, form: Mapping[str, str]) -> Any:
        """Send a form, and return the document of the response."""
        return self._ask("POST", url, data=dict(form))

    def _ask(self, method: str, url: str, **body: Any) -> Any:
        try:
            with httpx.Client(timeout=_TIMEOUT, follow_redirects=False) as client:
                answer = client.request(method, url, headers={"accept": "application/json"}, **body)
        except httpx.HTTPError:  # the error may contain the form
            raise ProviderFailed("The identity provider does not answer.") from None
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
    """Return the error of a refused request: a mistake of the user, or of the settings."""
    code = refusal_of((document or {}).get("error"))
    if code == "invalid_grant":
        return Unauthenticated("The identity provider refused the sign-in.", remedy="Sign in again.")
    return ProviderFailed(f"The identity provider has answered {status}{f' {code}' if code else ''}.")


routes = Routes("access", f"{ACCESS}/oidc", is_slow=True)
_BEGUN = "calve_oidc"
_COOKIE_SECONDS = 600


@routes.get("/begin", "oidc_begin", PUBLIC)
def oidc_begin(at: ControlDep, info: RequestDep, next: str = "/") -> Response:  # noqa: A002 - the usual name of it
    """Redirect to the identity provider to sign in."""
    begun = _provider(at).begin()
    answer = RedirectResponse(begun.url, 303)
    kept = {"state": begun.state, "nonce": begun.nonce, "verifier": begun.verifier, "next": relative(next)}
    text = urlsafe_b64encode(json.dumps(kept).encode()).decode()
    # The provider redirects the browser from its own site, which does not send strict cookies.
    set_cookie(answer, _BEGUN, text, is_secure=info.is_secure, seconds=_COOKIE_SECONDS, same_site="Lax")
    return answer


@routes.get("/callback", "oidc_callback", PUBLIC)
def oidc_callback(at: ControlDep, info: RequestDep, request: Request) -> Response:
    """Complete the sign-in with the identity provider."""
    provider, kept = _provider(at), _kept(info)
    begun = SignInRequest("", kept["state"], kept["nonce"], kept["verifier"])
    person = provider.finish(begun, dict(request.query_params))
    name = f"{OF_PROVIDER}{person.subject}"
    user = at.accounts.vouched(name, person.shown, person.grants, Actor(ANONYMOUS, info.source))
    signed_in = at.authenticator.begin(user, info.source)
    answer = _page(relative(kept["next"]))
    seconds = max(1, (signed_in.expires_at - at.authenticator.clock()) // 1_000)
    set_cookie(answer, SESSION, signed_in.session, is_secure=info.is_secure, seconds=seconds)
    set_cookie(answer, _BEGUN, "", is_secure=info.is_secure, seconds=0, same_site="Lax")
    return answer


def relative(target: str) -> str:
    """Return a path on this site; other addresses are ignored."""
    is_plain = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if is_plain and "\\" not in target else "/"


def _page(target: str) -> Response:
    """Continue with a page instead of a redirect: strict cookies are sent only if this site makes the next request."""
    place = html.escape(target, quote=True)
    return HTMLResponse(f'<!doctype html><meta http-equiv="refresh" content="0;url={place}"><a href="{place}">…</a>')


def _provider(at: AccessControl) -> Provider:
    if at.provider is None:
        raise RequestInvalid("No identity provider is configured.", remedy="Set access.oidc.issuer.")
    return at.provider


def _kept(info: RequestInfo) -> dict[str, str]:
    """Return the state of the sign-in from the browser's cookie.

    Raises:
        Unauthenticated: there is none, or it belongs to another sign-in.
    """
    try:
        kept = json.loads(urlsafe_b64decode(cookie_in(info.headers, _BEGUN) or ""))
        return {name: str(kept[name]) for name in ("state", "nonce", "verifier", "next")}
    except (ValueError, KeyError, TypeError):
        raise Unauthenticated("The sign-in has expired, or was started in another browser.") from None
