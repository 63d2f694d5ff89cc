"""Who is it: by token, by password, by session. Every mistake costs, and every answer is the same."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

from calve.access import credentials
from calve.access.credentials import RandomBytes
from calve.access.model import Principal, PrincipalKind, limited
from calve.access.ports import AccessState
from calve.access.records import Act, Session, Token, User
from calve.access.throttling import Backoff, network_of
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


@dataclass(frozen=True, slots=True)
class Door:
    """Lets people and programs in, by what they show."""

    state: AccessState
    clock: Clock
    random: RandomBytes
    session_life: int
    """How long a session lasts, in milliseconds."""
    backoff: Backoff = field(default_factory=Backoff)

    def by_token(self, text: str, source: str) -> Principal:
        """Return whom a token stands for.

        Raises:
            Unauthenticated: it is unknown, expired or revoked, or its owner is.
            TooManyAttempts: there were too many wrong ones from there.
        """
        now, digest = self.clock(), credentials.digest(text)
        keys = (f"ip {network_of(source)}", f"token {digest}")
        self._let_try(keys, now)
        token = self.state.token(digest) if text.startswith(credentials.PREFIX) else None
        principal = token and credentials.is_same(token.digest, digest) and self._of_token(token, now)
        if not token or not principal:
            self._refuse(keys, now, Act(now, "anonymous", "token", token.token_id if token else "", source, "wrong"))
        if now - (token.used_at or 0) >= TOUCH:
            self.state.touch_token(token.token_id, now)
        self.backoff.right(keys[1:])  # a source does not become trustworthy by one good token among bad ones
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

    def sign_in(self, name: str, password: str, source: str) -> SignedIn:
        """Begin a session of somebody who knows the password.

        Raises:
            Unauthenticated: there is no such user, or it is another password; which of them is not said.
            TooManyAttempts: there were too many wrong ones for that name or from there.
        """
        now, name = self.clock(), name[:200].replace("\0", "")  # which PostgreSQL cannot keep
        keys = (f"ip {network_of(source)}", f"user {name}")
        self._let_try(keys, now)
        user = self.state.user(name)
        is_right = credentials.matches(user.password_hash if user else None, password)
        if user is None or not is_right or user.is_disabled:
            self._refuse(keys, now, Act(now, "anonymous", "sign_in", f"user:{name}", source, "wrong"))
        self.backoff.right(keys)
        return self.begin(user, source)

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

    def _let_try(self, keys: tuple[str, ...], now: int) -> None:
        wait = self.backoff.wait(keys, now)
        if wait:
            raise TooManyAttempts(retry_after=-(-wait // 1_000))

    def _refuse(self, keys: tuple[str, ...], now: int, act: Act) -> NoReturn:
        """Count the mistake; the log gets a line when somebody is locked out, so that nobody can flood it."""
        if self.backoff.wrong(keys, now):
            self.state.append(Act(now, act.who, act.action, act.target, act.source, "locked"))
        raise Unauthenticated


def who(principal: Principal) -> str:
    """Return how somebody is named in the audit log."""
    return f"{principal.kind}:{principal.name.removeprefix('token:')}"


def _person(user: User) -> Principal:
    return Principal(user.name, PrincipalKind.USER, user.grants)
