"""Recognizes callers by a token, a session, a header of a proxy, or their address."""

from dataclasses import replace

from calve.access import ANONYMOUS, LOOPBACK, Principal, PrincipalKind, csrf_of, is_same
from calve.api.access.control import AccessControl
from calve.api.access.requests import RequestInfo
from calve.api.threads import in_thread
from calve.errors import CalveError, Forbidden, StoreError, Unauthenticated

CSRF = "x-calve-csrf"
"""The header with which a page proves that it belongs to the session."""
FORMS = "/actions/"
"""Where forms are sent to. They may contain the token in a field instead, which ``check_form`` checks."""
_SIZE = 200


async def recognize(control: AccessControl, info: RequestInfo) -> Principal:
    """Return the caller.

    Raises:
        Unauthenticated: a token is invalid.
        Forbidden: the session was used without its CSRF token.
    """
    rules = control.rules
    if "authorization" in info.headers:
        scheme, _, token = info.headers["authorization"].partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthenticated("Only bearer tokens are accepted.")
        return await in_thread(control.authenticator.by_token, token.strip(), info.source)
    if info.session is not None:
        return await _of_session(control, info.session, info)
    if rules.user_header is not None and rules.is_proxy(info.peer):
        return await _of_proxy(control, info.headers.get(rules.user_header, ""))
    return _of_nobody(control, info)


async def is_still(control: AccessControl, principal: Principal, info: RequestInfo) -> bool:
    """Tell whether a caller would still be recognized as the same; if the database is unavailable, assume so."""
    try:
        if "authorization" in info.headers:
            token = info.headers["authorization"].partition(" ")[2].strip()
            return await in_thread(control.authenticator.holder, token) == principal
        return await recognize(control, info) == principal
    except StoreError:
        return True
    except CalveError:
        return False


async def _of_session(control: AccessControl, session: str, info: RequestInfo) -> Principal:
    try:
        principal = await in_thread(control.authenticator.by_session, session)
    except Unauthenticated:
        return _of_nobody(control, info)  # an old cookie must not prevent signing in
    if info.method != "WEBSOCKET" and info.changes and not info.path.startswith(FORMS):
        _check_page(info.headers.get(CSRF, ""), session)
    return principal


def _check_page(shown: str, session: str) -> None:
    if not is_same(shown, csrf_of(session)):
        raise Forbidden("The request was not sent by a page of this session.", remedy=f"Send {CSRF}.")


def page_token(principal: Principal, info: RequestInfo) -> str | None:
    """Return the CSRF token that pages of the caller's session must send with each change; None without a session."""
    is_session = principal.kind is PrincipalKind.USER and info.session is not None
    return csrf_of(info.session or "") if is_session else None


def check_form(principal: Principal, info: RequestInfo, field: str) -> None:
    """Refuse a form that was not sent by a page of the caller's session.

    Args:
        principal: the caller.
        info: the request.
        field: the token in the form; it may also be in the header.

    Raises:
        Forbidden: neither is the token of the session.
    """
    if page_token(principal, info) is not None:
        _check_page(info.headers.get(CSRF, field), info.session or "")


async def _of_proxy(control: AccessControl, name: str) -> Principal:
    if not name:
        return ANONYMOUS
    user = await in_thread(control.authenticator.state.user, name[:_SIZE].replace("\0", ""))
    if user is None or user.is_disabled:
        raise Unauthenticated(f"User {name[:_SIZE]!r} does not exist.")
    return Principal(user.name, PrincipalKind.USER, user.grants, user.shown)


def _of_nobody(control: AccessControl, info: RequestInfo) -> Principal:
    """Return the caller on loopback, where no authentication is required; a name that is sent is only a label."""
    if not control.rules.is_local(info.headers):
        return ANONYMOUS
    name = info.headers.get("user", "")[:_SIZE]
    return replace(LOOPBACK, name=name) if name.isprintable() and name else LOOPBACK
