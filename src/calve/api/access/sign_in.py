"""Signing in and out with a password; the first administrator."""

from functools import partial
from typing import Annotated

from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from calve.access import Principal, SignedIn, csrf_of, network_of
from calve.api.access.authentication import page_token
from calve.api.access.control import AccessControl
from calve.api.access.cookies import DEVICE, SESSION, cookie_in, set_cookie
from calve.api.access.requests import RequestInfo
from calve.api.caller import principal_of
from calve.api.responses import Document
from calve.api.routes import Routes
from calve.operations import PREFIX, PUBLIC, SIGNED_IN, principal_json

ACCESS = f"{PREFIX}/access"
"""The prefix of their paths."""


async def _control(request: Request) -> AccessControl:
    control = request.app.state.control
    assert isinstance(control, AccessControl)  # noqa: S101 - guarded() put it there
    return control


async def _info(request: Request) -> RequestInfo:
    info = request.state.info
    assert isinstance(info, RequestInfo)  # noqa: S101 - the middleware put it there
    return info


async def _principal(request: Request) -> Principal:
    return principal_of(request)


ControlDep = Annotated[AccessControl, Depends(_control)]
"""The services for signing in."""
RequestDep = Annotated[RequestInfo, Depends(_info)]
"""The request, from the middleware."""
PrincipalDep = Annotated[Principal, Depends(_principal)]
"""The caller."""


Name = Annotated[str, Field(max_length=200)]
Password = Annotated[str, Field(max_length=1_024)]


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SignIn(_Body):
    """A name and a password."""

    name: Name
    password: Password


class Bootstrap(SignIn):
    """The first administrator, with the token that the server printed."""

    token: Annotated[str, Field(max_length=200)]


routes = Routes("access", ACCESS)
_YEAR = 365 * 86_400


@routes.post("/sign-in", "sign_in", PUBLIC)
async def sign_in(at: ControlDep, info: RequestDep, body: SignIn) -> Response:
    """Sign in with a name and a password."""
    return _begun(await signed_in(at, info, body), info)


async def signed_in(at: AccessControl, info: RequestInfo, body: SignIn) -> SignedIn:
    """Check a password, and start a session.

    Raises:
        Unauthenticated: the name or the password is wrong.
        TooManyAttempts: there were too many attempts.
    """
    device = cookie_in(info.headers, DEVICE)
    work = partial(at.authenticator.sign_in, body.name, body.password, info.source, device)
    return await at.passwords.run(network_of(info.source), work)


@routes.post("/bootstrap", "bootstrap", PUBLIC, is_slow=True)
def bootstrap(at: ControlDep, info: RequestDep, body: Bootstrap) -> Response:
    """Create the first administrator, with the token that the server printed."""
    return _begun(bootstrapped(at, info, body), info)


def bootstrapped(at: AccessControl, info: RequestInfo, body: Bootstrap) -> SignedIn:
    """Create the first administrator, and start their session.

    Raises:
        AccessError: the token is invalid, or there is already an administrator.
    """
    user = at.accounts.bootstrap(body.token, body.name, body.password, info.source)
    return at.authenticator.begin(user, info.source)


@routes.post("/sign-out", "sign_out", SIGNED_IN)
def sign_out(at: ControlDep, info: RequestDep, principal: PrincipalDep) -> Response:
    """End the session."""
    answer = Document({})
    signed_out(answer, at, info, principal)
    return answer


def signed_out(answer: Response, at: AccessControl, info: RequestInfo, principal: Principal) -> None:
    """End the session, and delete its cookie."""
    if info.session is not None:
        at.authenticator.sign_out(info.session, principal, info.source)
    set_cookie(answer, SESSION, "", is_secure=info.is_secure, seconds=0)


@routes.get("/me", "who_am_i", SIGNED_IN)
async def who_am_i(info: RequestDep, principal: PrincipalDep) -> Response:
    """Return the caller and their roles."""
    token = page_token(principal, info)
    return Document(principal_json(principal) | ({} if token is None else {"csrf": token}))


def _begun(begun: SignedIn, info: RequestInfo) -> Response:
    about = {"csrf": csrf_of(begun.session), "expires_at": begun.expires_at}
    answer = Document(principal_json(begun.principal) | about)
    set_session(answer, begun, info)
    return answer


def set_session(answer: Response, begun: SignedIn, info: RequestInfo) -> None:
    """Set the cookies of a session, and of a browser that has signed in."""
    set_cookie(answer, SESSION, begun.session, is_secure=info.is_secure, seconds=None)
    if begun.device is not None:
        set_cookie(answer, DEVICE, begun.device, is_secure=info.is_secure, seconds=_YEAR)
