"""Access: users, tokens, the audit log and the names of secrets."""

from typing import Annotated

from pydantic import Field

from calve.access import (
    AuditEntry,
    Principal,
    PrincipalKind,
    Token,
    User,
    can_administer_all,
    parse_grants,
    verify,
    written,
)
from calve.errors import Forbidden, RequestInvalid
from calve.operations.arguments import Word
from calve.operations.declaration import Argument, Document, StrictBody, Topic, operation
from calve.operations.policy import ADMINISTER, AUDIT, SIGNED_IN
from calve.settings import parse_duration

Name = Annotated[str, Field(max_length=200)]
Password = Annotated[str, Field(max_length=1_024, json_schema_extra={"format": "password"})]
Grants = Annotated[
    list[str],
    Field(
        description="Roles: viewer, runner, editor or admin; with @NAMESPACE, only in that namespace and below it.",
        examples=[["editor@sales"]],
    ),
]
UserName = Annotated[str, Argument("The name of the user.")]
TokenId = Annotated[str, Argument("The id of the token.")]


class NewUser(StrictBody):
    """A user to add."""

    name: Name
    password: Password
    grants: Grants = Field(default=[])


class UserChange(StrictBody):
    """A change of a user."""

    password: Password | None = None
    grants: Grants | None = None
    is_disabled: bool | None = None


class NewToken(StrictBody):
    """A token to create."""

    name: Name
    grants: Grants
    expires_in: Annotated[str | None, Field(description="When it expires: 12h, 90d, never.")] = "90d"


class NewSecret(StrictBody):
    """A secret to store."""

    text: Annotated[str, Field(min_length=1, max_length=65_536, json_schema_extra={"format": "password"})]


class Access(Topic):
    """Manages users, tokens and secrets, and reads the audit log."""

    __slots__ = ()
    tag = "access"

    @operation("GET /access/users", ADMINISTER, id="list_users")
    def users(self) -> list[Document]:
        """List all users and their roles."""
        return [user_json(user) for user in self.call.accounts.state.users()]

    @operation("POST /access/users", ADMINISTER, body=NewUser, is_slow=True)
    def add_user(self, name: str, password: str, grants: list[str] | None = None) -> Document:
        """Add a user with a password."""
        return user_json(self.call.accounts.add_user(name, password, parse_grants(grants or ()), self.call.actor))

    @operation("PUT /access/users/{name}", ADMINISTER, body=UserChange, needs_body=True, is_slow=True)
    def change_user(
        self,
        name: UserName,
        *,
        password: str | None = None,
        grants: list[str] | None = None,
        is_disabled: bool | None = None,
    ) -> Document:
        """Change a user's password or roles, or disable them: they can no longer sign in."""
        accounts, actor = self.call.accounts, self.call.actor
        if password is not None:
            accounts.set_password(name, password, actor)
        if grants is not None:
            accounts.set_grants(name, parse_grants(grants), actor)
        if is_disabled is not None:
            accounts.disable(name, actor, is_disabled=is_disabled)
        user = accounts.state.user(name)
        if user is None:
            raise RequestInvalid(f"User {name} does not exist.", user=name)
        return user_json(user)

    @operation("GET /access/tokens", SIGNED_IN, id="list_tokens")
    def tokens(self) -> list[Document]:
        """List the caller's tokens; an administrator sees all."""
        found = self.call.accounts.state.tokens()
        return [token_json(token) for token in found if _may_see(self.call.principal, token)]

    @operation("POST /access/tokens", SIGNED_IN, body=NewToken)
    def create_token(self, name: str, grants: list[str], expires_in: str | None = "90d") -> Document:
        """Create a token; its text is shown only this once."""
        if self.call.principal.kind is PrincipalKind.TOKEN:
            raise Forbidden(
                "A token cannot create tokens.",
                remedy="Sign in, or run on the server: calve token create NAME --grant ROLE",
            )
        text, token = self.call.accounts.create_token(
            name, parse_grants(grants), self.call.actor, life=_life(expires_in)
        )
        return token_json(token) | {"token": text}

    @operation("DELETE /access/tokens/{token_id}", SIGNED_IN)
    def revoke_token(self, token_id: TokenId) -> Document:
        """Revoke a token immediately: one of the caller's, or, as an administrator, any token."""
        accounts, principal = self.call.accounts, self.call.principal
        if not any(one.token_id == token_id and _may_see(principal, one) for one in accounts.state.tokens()):
            raise RequestInvalid(
                f"There is no valid token {token_id}.", remedy="List the tokens with: calve token list"
            )
        accounts.revoke_token(token_id, self.call.actor)
        return {"token_id": token_id}

    @operation("GET /access/audit", AUDIT, id="read_audit")
    def audit(
        self,
        limit: Annotated[int, Argument("How many lines to show.", ge=1, le=10_000)] = 50,
        before: Annotated[int | None, Argument("Only lines before this number.", ge=1, lt=2**63)] = None,
    ) -> list[Document]:
        """Read the newest lines of the audit log: who did what, when, from where, and the result."""
        return [entry_json(entry) for entry in self.call.accounts.state.newest(limit, before)]

    @operation("GET /access/audit/verify", AUDIT, is_slow=True)
    def verify_audit(
        self, head: Annotated[str | None, Argument("An earlier digest: verify that its line still exists.")] = None
    ) -> Document:
        """Verify the whole audit log: report whether a line was changed or removed, and the digest of the last line."""
        found = verify(self.call.accounts.state.entries(), head)
        return {"is_whole": found.is_whole, "lines": found.lines, "head": found.head, "problem": found.problem}

    @operation("GET /secrets", ADMINISTER, id="list_secrets")
    def secrets(self) -> list[Document]:
        """List the names of all secrets in the encrypted table; their texts are never shown."""
        found = self.call.administration.secrets()
        return [{"name": one.name, "changed_at": one.changed_at, "changed_by": one.changed_by} for one in found]

    @operation("PUT /secrets/{name}", ADMINISTER, body=NewSecret, is_slow=True)
    def set_secret(self, name: Word, text: str) -> Document:
        """Store a secret in the encrypted table; the key is created if there is none."""
        self.call.administration.set_secret(name, text, self.call.actor)
        return {"name": name}

    @operation("DELETE /secrets/{name}", ADMINISTER)
    def delete_secret(self, name: Word) -> Document:
        """Delete a secret from the encrypted table."""
        self.call.administration.delete_secret(name, self.call.actor)
        return {"name": name}


def principal_json(principal: Principal) -> Document:
    """Return a caller with their roles."""
    return {"name": principal.name, "kind": principal.kind, "grants": written(principal.grants)}


def user_json(user: User) -> Document:
    """Return a user without the hash of the password."""
    return {
        "name": user.name,
        "shown": user.shown,
        "grants": written(user.grants),
        "is_disabled": user.is_disabled,
        "has_password": user.password_hash is not None,
        "created_at": user.created_at,
    }


def token_json(token: Token) -> Document:
    """Return a token without the hash of its text."""
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


def entry_json(entry: AuditEntry) -> Document:
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
        return None if text in {None, "never"} else int(parse_duration(text).total_seconds() * 1_000)
    except ValueError as error:
        raise RequestInvalid(str(error)) from error
