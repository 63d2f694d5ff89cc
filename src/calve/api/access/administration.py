"""Users, tokens and the audit log over HTTP."""

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from calve.access import By, Permission, Principal, PrincipalKind, Token, parse_grants
from calve.access.office import can_administer_all
from calve.api.access.asking import ACCESS, At, From, Who
from calve.api.access.bodies import NewToken, NewUser, UserChange
from calve.api.access.documents import entry_json, token_json, user_json
from calve.api.answers import Document
from calve.api.policy import ADMINISTER, SIGNED_IN, Policy, Scope
from calve.api.routing import Routes
from calve.errors import Forbidden, RequestInvalid
from calve.settings import parse_duration

routes = Routes("access", ACCESS)
_AUDIT = Policy(Permission.AUDIT, Scope.EVERYWHERE)


@routes.get("/users", "list_users", ADMINISTER)
def list_users(at: At) -> Response:
    """List all people."""
    return Document([user_json(user) for user in at.door.state.users()])


@routes.post("/users", "add_user", ADMINISTER, is_slow=True)
def add_user(at: At, visit: From, principal: Who, body: NewUser) -> Response:
    """Add a person with a password."""
    by = By(principal, visit.source)
    return Document(user_json(at.office.add_user(body.name, body.password, parse_grants(body.grants), by)))


@routes.put("/users/{name}", "change_user", ADMINISTER, is_slow=True)
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
    return Document(user_json(user))


@routes.get("/tokens", "list_tokens", SIGNED_IN)
def list_tokens(at: At, principal: Who) -> Response:
    """List one's own tokens; an administrator sees all."""
    return Document([token_json(token) for token in at.door.state.tokens() if _may_see(principal, token)])


@routes.post("/tokens", "create_token", SIGNED_IN)
def create_token(at: At, visit: From, principal: Who, body: NewToken) -> Response:
    """Make a token; its text is told this once."""
    if principal.kind is PrincipalKind.TOKEN:
        raise Forbidden(
            "A token cannot make tokens.", remedy="Sign in, or run on the server: calve token create NAME --grant ROLE"
        )
    text, token = at.office.create_token(
        body.name, parse_grants(body.grants), By(principal, visit.source), life=_life(body.expires_in)
    )
    return Document(token_json(token) | {"token": text})


@routes.delete("/tokens/{token_id}", "revoke_token", SIGNED_IN)
def revoke_token(at: At, visit: From, principal: Who, token_id: str) -> Response:
    """Revoke a token of one's own; an administrator, any."""
    if not any(token.token_id == token_id and _may_see(principal, token) for token in at.door.state.tokens()):
        raise RequestInvalid(f"There is no valid token {token_id}.")
    at.office.revoke_token(token_id, By(principal, visit.source))
    return Document({})


@routes.get("/audit", "read_audit", _AUDIT)
def read_audit(at: At, limit: Annotated[int, Query(ge=1, le=200)] = 50) -> Response:
    """Read the newest lines of the audit log."""
    return Document([entry_json(entry) for entry in at.door.state.newest(limit)])


def _may_see(principal: Principal, token: Token) -> bool:
    is_own = principal.kind is PrincipalKind.USER and token.owner == principal.name
    return is_own or can_administer_all(principal)


def _life(text: str | None) -> int | None:
    try:
        return None if text is None else int(parse_duration(text).total_seconds() * 1_000)
    except ValueError as error:
        raise RequestInvalid(str(error)) from error
