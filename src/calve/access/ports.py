"""What access needs from the database; ``calve.store`` implements it."""

from collections.abc import Iterator
from typing import Protocol

from calve.access.records import Act, Entry, SealedSecret, Session, Token, User


class AccessState(Protocol):
    """Users, tokens, sessions, and the audit log. What changes something writes its line of the log along with it."""

    def users(self) -> list[User]:
        """Return all users by name."""
        ...

    def user(self, name: str) -> User | None:
        """Return a user."""
        ...

    def add_user(self, user: User, act: Act) -> bool:
        """Keep a new user; False if there is one of that name."""
        ...

    def change_user(self, user: User, act: Act) -> bool:
        """Replace a user; where his epoch is a new one, his sessions are removed. False if there is none."""
        ...

    def tokens(self) -> list[Token]:
        """Return all tokens, the newest last."""
        ...

    def has_namespaces(self) -> bool:
        """Tell whether anybody was ever given a role in a namespace only, disabled users and old tokens included."""
        ...

    def token(self, digest: str) -> Token | None:
        """Return the token with that digest."""
        ...

    def add_token(self, token: Token, act: Act) -> None:
        """Keep a new token."""
        ...

    def revoke_token(self, token_id: str, at: int, act: Act) -> bool:
        """Let a token open nothing any more; False if there is none that does."""
        ...

    def touch_token(self, token_id: str, at: int) -> None:
        """Note that a token was used."""
        ...

    def bootstrap(self, token_id: str, user: User, at: int, act: Act) -> bool:
        """Use up a bootstrap token and keep its user, both or neither; False if it is used up, or the name taken."""
        ...

    def session(self, digest: str) -> tuple[Session, User] | None:
        """Return a session and its user."""
        ...

    def add_session(self, session: Session, act: Act) -> None:
        """Keep a session; those that have expired are removed."""
        ...

    def end_session(self, digest: str, act: Act) -> None:
        """Remove a session."""
        ...

    def append(self, act: Act) -> Entry:
        """Write a line of the audit log."""
        ...

    def entries(self, after: int = 0, limit: int | None = None) -> Iterator[Entry]:
        """Yield the lines of the audit log after one, in order."""
        ...

    def newest(self, limit: int) -> list[Entry]:
        """Return the last lines of the audit log, the newest first."""
        ...


class SecretState(Protocol):
    """The encrypted table of secrets."""

    def put_secret(self, secret: SealedSecret, act: Act) -> None:
        """Keep a secret, in place of an older one of its name."""
        ...

    def secret(self, name: str) -> SealedSecret | None:
        """Return a secret."""
        ...

    def secrets(self) -> list[SealedSecret]:
        """Return all secrets by name."""
        ...

    def delete_secret(self, name: str, act: Act) -> bool:
        """Remove a secret; False if there is none of that name."""
        ...
