"""Signing in at a provider of identities: there, and back."""

import html
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode

from fastapi import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from calve.access import ANONYMOUS, By
from calve.access.office import OF_PROVIDER
from calve.access.oidc import Begun, Provider
from calve.api.access.asking import ACCESS, At, From
from calve.api.access.cookies import SESSION, cookie_in, set_cookie
from calve.api.access.entrance import Entrance
from calve.api.access.visits import Visit
from calve.api.policy import PUBLIC
from calve.api.routing import Routes
from calve.errors import RequestInvalid, Unauthenticated

routes = Routes("access", f"{ACCESS}/oidc", is_slow=True)
_BEGUN = "calve_oidc"
_SECONDS = 600


@routes.get("/begin", "oidc_begin", PUBLIC)
def oidc_begin(at: At, visit: From, next: str = "/") -> Response:  # noqa: A002 - the usual name of it
    """Go to the provider of identities to sign in."""
    begun = _provider(at).begin()
    answer = RedirectResponse(begun.url, 303)
    kept = {"state": begun.state, "nonce": begun.nonce, "verifier": begun.verifier, "next": relative(next)}
    text = urlsafe_b64encode(json.dumps(kept).encode()).decode()
    # The provider sends the browser back from its own site: a strict cookie would not come along.
    set_cookie(answer, _BEGUN, text, is_secure=visit.is_secure, seconds=_SECONDS, same_site="Lax")
    return answer


@routes.get("/callback", "oidc_callback", PUBLIC)
def oidc_callback(at: At, visit: From, request: Request) -> Response:
    """Come back from the provider of identities."""
    provider, kept = _provider(at), _kept(visit)
    begun = Begun("", kept["state"], kept["nonce"], kept["verifier"])
    person = provider.finish(begun, dict(request.query_params))
    name = f"{OF_PROVIDER}{person.subject}"
    user = at.office.vouched(name, person.shown, person.grants, By(ANONYMOUS, visit.source))
    signed_in = at.door.begin(user, visit.source)
    answer = _page(relative(kept["next"]))
    seconds = max(1, (signed_in.expires_at - at.door.clock()) // 1_000)
    set_cookie(answer, SESSION, signed_in.session, is_secure=visit.is_secure, seconds=seconds)
    set_cookie(answer, _BEGUN, "", is_secure=visit.is_secure, seconds=0, same_site="Lax")
    return answer


def relative(target: str) -> str:
    """Return a place on this site; nobody can be led elsewhere."""
    is_plain = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if is_plain and "\\" not in target else "/"


def _page(target: str) -> Response:
    """Lead on by a page, not a redirect: for the cookie's sake, our own site has to ask for what comes next."""
    place = html.escape(target, quote=True)
    return HTMLResponse(f'<!doctype html><meta http-equiv="refresh" content="0;url={place}"><a href="{place}">…</a>')


def _provider(at: Entrance) -> Provider:
    if at.provider is None:
        raise RequestInvalid("No provider of identities is set up.", remedy="Set access.oidc.issuer.")
    return at.provider


def _kept(visit: Visit) -> dict[str, str]:
    """Return what the browser kept while it was at the provider.

    Raises:
        Unauthenticated: it kept nothing, or something else.
    """
    try:
        kept = json.loads(urlsafe_b64decode(cookie_in(visit.headers, _BEGUN) or ""))
        return {name: str(kept[name]) for name in ("state", "nonce", "verifier", "next")}
    except (ValueError, KeyError, TypeError):
        raise Unauthenticated("This browser has not begun to sign in, or too long ago.") from None
