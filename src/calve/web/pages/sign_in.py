"""Signing in and out, the first administrator, and the theme."""

from functools import partial
from typing import Any
from urllib.parse import urlencode

from fastapi import Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from calve.access import PrincipalKind, SignedIn
from calve.api import Call, WebCaller, in_slow_thread, in_thread, problem_of
from calve.api.access import (
    AccessControl,
    Bootstrap,
    ControlDep,
    RequestDep,
    SignIn,
    bootstrapped,
    relative,
    set_cookie,
    set_session,
    signed_in,
    signed_out,
)
from calve.errors import AccessError, RequestInvalid
from calve.operations import PUBLIC, SIGNED_IN
from calve.web.forms import Fields, Form, first
from calve.web.frame import THEME
from calve.web.page import Page, Pages, html

pages = Pages("access")
_YEAR = 365 * 86_400


@pages.get("/sign-in", "sign_in_page", PUBLIC)
def sign_in_page(call: Call, request: Request, next: str = "/") -> Page | Response:  # noqa: A002 - the usual name
    """Ask for a name and a password, or redirect to the identity provider; skip both if the caller is signed in."""
    if call.principal.kind is not PrincipalKind.ANONYMOUS:
        return RedirectResponse(relative(next), 303)
    return _page(request, next)


@pages.get("/bootstrap", "bootstrap_page", PUBLIC)
def bootstrap_page(call: Call, request: Request) -> Page:
    """Ask for the first administrator, with the token that the server printed."""
    del call
    return _page(request, "/", template="sign_in/bootstrap.html")


def _page(
    request: Request,
    target: str,
    *,
    template: str = "sign_in/sign_in.html",
    error: AccessError | RequestInvalid | None = None,
    name: str = "",
) -> Page:
    control = getattr(request.app.state, "control", None)
    place = relative(target)
    has_provider = isinstance(control, AccessControl) and control.provider is not None
    values = {
        "next": place,
        "name": name,
        "error": error,
        "provider": f"/api/v3/access/oidc/begin?{urlencode({'next': place})}" if has_provider else "",
    }
    return Page(template, "Sign in", {}, values, status=200 if error is None else problem_of(error).status)


@pages.post("/actions/sign-in", "sign_in_by_form", PUBLIC)
async def sign_in_by_form(call: Call, request: Request, at: ControlDep, info: RequestDep, fields: Form) -> Response:
    """Sign in with a name and a password."""
    try:
        begun = await signed_in(at, info, _body(SignIn, fields, "name", "password"))
    except (AccessError, RequestInvalid) as error:
        return await in_thread(_refused, call, request, fields, error, "sign_in/sign_in.html")
    return _begun(begun, info, fields)


@pages.post("/actions/bootstrap", "bootstrap_by_form", PUBLIC)
async def bootstrap_by_form(call: Call, request: Request, at: ControlDep, info: RequestDep, fields: Form) -> Response:
    """Create the first administrator."""
    try:
        body = _body(Bootstrap, fields, "token", "name", "password")
        begun = await in_slow_thread(partial(bootstrapped, at, info, body))
    except (AccessError, RequestInvalid) as error:
        return await in_thread(_refused, call, request, fields, error, "sign_in/bootstrap.html")
    return _begun(begun, info, fields)


def _body(model: type[Any], fields: Fields, *names: str) -> Any:
    try:
        return model(**{name: first(fields, name) for name in names})
    except ValidationError as error:
        raise RequestInvalid(f"{error.errors()[0]['loc'][0]}: {error.errors()[0]['msg']}") from None


def _refused(
    call: WebCaller, request: Request, fields: Fields, error: AccessError | RequestInvalid, template: str
) -> Response:
    page = _page(request, first(fields, "next", "/"), template=template, error=error, name=first(fields, "name"))
    return html(request, call, page)


def _begun(begun: SignedIn, info: RequestDep, fields: Fields) -> Response:
    answer = RedirectResponse(relative(first(fields, "next", "/")), 303)
    set_session(answer, begun, info)
    return answer


@pages.post("/actions/sign-out", "sign_out_by_form", SIGNED_IN)
def sign_out_by_form(call: Call, at: ControlDep, info: RequestDep, fields: Form) -> Response:
    """End the session."""
    del fields  # its token was checked
    answer = RedirectResponse("/sign-in", 303)
    signed_out(answer, at, info, call.principal)
    return answer


@pages.post("/actions/theme", "choose_theme", PUBLIC)
async def choose_theme(fields: Form) -> Response:
    """Store the theme of the pages in a cookie: light, dark, or that of the system."""
    answer = RedirectResponse(relative(first(fields, "next", "/")), 303)
    chosen = first(fields, "theme")
    is_one = chosen in {"light", "dark"}
    set_cookie(answer, THEME, chosen if is_one else "", is_secure=False, seconds=_YEAR if is_one else 0)
    return answer
