"""Users, tokens and the audit log over HTTP."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response

from calve.access import By, Entry, Permission, Principal, PrincipalKind, Token, User, parse_grants, written
from calve.access.office import can_administer_all
from calve.api.policy import Scope, needs
from calve.api.sessions import ACCESS, At, From, Who
from calve.errors import Forbidden, RequestInvalid
from calve.settings import parse_duration

router = APIRouter(prefix=ACCESS, tags=["access"])
_ADMIN = [needs(Permission.ADMINISTER, Scope.EVERYWHERE)]
_SIGNED_IN = [needs(Permission.SIGNED_IN, Scope.EVERYWHERE)]
_AUDIT = [needs(Permission.AUDIT, Scope.EVERYWHERE)]

Name = Annotated[str, Field(max_length=200)]
Password = Annotated[str, Field(max_length=1_024)]


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class NewUser(_Body):
    """A person to add."""

    name: Name
    password: Password
    grants: list[str] = []


class UserChange(_Body):
    """What is to be changed of a person."""

    password: Password | None = None
    grants: list[str] | None = None
    is_disabled: bool | None = None


class NewToken(_Body):
    """A token to make."""

    name: Name
    grants: list[str]
    expires_in: str | None = "90d"
    """A duration; null: never."""


@router.get("/users", operation_id="list_users", dependencies=_ADMIN)
def list_users(at: At) -> Response:
    """List all people."""
    return JSONResponse([user_json(user) for user in at.door.state.users()])


@router.post("/users", operation_id="add_user", dependencies=_ADMIN)
def add_user(at: At, visit: From, principal: Who, body: NewUser) -> Response:
    """Add a person with a password."""
    by = By(principal, visit.source)
    return JSONResponse(user_json(at.office.add_user(body.name, body.password, parse_grants(body.grants), by)))


@router.put("/users/{name}", operation_id="change_user", dependencies=_ADMIN)
def change_user(at: At, visit: From, principal: Who, name: str, body: UserChange) -> Response:
    """Give a person another password or other roles, or let that person in no more."""
    by = By(principal, visit.source)
    if body.password is not None:
        at.office.set_password(name, body.password, by)
    if body.grants is not None:
        at.office.set_grants(name, parse_grants(body.grants), by)
    if body.is_disabled is not None:
        at.office.disable(name, by, is_disabled=body.is_disabled)
    user = at.door.state.user(name)
    if user is None:
        raise RequestInvalid(f"There is no user {name}.", user=name)
    return JSONResponse(user_json(user))


@router.get("/tokens", operation_id="list_tokens", dependencies=_SIGNED_IN)
def list_tokens(at: At, principal: Who) -> Response:
    """List one's own tokens; an administrator sees all."""
    return JSONResponse([token_json(token) for token in at.door.state.tokens() if _may_see(principal, token)])


@router.post("/tokens", operation_id="create_token", dependencies=_SIGNED_IN)
def create_token(at: At, visit: From, principal: Who, body: NewToken) -> Response:
    """Make a token; its text is told this once."""
    if principal.kind is PrincipalKind.TOKEN:
        raise Forbidden("A token cannot make tokens.", remedy="Sign in, or use calve token create.")
    text, token = at.office.create_token(
        body.name, parse_grants(body.grants), By(principal, visit.source), life=_life(body.expires_in)
    )
    return JSONResponse(token_json(token) | {"token": text})


@router.delete("/tokens/{token_id}", operation_id="revoke_token", dependencies=_SIGNED_IN)
def revoke_token(at: At, visit: From, principal: Who, token_id: str) -> Response:
    """Revoke a token of one's own; an administrator, any."""
    if not any(token.token_id == token_id and _may_see(principal, token) for token in at.door.state.tokens()):
        raise RequestInvalid(f"There is no valid token {token_id}.")
    at.office.revoke_token(token_id, By(principal, visit.source))
    return JSONResponse({})


@router.get("/audit", operation_id="read_audit", dependencies=_AUDIT)
def read_audit(at: At, limit: Annotated[int, Query(ge=1, le=200)] = 50) -> Response:
    """Read the newest lines of the audit log."""
    return JSONResponse([entry_json(entry) for entry in at.door.state.newest(limit)])


def user_json(user: User) -> dict[str, Any]:
    """Return a person without what is kept of the password."""
    return {
        "name": user.name,
        "shown": user.shown,
        "grants": written(user.grants),
        "is_disabled": user.is_disabled,
        "has_password": user.password_hash is not None,
        "created_at": user.created_at,
    }


def token_json(token: Token) -> dict[str, Any]:
    """Return a token without what is kept of its text."""
    return {
        "token_id": token.token_id,
        "name": token.name,
        "owner": token.owner,
        "grants": written(token.grants),
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
        "used_at": token.used_at,
    }


def entry_json(entry: Entry) -> dict[str, Any]:
    """Return a line of the audit log."""
    act = entry.act
    return {
        "seq": entry.seq,
        "at": act.at,
        "who": act.who,
        "action": act.action,
        "target": act.target,
        "source": act.source,
        "result": act.result,
        "detail": dict(act.detail),
        "digest": entry.digest,
    }


def _may_see(principal: Principal, token: Token) -> bool:
    is_own = principal.kind is PrincipalKind.USER and token.owner == principal.name
    return is_own or can_administer_all(principal)


def _life(text: str | None) -> int | None:
    try:
        return None if text is None else int(parse_duration(text).total_seconds() * 1_000)
    except ValueError as error:
        raise RequestInvalid(str(error)) from error
