"""Signing in and out with a password; the first administrator."""

from functools import partial

from starlette.responses import Response

from calve.access import PrincipalKind, SignedIn, csrf_of, network_of
from calve.api.access.asking import ACCESS, At, From, Who
from calve.api.access.bodies import Bootstrap, SignIn
from calve.api.access.cookies import DEVICE, SESSION, cookie_in, set_cookie
from calve.api.access.documents import principal_json
from calve.api.access.visits import Visit
from calve.api.answers import Document
from calve.api.policy import PUBLIC, SIGNED_IN
from calve.api.routing import Routes

routes = Routes("access", ACCESS)
_YEAR = 365 * 86_400


@routes.post("/sign-in", "sign_in", PUBLIC)
async def sign_in(at: At, visit: From, body: SignIn) -> Response:
    """Sign in with a name and a password."""
    device = cookie_in(visit.headers, DEVICE)
    work = partial(at.door.sign_in, body.name, body.password, visit.source, device)
    return _begun(await at.passwords.run(network_of(visit.source), work), visit)


@routes.post("/bootstrap", "bootstrap", PUBLIC, is_slow=True)
def bootstrap(at: At, visit: From, body: Bootstrap) -> Response:
    """Become the first administrator."""
    user = at.office.bootstrap(body.token, body.name, body.password, visit.source)
    return _begun(at.door.begin(user, visit.source), visit)


@routes.post("/sign-out", "sign_out", SIGNED_IN)
def sign_out(at: At, visit: From, principal: Who) -> Response:
    """End the session."""
    if visit.session is not None:
        at.door.sign_out(visit.session, principal, visit.source)
    answer = Document({})
    set_cookie(answer, SESSION, "", is_secure=visit.is_secure, seconds=0)
    return answer


@routes.get("/me", "who_am_i", SIGNED_IN)
async def who_am_i(visit: From, principal: Who) -> Response:
    """Say who is signed in, and what he may do."""
    is_session = principal.kind is PrincipalKind.USER and visit.session is not None
    return Document(principal_json(principal) | ({"csrf": csrf_of(visit.session or "")} if is_session else {}))


def _begun(signed_in: SignedIn, visit: Visit) -> Response:
    about = {"csrf": csrf_of(signed_in.session), "expires_at": signed_in.expires_at}
    answer = Document(principal_json(signed_in.principal) | about)
    set_cookie(answer, SESSION, signed_in.session, is_secure=visit.is_secure, seconds=None)
    if signed_in.device is not None:
        set_cookie(answer, DEVICE, signed_in.device, is_secure=visit.is_secure, seconds=_YEAR)
    return answer
