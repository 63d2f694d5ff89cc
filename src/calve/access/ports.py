"""What access needs from the database; ``calve.store`` implements it."""

from collections.abc import Iterator
from typing import Protocol

from calve.access.records import Act, AuditEntry, SealedSecret, Session, Token, User


class AccessState(Protocol):
    """Users, tokens, sessions, and the audit log. Each change writes its line of the log in the same transaction."""

    def users(self) -> list[User]:
        """Return all users by name."""
        ...

    def user(self, name: str) -> User | None:
        """Return a user."""
        ...

    def add_user(self, user: User, act: Act) -> bool:
        """Store a new user; False if the name is taken."""
        ...

    def change_user(self, user: User, act: Act) -> bool:
        """Replace a user; if the epoch changed, remove their sessions. Return False if the user does not exist."""
        ...

    def tokens(self) -> list[Token]:
        """Return all tokens, the newest last."""
        ...

    def has_namespaces(self) -> bool:
        """Tell whether a role was ever limited to a namespace, disabled users and old tokens included."""
        ...

    def token(self, digest: str) -> Token | None:
        """Return the token with that digest."""
        ...

    def add_token(self, token: Token, act: Act) -> None:
        """Store a new token."""
        ...

    def revoke_token(self, token_id: str, at: int, act: Act) -> bool:
        """Revoke a token; False if there is no valid one of that id."""
        ...

    def touch_token(self, token_id: str, at: int) -> None:
        """Record that a token was used."""
        ...

    def bootstrap(self, token_id: str, user: User, at: int, act: Act) -> bool:
        """Use up a bootstrap token and store its user, both or neither; False if it was used, or the name is taken."""
        ...

    def session(self, digest: str) -> tuple[Session, User] | None:
        """Return a session and its user."""
        ...

    def add_session(self, session: Session, act: Act) -> None:
        """Store a session; expired ones are removed."""
        ...

    def end_session(self, digest: str, act: Act) -> None:
        """Remove a session."""
        ...

    def append(self, act: Act) -> AuditEntry:
        """Append a line to the audit log."""
        ...

    def entries(self, after: int = 0, limit: int | None = None) -> Iterator[AuditEntry]:
        """Yield lines of the audit log after a number, in order."""
        ...

    def newest(self, limit: int, before: int | None = None) -> list[AuditEntry]:
        """Return the last lines of the audit log, or the last ones before a number, the newest first."""
        ...


class SecretState(Protocol):
    """The encrypted table of secrets."""

    def put_secret(self, secret: SealedSecret, act: Act) -> None:
        """Store a secret, replacing an older one of its name."""
        ...

    def secret(self, name: str) -> SealedSecret | None:
        """Return a secret."""
        ...

    def secrets(self) -> list[SealedSecret]:
        """Return all secrets by name."""
        ...

    def delete_secret(self, name: str, act: Act) -> bool:
        """Delete a secret; False if it does not exist."""
        ...
