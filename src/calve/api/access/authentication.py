"""Recognizes callers by a token, a session, a header of a proxy, or their address."""

from dataclasses import replace

from calve.access import ANONYMOUS, LOOPBACK, Principal, PrincipalKind, csrf_of, is_same
from calve.api.access.control import AccessControl
from calve.api.access.requests import RequestInfo
from calve.api.threads import in_thread
from calve.errors import CalveError, Forbidden, StoreError, Unauthenticated

CSRF = "x-calve-csrf"
"""The header by which a page shows that it belongs to the session."""
FORMS = "/actions/"
"""Where forms are sent to. They may hold the token in a field instead, which ``check_form`` looks at."""
_SIZE = 200


async def recognize(control: AccessControl, info: RequestInfo) -> Principal:
    """Return who asks.

    Raises:
        Unauthenticated: a token was shown that is not valid.
        Forbidden: the session was used without its CSRF token.
    """
    rules = control.rules
    if "authorization" in info.headers:
        scheme, _, token = info.headers["authorization"].partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthenticated("Only bearer tokens are taken here.")
        return await in_thread(control.authenticator.by_token, token.strip(), info.source)
    if info.session is not None:
        return await _of_session(control, info.session, info)
    if rules.user_header is not None and rules.is_proxy(info.peer):
        return await _of_proxy(control, info.headers.get(rules.user_header, ""))
    return _of_nobody(control, info)


async def is_still(control: AccessControl, principal: Principal, info: RequestInfo) -> bool:
    """Tell whether a caller would still be recognized as the same; without the database, they stay."""
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
        return _of_nobody(control, info)  # an old cookie must not keep anybody from signing in
    if info.method != "WEBSOCKET" and info.changes and not info.path.startswith(FORMS):
        _check_page(info.headers.get(CSRF, ""), session)
    return principal


def _check_page(shown: str, session: str) -> None:
    if not is_same(shown, csrf_of(session)):
        raise Forbidden("The request does not come from a page of this session.", remedy=f"Send {CSRF}.")


def page_token(principal: Principal, info: RequestInfo) -> str | None:
    """Return what a page of the caller's session has to send along with each change; None without a session."""
    is_session = principal.kind is PrincipalKind.USER and info.session is not None
    return csrf_of(info.session or "") if is_session else None


def check_form(principal: Principal, info: RequestInfo, field: str) -> None:
    """Refuse a form that does not come from a page of the caller's session.

    Args:
        principal: the caller.
        info: the request.
        field: the token that the form holds; the header does as well.

    Raises:
        Forbidden: neither of them is the session's.
    """
    if page_token(principal, info) is not None:
        _check_page(info.headers.get(CSRF, field), info.session or "")


async def _of_proxy(control: AccessControl, name: str) -> Principal:
    if not name:
        return ANONYMOUS
    user = await in_thread(control.authenticator.state.user, name[:_SIZE].replace("\0", ""))
    if user is None or user.is_disabled:
        raise Unauthenticated(f"There is no user {name[:_SIZE]!r} here.")
    return Principal(user.name, PrincipalKind.USER, user.grants)


def _of_nobody(control: AccessControl, info: RequestInfo) -> Principal:
    """Return who it is where nobody has to say so; a name that is given anyway is a name, and no more."""
    if not control.rules.is_local(info.headers):
        return ANONYMOUS
    name = info.headers.get("user", "")[:_SIZE]
    return replace(LOOPBACK, name=name) if name.isprintable() and name else LOOPBACK
