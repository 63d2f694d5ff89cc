"""Signing in and out: passwords, the first administrator, and a provider of identities."""

import html
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from http.cookies import SimpleCookie
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from calve.access import ANONYMOUS, By, Permission, Principal, PrincipalKind, SignedIn, csrf_of, written
from calve.access.office import OF_PROVIDER
from calve.access.oidc import Begun, Provider
from calve.api.access import COOKIE, Entrance, Visit
from calve.api.callers import principal_of
from calve.api.identifiers import PREFIX
from calve.api.policy import Scope, needs
from calve.errors import RequestInvalid, Unauthenticated

ACCESS = f"{PREFIX}/access"
_OIDC_COOKIE = "calve_oidc"
_OIDC_SECONDS = 600
router = APIRouter(prefix=ACCESS, tags=["access"])


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SignIn(_Body):
    """A name and its password."""

    name: Annotated[str, Field(max_length=200)]
    password: Annotated[str, Field(max_length=1_024)]


class Bootstrap(SignIn):
    """The first administrator, with the token that the server printed."""

    token: Annotated[str, Field(max_length=200)]


def _entrance(request: Request) -> Entrance:
    entrance = request.app.state.entrance
    assert isinstance(entrance, Entrance)  # noqa: S101 - guarded() put it there
    return entrance


def _visit(request: Request) -> Visit:
    visit = request.state.visit
    assert isinstance(visit, Visit)  # noqa: S101 - the gate put it there
    return visit


At = Annotated[Entrance, Depends(_entrance)]
"""What lets people in."""
From = Annotated[Visit, Depends(_visit)]
"""The request as the gate saw it."""
Who = Annotated[Principal, Depends(principal_of)]
"""Who asks."""


@router.post("/sign-in", operation_id="sign_in", dependencies=[needs(Permission.PUBLIC, Scope.EVERYWHERE)])
def sign_in(at: At, visit: From, body: SignIn) -> Response:
    """Sign in with a name and a password."""
    return _begun(at.door.sign_in(body.name, body.password, visit.source), visit)


@router.post("/bootstrap", operation_id="bootstrap", dependencies=[needs(Permission.PUBLIC, Scope.EVERYWHERE)])
def bootstrap(at: At, visit: From, body: Bootstrap) -> Response:
    """Become the first administrator."""
    return _begun(
        at.door.begin(at.office.bootstrap(body.token, body.name, body.password, visit.source), visit.source), visit
    )


@router.post("/sign-out", operation_id="sign_out", dependencies=[needs(Permission.SIGNED_IN, Scope.EVERYWHERE)])
def sign_out(at: At, visit: From, principal: Who) -> Response:
    """End the session."""
    if visit.session is not None:
        at.door.sign_out(visit.session, principal, visit.source)
    answer = JSONResponse({})
    _set(answer, COOKIE, "", visit, seconds=0)
    return answer


@router.get("/me", operation_id="who_am_i", dependencies=[needs(Permission.SIGNED_IN, Scope.EVERYWHERE)])
def who_am_i(visit: From, principal: Who) -> Response:
    """Say who is signed in, and what he may do."""
    is_session = principal.kind is PrincipalKind.USER and visit.session is not None
    return JSONResponse(_me(principal) | ({"csrf": csrf_of(visit.session or "")} if is_session else {}))


@router.get("/oidc/begin", operation_id="oidc_begin", dependencies=[needs(Permission.PUBLIC, Scope.EVERYWHERE)])
def oidc_begin(at: At, visit: From, next: str = "/") -> Response:  # noqa: A002 - the usual name of it
    """Go to the provider of identities to sign in."""
    begun = _provider(at).begin()
    answer = RedirectResponse(begun.url, 303)
    kept = {"state": begun.state, "nonce": begun.nonce, "verifier": begun.verifier, "next": relative(next)}
    text = urlsafe_b64encode(json.dumps(kept).encode()).decode()
    # The provider sends the browser back from its own site: a strict cookie would not come along.
    _set(answer, _OIDC_COOKIE, text, visit, seconds=_OIDC_SECONDS, same_site="Lax")
    return answer


@router.get("/oidc/callback", operation_id="oidc_callback", dependencies=[needs(Permission.PUBLIC, Scope.EVERYWHERE)])
def oidc_callback(at: At, visit: From, request: Request) -> Response:
    """Come back from the provider of identities."""
    provider, kept = _provider(at), _kept(visit)
    begun = Begun("", kept["state"], kept["nonce"], kept["verifier"])
    person = provider.finish(begun, dict(request.query_params))
    name = f"{OF_PROVIDER}{person.subject}"
    user = at.office.vouched(name, person.shown, person.grants, By(ANONYMOUS, visit.source))
    signed_in = at.door.begin(user, visit.source)
    # A page rather than a redirect: what the browser asks for next must come from our own site, for the cookie's sake.
    target = html.escape(relative(kept["next"]), quote=True)
    answer = HTMLResponse(
        f'<!doctype html><meta http-equiv="refresh" content="0;url={target}"><a href="{target}">…</a>'
    )
    _set(answer, COOKIE, signed_in.session, visit, seconds=_seconds(signed_in, at))
    _set(answer, _OIDC_COOKIE, "", visit, seconds=0, same_site="Lax")
    return answer


def _begun(signed_in: SignedIn, visit: Visit) -> Response:
    document = _me(signed_in.principal) | {"csrf": csrf_of(signed_in.session), "expires_at": signed_in.expires_at}
    answer = JSONResponse(document)
    _set(answer, COOKIE, signed_in.session, visit, seconds=None)
    return answer


def _me(principal: Principal) -> dict[str, Any]:
    return {"name": principal.name, "kind": principal.kind, "grants": written(principal.grants)}


def _seconds(signed_in: SignedIn, at: Entrance) -> int:
    return max(1, (signed_in.expires_at - at.door.clock()) // 1_000)


def _set(
    answer: Response, name: str, value: str, visit: Visit, *, seconds: int | None, same_site: str = "Strict"
) -> None:
    cookie: SimpleCookie = SimpleCookie()
    cookie[name] = value
    cookie[name].update({"path": "/", "httponly": "yes", "samesite": same_site})
    if visit.is_secure:
        cookie[name]["secure"] = "yes"
    if seconds is not None:
        cookie[name]["max-age"] = seconds
    answer.headers.append("Set-Cookie", cookie[name].OutputString())


def _provider(at: Entrance) -> Provider:
    if at.provider is None:
        raise RequestInvalid("No provider of identities is set up.", remedy="Set access.oidc.issuer.")
    return at.provider


def _kept(visit: Visit) -> dict[str, str]:
    """Return what the browser kept while it was at the provider.

    Raises:
        Unauthenticated: it kept nothing, or something else.
    """
    cookie = SimpleCookie(visit.headers.get("cookie", "")).get(_OIDC_COOKIE)
    try:
        kept = json.loads(urlsafe_b64decode(cookie.value if cookie else ""))
        return {name: str(kept[name]) for name in ("state", "nonce", "verifier", "next")}
    except (ValueError, KeyError, TypeError):
        raise Unauthenticated("This browser has not begun to sign in, or too long ago.") from None


def relative(target: str) -> str:
    """Return a place on this site; nobody can be led elsewhere."""
    is_plain = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if is_plain and "\\" not in target else "/"
