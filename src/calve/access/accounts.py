"""Administration: users, tokens and the first administrator."""

import re
from dataclasses import dataclass, replace

from calve.access import credentials
from calve.access.authentication import Clock, who
from calve.access.credentials import RandomBytes
from calve.access.permissions import Grants, Permission, Principal, PrincipalKind, Role, limited, namespaces
from calve.access.ports import AccessState
from calve.access.records import Act, Token, User
from calve.errors import Forbidden, RequestInvalid, Unauthenticated
from calve.namespaces import ROOT

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@+-]{0,127}")
OF_PROVIDER = "oidc:"
"""Prefix of the names of users of an identity provider; nobody can add a user with such a name."""


@dataclass(frozen=True, slots=True)
class Actor:
    """The author of an action, and where it came from."""

    principal: Principal
    source: str

    def act(self, at: int, action: str, target: str, **detail: object) -> Act:
        """Return the audit log's record of an action that succeeded."""
        return Act(at, who(self.principal), action, target, self.source, "ok", detail)


@dataclass(frozen=True, slots=True)
class Accounts:
    """Manages users and tokens; the caller has checked permissions."""

    state: AccessState
    clock: Clock
    random: RandomBytes

    def add_user(self, name: str, password: str, grants: Grants, by: Actor) -> User:
        """Add a user with a password.

        Raises:
            RequestInvalid: the name is taken or invalid, or the password is too easy to guess.
        """
        user = self._new_user(name, password, grants)
        if not self.state.add_user(user, by.act(user.created_at, "add_user", f"user:{name}", grants=dict(grants))):
            raise RequestInvalid(f"User {name} already exists.", user=name)
        return user

    def _new_user(self, name: str, password: str, grants: Grants) -> User:
        _check_name(name)
        return User(name, dict(grants), self.clock(), password_hash=credentials.hashed(password, user=name))

    def set_password(self, name: str, password: str, by: Actor) -> None:
        """Change a user's password; all sessions end."""
        user = self._user(name)
        if user.name.startswith(OF_PROVIDER):
            raise RequestInvalid(f"{name} signs in with the identity provider, and has no password here.")
        # The epoch ends every session: each one remembers the epoch in which it began.
        changed = replace(user, password_hash=credentials.hashed(password, user=name), epoch=user.epoch + 1)
        self.state.change_user(changed, by.act(self.clock(), "set_password", f"user:{name}"))

    def set_grants(self, name: str, grants: Grants, by: Actor) -> None:
        """Change a user's roles, from the next request on."""
        changed = replace(self._user(name), grants=dict(grants))
        self.state.change_user(changed, by.act(self.clock(), "set_grants", f"user:{name}", grants=dict(grants)))

    def disable(self, name: str, by: Actor, *, is_disabled: bool = True) -> None:
        """Disable a user, or enable them again; all sessions end, and their tokens are refused meanwhile."""
        user = self._user(name)
        changed = replace(user, is_disabled=is_disabled, epoch=user.epoch + 1)
        action = "disable_user" if is_disabled else "enable_user"
        self.state.change_user(changed, by.act(self.clock(), action, f"user:{name}"))

    def vouched(self, name: str, shown: str, grants: Grants, by: Actor) -> User:
        """Return the user that an identity provider authenticated, with the roles it grants; created if new.

        Raises:
            Unauthenticated: the user is disabled here.
            Forbidden: the user has no roles; their earlier sessions and tokens lose them too.
        """
        known = self.state.user(name)
        if known is None:
            _check_some(grants)
            return self._introduced(User(name, dict(grants), self.clock(), shown=shown), by)
        user = self._revised(known, replace(known, shown=shown, grants=dict(grants)), by)
        if user.is_disabled:
            raise Unauthenticated
        _check_some(grants)
        return user

    def _introduced(self, user: User, by: Actor) -> User:
        act = by.act(user.created_at, "add_user", f"user:{user.name}", grants=dict(user.grants))
        # Lost a race with another sign-in of the same person: theirs is as good.
        return user if self.state.add_user(user, act) else self._user(user.name)

    def _revised(self, known: User, user: User, by: Actor) -> User:
        if user != known:
            act = by.act(self.clock(), "set_grants", f"user:{user.name}", grants=dict(user.grants))
            self.state.change_user(user, act)
        return user

    def create_token(self, name: str, grants: Grants, by: Actor, *, life: int | None) -> tuple[str, Token]:
        """Create a token; its text is returned only here.

        Args:
            name: what it is for.
            grants: what it may do, where.
            by: who creates it; a user's own token never has more permissions than the user, and ends with them.
            life: after how many milliseconds it expires; None: never.

        Raises:
            RequestInvalid: the name is invalid, or it would have expired already.
            Forbidden: it would have more permissions than its creator.
        """
        _check_name(name)
        if life is not None and life <= 0:
            raise RequestInvalid("The token's expiry is in the past.")
        # Compared after both are normalised: a grant in a child namespace may be covered by one further up.
        if limited(grants, by.principal.grants) != limited(grants, grants):
            raise Forbidden("A token cannot have more permissions than its creator.")
        owner = by.principal.name if by.principal.kind is PrincipalKind.USER else None
        return self._made(name, grants, by, owner=owner, life=life)

    def _made(
        self, name: str, grants: Grants, by: Actor, *, owner: str | None, life: int | None, is_bootstrap: bool = False
    ) -> tuple[str, Token]:
        now, text = self.clock(), credentials.new_text(self.random)
        token = Token(
            token_id=self.random(6).hex(),
            name=name,
            digest=credentials.digest(text),
            grants=dict(grants),
            created_at=now,
            owner=owner,
            expires_at=None if life is None else now + life,
            is_bootstrap=is_bootstrap,
        )
        detail = {"name": name, "grants": dict(grants), "expires_at": token.expires_at}
        self.state.add_token(token, by.act(now, "create_token", f"token:{token.token_id}", **detail))
        return text, token

    def revoke_token(self, token_id: str, by: Actor) -> None:
        """Revoke a token, with immediate effect.

        Raises:
            RequestInvalid: it does not exist, or was revoked before.
        """
        act = by.act(self.clock(), "revoke_token", f"token:{token_id}")
        if not self.state.revoke_token(token_id, act.at, act):
            raise RequestInvalid(
                f"There is no valid token {token_id}.", remedy="List the tokens with: calve token list"
            )

    def bootstrap_token(self, by: Actor, *, life: int) -> str | None:
        """Return a token that creates the first administrator; None if an administrator exists."""
        if any(Role.ADMIN is user.grants.get(ROOT) and not user.is_disabled for user in self.state.users()):
            return None
        return self._made("bootstrap", {}, by, owner=None, life=life, is_bootstrap=True)[0]

    def bootstrap(self, text: str, name: str, password: str, source: str) -> User:
        """Create the first administrator with a bootstrap token, which can be used once.

        Raises:
            Unauthenticated: the token is invalid or already used.
            RequestInvalid: the name is invalid, or the password is too easy to guess.
        """
        now, token = self.clock(), self.state.token(credentials.digest(text))
        if token is None or not token.is_bootstrap or not token.is_valid(now):
            raise Unauthenticated
        user = self._new_user(name, password, {ROOT: Role.ADMIN})
        act = Act(now, f"token:{token.token_id}", "bootstrap", f"user:{name}", source, "ok")
        # Token and user in one transaction: of two requests with the same token only one creates an administrator.
        if not self.state.bootstrap(token.token_id, user, now, act):
            raise Unauthenticated
        return user

    def _user(self, name: str) -> User:
        user = self.state.user(name)
        if user is None:
            raise RequestInvalid(
                f"User {name} does not exist.", remedy="List the users with: calve user list", user=name
            )
        return user


def can_administer_all(principal: Principal) -> bool:
    """Tell whether a caller is administrator everywhere, which managing other users and tokens requires."""
    return namespaces(principal, Permission.ADMINISTER) == (ROOT,)


def _check_some(grants: Grants) -> None:
    if not grants:
        raise Forbidden(
            "None of your groups has a role here.", remedy="Ask an administrator to add one to access.oidc.roles."
        )


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise RequestInvalid(
            f"{name!r} is not a valid name for a user or a token.",
            remedy="Use letters, digits, and _ . @ + - between them; 128 at most.",
        )
