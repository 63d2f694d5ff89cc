"""Administration: users, tokens and the first administrator."""

import re
from dataclasses import dataclass, replace

from calve.access import credentials
from calve.access.credentials import RandomBytes
from calve.access.door import Clock, who
from calve.access.model import Grants, Permission, Principal, PrincipalKind, Role, limited, namespaces
from calve.access.ports import AccessState
from calve.access.records import Act, Token, User
from calve.errors import Forbidden, RequestInvalid, Unauthenticated
from calve.namespaces import ROOT

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@+-]{0,127}")
OF_PROVIDER = "oidc:"
"""Stands before the names of people whom a provider of identities vouches for: nobody can add a user of such a name."""


@dataclass(frozen=True, slots=True)
class By:
    """Who does it, and from where."""

    principal: Principal
    source: str

    def act(self, at: int, action: str, target: str, **detail: object) -> Act:
        """Return the line of the audit log for something that went well."""
        return Act(at, who(self.principal), action, target, self.source, "ok", detail)


@dataclass(frozen=True, slots=True)
class Office:
    """Keeps users and tokens; that somebody may ask it for something has been checked before."""

    state: AccessState
    clock: Clock
    random: RandomBytes

    def add_user(self, name: str, password: str, grants: Grants, by: By) -> User:
        """Add a person with a password.

        Raises:
            RequestInvalid: the name is taken or cannot be one, or the password is too easy to guess.
        """
        user = self._new_user(name, password, grants)
        if not self.state.add_user(user, by.act(user.created_at, "add_user", f"user:{name}", grants=dict(grants))):
            raise RequestInvalid(f"There is a user {name} already.", user=name)
        return user

    def _new_user(self, name: str, password: str, grants: Grants) -> User:
        _check_name(name)
        return User(name, dict(grants), self.clock(), password_hash=credentials.hashed(password, user=name))

    def set_password(self, name: str, password: str, by: By) -> None:
        """Give a person another password; all sessions end."""
        user = self._user(name)
        if user.name.startswith(OF_PROVIDER):
            raise RequestInvalid(f"{name} signs in at the provider of identities, and has no password here.")
        changed = replace(user, password_hash=credentials.hashed(password, user=name), epoch=user.epoch + 1)
        self.state.change_user(changed, by.act(self.clock(), "set_password", f"user:{name}"))

    def set_grants(self, name: str, grants: Grants, by: By) -> None:
        """Give a person other roles, from the next request on."""
        changed = replace(self._user(name), grants=dict(grants))
        self.state.change_user(changed, by.act(self.clock(), "set_grants", f"user:{name}", grants=dict(grants)))

    def disable(self, name: str, by: By, *, is_disabled: bool = True) -> None:
        """Let a person in no more, or again; all sessions end, and tokens of that person open nothing meanwhile."""
        user = self._user(name)
        changed = replace(user, is_disabled=is_disabled, epoch=user.epoch + 1)
        action = "disable_user" if is_disabled else "enable_user"
        self.state.change_user(changed, by.act(self.clock(), action, f"user:{name}"))

    def vouched(self, name: str, shown: str, grants: Grants, by: By) -> User:
        """Return the user whom a provider of identities vouches for, with the roles that it says; made if new.

        Raises:
            Unauthenticated: he is disabled here.
            Forbidden: he may do nothing; what he might do before, with sessions and tokens too, is over.
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

    def _introduced(self, user: User, by: By) -> User:
        act = by.act(user.created_at, "add_user", f"user:{user.name}", grants=dict(user.grants))
        return user if self.state.add_user(user, act) else self._user(user.name)

    def _revised(self, known: User, user: User, by: By) -> User:
        if user != known:
            act = by.act(self.clock(), "set_grants", f"user:{user.name}", grants=dict(user.grants))
            self.state.change_user(user, act)
        return user

    def create_token(self, name: str, grants: Grants, by: By, *, life: int | None) -> tuple[str, Token]:
        """Make a token; its text is told this once.

        Args:
            name: what it is for.
            grants: what it may do, where.
            by: who makes it; a user's own token can do no more than he, and dies with him.
            life: after how many milliseconds it expires; None: never.

        Raises:
            RequestInvalid: the name cannot be one, or it would expire at once.
            Forbidden: it could do more than who makes it.
        """
        _check_name(name)
        if life is not None and life <= 0:
            raise RequestInvalid("The token would have expired already.")
        if limited(grants, by.principal.grants) != limited(grants, grants):
            raise Forbidden("A token can do no more than who makes it.")
        owner = by.principal.name if by.principal.kind is PrincipalKind.USER else None
        return self._made(name, grants, by, owner=owner, life=life)

    def _made(
        self, name: str, grants: Grants, by: By, *, owner: str | None, life: int | None, is_bootstrap: bool = False
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

    def revoke_token(self, token_id: str, by: By) -> None:
        """Let a token open nothing any more, at once.

        Raises:
            RequestInvalid: there is none of that id, or it was revoked before.
        """
        act = by.act(self.clock(), "revoke_token", f"token:{token_id}")
        if not self.state.revoke_token(token_id, act.at, act):
            raise RequestInvalid(f"There is no valid token {token_id}.", remedy="See calve token list.")

    def bootstrap_token(self, by: By, *, life: int) -> str | None:
        """Return a token that makes the first administrator; None if there is somebody already who can sign in."""
        if any(Role.ADMIN is user.grants.get(ROOT) and not user.is_disabled for user in self.state.users()):
            return None
        return self._made("bootstrap", {}, by, owner=None, life=life, is_bootstrap=True)[0]

    def bootstrap(self, text: str, name: str, password: str, source: str) -> User:
        """Make the first administrator, with a bootstrap token that is used up by it.

        Raises:
            Unauthenticated: it is no such token, or it is used up.
            RequestInvalid: it cannot be a name, or the password is too easy to guess.
        """
        now, token = self.clock(), self.state.token(credentials.digest(text))
        if token is None or not token.is_bootstrap or not token.is_valid(now):
            raise Unauthenticated
        user = self._new_user(name, password, {ROOT: Role.ADMIN})
        act = Act(now, f"token:{token.token_id}", "bootstrap", f"user:{name}", source, "ok")
        if not self.state.bootstrap(token.token_id, user, now, act):
            raise Unauthenticated
        return user

    def _user(self, name: str) -> User:
        user = self.state.user(name)
        if user is None:
            raise RequestInvalid(f"There is no user {name}.", remedy="See calve user list.", user=name)
        return user


def can_administer_all(principal: Principal) -> bool:
    """Tell whether somebody is administrator everywhere, which users and tokens of others take."""
    return namespaces(principal, Permission.ADMINISTER) == (ROOT,)


def _check_some(grants: Grants) -> None:
    if not grants:
        raise Forbidden("None of your groups may do anything here.", remedy="Ask an administrator: access.oidc.roles.")


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise RequestInvalid(
            f"{name!r} cannot be the name of a user or a token.",
            remedy="Use letters, digits, and _ . @ + - between them; 128 at most.",
        )
