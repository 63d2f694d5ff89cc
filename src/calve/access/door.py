"""Who is it: by token, by password, by session. Mistakes cost whoever makes them, and nobody else."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NoReturn

from calve.access import credentials
from calve.access.credentials import RandomBytes
from calve.access.model import Principal, PrincipalKind, limited, written
from calve.access.ports import AccessState
from calve.access.records import Act, Session, Token, User
from calve.access.throttling import Backoff, SignInBackoff, SignInSource, network_of
from calve.errors import TooManyAttempts, Unauthenticated

Clock = Callable[[], int]
TOUCH = 60_000
"""How often at most it is written that a token was used."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """Somebody who has just signed in; the text of the session is told this once."""

    principal: Principal
    session: str = field(repr=False)
    expires_at: int
    device: str | None = field(default=None, repr=False)
    """What the browser keeps, so that mistakes of others do not hold it up the next time."""


@dataclass(frozen=True, slots=True)
class Door:
    """Lets people and programs in, by what they show."""

    state: AccessState
    clock: Clock
    random: RandomBytes
    session_life: int
    """How long a session lasts, in milliseconds."""
    backoff: Backoff = field(default_factory=Backoff)
    """Of wrong tokens, by address."""
    sign_ins: SignInBackoff = field(default_factory=SignInBackoff)

    def by_token(self, text: str, source: str) -> Principal:
        """Return whom a token stands for; a good one is taken whatever else has come from its address.

        Raises:
            Unauthenticated: it is unknown, expired or revoked, or its owner is disabled.
            TooManyAttempts: it is unknown, as too many from there were.
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
        if now - (token.used_at or 0) >= TOUCH:
            self.state.touch_token(token.token_id, now)
        return principal

    def holder(self, text: str) -> Principal | None:
        """Return whom a token stands for that was let in before; to ask for it is no try."""
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
        """Return who is signed in with a session.

        Raises:
            Unauthenticated: it is over, or never was.
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
        """Begin a session of somebody who knows the password.

        Args:
            name: who it is.
            password: shows it.
            source: from where.
            device: what the browser kept when it signed in before.

        Raises:
            Unauthenticated: there is no such user, or it is another password; which of them is not said.
            TooManyAttempts: there were too many wrong ones for that name from there, or from there.
        """
        now, name = self.clock(), name[:200].replace("\0", "")  # which PostgreSQL cannot keep
        user = self.state.user(name)
        kept = user.password_hash if user else None
        tries = SignInSource(name, network_of(source), credentials.device_in(device, kept))
        _let_try(self.sign_ins.wait(tries, now))
        is_right = credentials.matches(kept, password)
        if user is None or kept is None or not is_right or user.is_disabled:
            is_new = self.sign_ins.wrong(tries, now)
            self._refuse(Act(now, "anonymous", "sign_in", f"user:{name}", source, "locked") if is_new else None)
        self.sign_ins.right(tries)
        known = device if tries.device is not None else credentials.new_device(kept, self.random)
        return replace(self.begin(user, source), device=known)

    def begin(self, user: User, source: str) -> SignedIn:
        """Begin a session of somebody whom another part has made sure of."""
        now, text = self.clock(), credentials.new_text(self.random)
        session = Session(credentials.digest(text), user.name, user.epoch, now, now + self.session_life)
        self.state.add_session(session, Act(now, f"user:{user.name}", "sign_in", f"user:{user.name}", source, "ok"))
        return SignedIn(_person(user), text, session.expires_at)

    def sign_out(self, text: str, principal: Principal, source: str) -> None:
        """End a session."""
        act = Act(self.clock(), who(principal), "sign_out", who(principal), source, "ok")
        self.state.end_session(credentials.digest(text), act)

    def _refuse(self, locked: Act | None) -> NoReturn:
        """Refuse; the log gets a line when somebody is locked out, not one for each try, so that nobody floods it."""
        if locked is not None:
            self.state.append(locked)
        raise Unauthenticated


def _let_try(wait: int) -> None:
    if wait:
        raise TooManyAttempts(retry_after=-(-wait // 1_000))


def _over(token: Token, now: int) -> Unauthenticated:
    """Say why a token that we know opens nothing; whoever shows it did not guess it."""
    if token.is_bootstrap:
        return Unauthenticated("A bootstrap token only makes the first administrator.")
    if token.revoked_at is not None:
        why = "was revoked"
    elif not token.is_valid(now):
        why = "has expired"
    else:
        why = "belongs to a user who is disabled or gone"
    grants = " --grant ".join(written(token.grants))
    remedy = f"Make another one: calve token create {token.name} --grant {grants}"
    return Unauthenticated(f"The token {token.name} {why}.", remedy=remedy)


def who(principal: Principal) -> str:
    """Return how somebody is named in the audit log."""
    return f"{principal.kind}:{principal.name.removeprefix('token:')}"


def _person(user: User) -> Principal:
    return Principal(user.name, PrincipalKind.USER, user.grants)
