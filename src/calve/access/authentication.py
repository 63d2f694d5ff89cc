"""Authentication by token, password and session. Failed attempts slow down their source, and nobody else."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NoReturn

from calve.access import credentials
from calve.access.credentials import RandomBytes
from calve.access.permissions import Principal, PrincipalKind, limited, written
from calve.access.ports import AccessState
from calve.access.rate_limit import Backoff, SignInBackoff, SignInSource, network_of
from calve.access.records import Act, Session, Token, User
from calve.errors import TooManyAttempts, Unauthenticated

Clock = Callable[[], int]
TOUCH = 60_000
"""Milliseconds between two updates of a token's last use."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A new sign-in; the text of the session is available only here."""

    principal: Principal
    session: str = field(repr=False)
    expires_at: int
    device: str | None = field(default=None, repr=False)
    """A cookie that identifies a known browser, so that failures of others do not slow it down."""


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Authenticates people and programs."""

    state: AccessState
    clock: Clock
    random: RandomBytes
    session_life: int
    """How long a session lasts, in milliseconds."""
    backoff: Backoff = field(default_factory=Backoff)
    """For invalid tokens, by address."""
    sign_ins: SignInBackoff = field(default_factory=SignInBackoff)

    def by_token(self, text: str, source: str) -> Principal:
        """Return the principal of a token; a valid one is accepted whatever else came from its address.

        Raises:
            Unauthenticated: it is unknown, expired or revoked, or its owner is disabled.
            TooManyAttempts: it is unknown, after too many others from the same address.
        """
        now, digest, network = self.clock(), credentials.digest(text), network_of(source)
        token = self.state.token(digest) if text.startswith(credentials.PREFIX) else None
        if token is None or not credentials.is_same(token.digest, digest):
            _let_try(self.backoff.wait(network, now))
            is_new = self.backoff.wrong(network, now)
            self._refuse(Act(now, "anonymous", "token", "", source, "locked") if is_new else None)
        principal = self._of_token(token, now)
        if principal is None:
            raise _over(token, now)
        # Not at each request: a write for each read would serialise all clients on SQLite.
        if now - (token.used_at or 0) >= TOUCH:
            self.state.touch_token(token.token_id, now)
        return principal

    def holder(self, text: str) -> Principal | None:
        """Return the principal of a token that was accepted before; this does not count as an attempt."""
        token = self.state.token(credentials.digest(text))
        return None if token is None else self._of_token(token, self.clock())

    def _of_token(self, token: Token, now: int) -> Principal | None:
        if token.is_bootstrap or not token.is_valid(now):
            return None
        if token.owner is None:
            return Principal(f"token:{token.name}", PrincipalKind.TOKEN, token.grants)  # which is the name of no user
        owner = self.state.user(token.owner)
        if owner is None or owner.is_disabled:
            return None
        return Principal(token.owner, PrincipalKind.TOKEN, limited(token.grants, owner.grants))

    def by_session(self, text: str) -> Principal:
        """Return the user of a session.

        Raises:
            Unauthenticated: it is over, or never existed.
        """
        now, digest = self.clock(), credentials.digest(text)
        found = self.state.session(digest)
        if found is None:
            raise Unauthenticated
        session, user = found
        if user.is_disabled or session.epoch != user.epoch or now >= session.expires_at:
            raise Unauthenticated
        return _person(user)

    def sign_in(self, name: str, password: str, source: str, device: str | None = None) -> SignedIn:
        """Begin a session for a user with a password.

        Args:
            name: the user's name.
            password: their password.
            source: the client's address.
            device: the cookie from an earlier sign-in, if any.

        Raises:
            Unauthenticated: the user does not exist or the password is wrong; the message does not say which.
            TooManyAttempts: too many failures for that name from there, or from that address.
        """
        now, name = self.clock(), name[:200].replace("\0", "")  # which PostgreSQL cannot keep
        user = self.state.user(name)
        kept = user.password_hash if user else None
        tries = SignInSource(name, network_of(source), credentials.device_in(device, kept))
        _let_try(self.sign_ins.wait(tries, now))
        # Checked for unknown users as well: the time must not show which names exist.
        is_right = credentials.matches(kept, password)
        if user is None or kept is None or not is_right or user.is_disabled:
            is_new = self.sign_ins.wrong(tries, now)
            self._refuse(Act(now, "anonymous", "sign_in", f"user:{name}", source, "locked") if is_new else None)
        self.sign_ins.right(tries)
        known = device if tries.device is not None else credentials.new_device(kept, self.random)
        return replace(self.begin(user, source), device=known)

    def begin(self, user: User, source: str) -> SignedIn:
        """Begin a session for a user who was authenticated elsewhere."""
        now, text = self.clock(), credentials.new_text(self.random)
        session = Session(credentials.digest(text), user.name, user.epoch, now, now + self.session_life)
        self.state.add_session(session, Act(now, f"user:{user.name}", "sign_in", f"user:{user.name}", source, "ok"))
        return SignedIn(_person(user), text, session.expires_at)

    def sign_out(self, text: str, principal: Principal, source: str) -> None:
        """End a session."""
        act = Act(self.clock(), who(principal), "sign_out", who(principal), source, "ok")
        self.state.end_session(credentials.digest(text), act)

    def _refuse(self, locked: Act | None) -> NoReturn:
        """Refuse; the log gets a line when a source is locked out, not for each attempt, so it cannot be flooded."""
        if locked is not None:
            self.state.append(locked)
        raise Unauthenticated


def _let_try(wait: int) -> None:
    if wait:
        raise TooManyAttempts(retry_after=-(-wait // 1_000))


def _over(token: Token, now: int) -> Unauthenticated:
    """Return why a known token is not accepted; its holder did not guess it."""
    if token.is_bootstrap:
        return Unauthenticated("A bootstrap token can only create the first administrator.")
    if token.revoked_at is not None:
        why = "was revoked"
    elif not token.is_valid(now):
        why = "has expired"
    else:
        why = "belongs to a user who is disabled or deleted"
    grants = " --grant ".join(written(token.grants))
    remedy = f"Create a new one: calve token create {token.name} --grant {grants}"
    return Unauthenticated(f"The token {token.name} {why}.", remedy=remedy)


def who(principal: Principal) -> str:
    """Return the name of a principal for the audit log."""
    return f"{principal.kind}:{principal.name.removeprefix('token:')}"


def _person(user: User) -> Principal:
    return Principal(user.name, PrincipalKind.USER, user.grants, user.shown)
