"""Who asks, by what he shows: a token, a session, a proxy's word, or nothing."""

from dataclasses import replace

from calve.access import ANONYMOUS, LOOPBACK, Principal, PrincipalKind, csrf_of, is_same
from calve.api.access.entrance import Entrance
from calve.api.access.visits import Visit
from calve.api.threads import in_thread
from calve.errors import CalveError, Forbidden, StoreError, Unauthenticated

CSRF = "x-calve-csrf"
"""The header by which a page shows that it belongs to the session."""
_SIZE = 200


async def recognize(entrance: Entrance, visit: Visit) -> Principal:
    """Return who asks.

    Raises:
        Unauthenticated: a token was shown that is not valid.
        Forbidden: a session was used by somebody who has not read a page of it.
    """
    rules = entrance.rules
    if "authorization" in visit.headers:
        scheme, _, token = visit.headers["authorization"].partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthenticated("Only bearer tokens are taken here.")
        return await in_thread(entrance.door.by_token, token.strip(), visit.source)
    if visit.session is not None:
        return await _of_session(entrance, visit.session, visit)
    if rules.user_header is not None and rules.is_proxy(visit.peer):
        return await _of_proxy(entrance, visit.headers.get(rules.user_header, ""))
    return _of_nobody(entrance, visit)


async def is_still(entrance: Entrance, principal: Principal, visit: Visit) -> bool:
    """Tell whether whom we let in would still be let in as the same; if nobody can say, he stays."""
    try:
        if "authorization" in visit.headers:
            token = visit.headers["authorization"].partition(" ")[2].strip()
            return await in_thread(entrance.door.holder, token) == principal
        return await recognize(entrance, visit) == principal
    except StoreError:
        return True
    except CalveError:
        return False


async def _of_session(entrance: Entrance, session: str, visit: Visit) -> Principal:
    try:
        principal = await in_thread(entrance.door.by_session, session)
    except Unauthenticated:
        return _of_nobody(entrance, visit)  # an old cookie must not keep anybody from signing in
    if visit.method != "WEBSOCKET" and visit.changes and not _knows_page(visit, session):
        raise Forbidden("The request does not come from a page of this session.", remedy=f"Send {CSRF}.")
    return principal


def _knows_page(visit: Visit, session: str) -> bool:
    return is_same(visit.headers.get(CSRF, ""), csrf_of(session))


async def _of_proxy(entrance: Entrance, name: str) -> Principal:
    if not name:
        return ANONYMOUS
    user = await in_thread(entrance.door.state.user, name[:_SIZE].replace("\0", ""))
    if user is None or user.is_disabled:
        raise Unauthenticated(f"There is no user {name[:_SIZE]!r} here.")
    return Principal(user.name, PrincipalKind.USER, user.grants)


def _of_nobody(entrance: Entrance, visit: Visit) -> Principal:
    """Return who it is where nobody has to say so; a name that is given anyway is a name, and no more."""
    if not entrance.rules.is_local(visit.headers):
        return ANONYMOUS
    name = visit.headers.get("user", "")[:_SIZE]
    return replace(LOOPBACK, name=name) if name.isprintable() and name else LOOPBACK
