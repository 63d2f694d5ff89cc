"""Users, tokens, sessions, secrets and the audit log, in SQL.

Each change of access adds a line to the audit log, in the same transaction.
"""

from collections.abc import Iterator

from sqlalchemy import Connection, Update, and_, delete, func, insert, select, union, update

from calve.access import Act, AuditEntry, SealedSecret, Session, Token, User, chained
from calve.namespaces import ROOT
from calve.store.codec import Codec, loaded
from calve.store.database import Database, fits
from calve.store.tables import access_session, access_token, access_user, audit, secret

AUDIT_LOCK = 0x6175646974
"""The advisory lock of PostgreSQL held while the log grows: "audit" in ASCII."""
_PAGE = 1_000

USER = Codec(User, access_user)
TOKEN = Codec(Token, access_token)
SESSION = Codec(Session, access_session)
SECRET = Codec(SealedSecret, secret)
ENTRY = Codec(AuditEntry, audit)


def append(connection: Connection, act: Act) -> AuditEntry:
    """Append a line; no other transaction can append one until this one ends."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(AUDIT_LOCK)))
    # Read after the lock: the chain must continue from the newest line, which another transaction may just have added.
    last = connection.execute(select(audit).order_by(audit.c.seq.desc()).limit(1)).one_or_none()
    entry = chained(None if last is None else ENTRY.from_row(last), act)
    connection.execute(insert(audit).values(ENTRY.to_row(entry)))
    return entry


class SqlAudit:
    """Reads the audit log, and appends to it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, act: Act) -> AuditEntry:
        """Write a line of the audit log."""
        with self._database.write("append_audit") as connection:
            return append(connection, act)

    def entries(self, after: int = 0, limit: int | None = None) -> Iterator[AuditEntry]:
        """Yield the lines of the audit log after the one with a number, in order."""
        while limit is None or limit > 0:
            most = _PAGE if limit is None else min(limit, _PAGE)
            query = select(audit).where(audit.c.seq > after).order_by(audit.c.seq).limit(most)
            with self._database.read() as connection:
                page = connection.execute(query).all()
            if not page:
                return
            yield from map(ENTRY.from_row, page)
            after = page[-1].seq
            limit = None if limit is None else limit - len(page)

    def newest(self, limit: int, before: int | None = None) -> list[AuditEntry]:
        """Return the newest lines of the audit log, or the newest before a number, newest first."""
        query = select(audit).order_by(audit.c.seq.desc()).limit(limit)
        if before is not None:
            query = query.where(audit.c.seq < before)
        with self._database.read() as connection:
            return [ENTRY.from_row(row) for row in connection.execute(query)]


class SqlAccessState(SqlAudit):
    """Stores users, tokens, sessions and secrets (the ports ``AccessState`` and ``SecretState``)."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._database = database

    def users(self) -> list[User]:
        """Return all users by name."""
        with self._database.read() as connection:
            return [USER.from_row(row) for row in connection.execute(select(access_user).order_by(access_user.c.name))]

    def user(self, name: str) -> User | None:
        """Return a user."""
        with self._database.read() as connection:
            row = connection.execute(select(access_user).where(access_user.c.name == name)).one_or_none()
        return None if row is None else USER.from_row(row)

    def add_user(self, user: User, act: Act) -> bool:
        """Store a new user; return False if the name is taken."""
        with self._database.write("add_user") as connection:
            if not fits(connection, insert(access_user).values(USER.to_row(user))):
                return False
            append(connection, act)
        return True

    def change_user(self, user: User, act: Act) -> bool:
        """Replace a user, and remove their sessions if the epoch is new; return False if the user does not exist."""
        with self._database.write("change_user") as connection:
            changed = update(access_user).where(access_user.c.name == user.name).values(USER.to_row(user))
            if not _hits(connection, changed):
                return False
            is_over = and_(access_session.c.user == user.name, access_session.c.epoch != user.epoch)
            connection.execute(delete(access_session).where(is_over))
            append(connection, act)
        return True

    def tokens(self) -> list[Token]:
        """Return all tokens, newest last."""
        order = (access_token.c.created_at, access_token.c.token_id)
        with self._database.read() as connection:
            return [TOKEN.from_row(row) for row in connection.execute(select(access_token).order_by(*order))]

    def has_namespaces(self) -> bool:
        """Tell whether any grant is limited to a namespace, including those of disabled users and old tokens."""
        held = union(select(access_user.c.grants), select(access_token.c.grants))
        with self._database.read() as connection:
            return any(loaded(grants).keys() - {ROOT} for grants in connection.scalars(held))

    def token(self, digest: str) -> Token | None:
        """Return the token with a digest."""
        with self._database.read() as connection:
            row = connection.execute(select(access_token).where(access_token.c.digest == digest)).one_or_none()
        return None if row is None else TOKEN.from_row(row)

    def add_token(self, token: Token, act: Act) -> None:
        """Store a new token."""
        with self._database.write("add_token") as connection:
            connection.execute(insert(access_token).values(TOKEN.to_row(token)))
            append(connection, act)

    def revoke_token(self, token_id: str, at: int, act: Act) -> bool:
        """Revoke a token; return False if there is no such token, or it was revoked before."""
        with self._database.write("revoke_token") as connection:
            if not _hits(connection, _revoked(token_id, at)):
                return False
            append(connection, act)
        return True

    def touch_token(self, token_id: str, at: int) -> None:
        """Record that a token was used."""
        used = update(access_token).where(access_token.c.token_id == token_id).values(used_at=at)
        with self._database.write("touch_token") as connection:
            connection.execute(used)

    def bootstrap(self, token_id: str, user: User, at: int, act: Act) -> bool:
        """Use up a bootstrap token and create its user, both or neither; False if it was used, or the name is taken."""
        with self._database.write("bootstrap") as connection:
            if not fits(connection, insert(access_user).values(USER.to_row(user))):
                return False
            if not _hits(connection, _revoked(token_id, at)):
                connection.execute(delete(access_user).where(access_user.c.name == user.name))
                return False
            append(connection, act)
        return True

    def session(self, digest: str) -> tuple[Session, User] | None:
        """Return a session and its user."""
        is_theirs = access_user.c.name == access_session.c.user
        query = select(*SESSION.columns, *USER.columns).join(access_user, is_theirs)
        with self._database.read() as connection:
            row = connection.execute(query.where(access_session.c.digest == digest)).one_or_none()
        if row is None:
            return None
        size = len(SESSION.columns)
        return SESSION.from_values(row[:size]), USER.from_values(row[size:])

    def add_session(self, session: Session, act: Act) -> None:
        """Store a session, and remove expired ones."""
        with self._database.write("add_session") as connection:
            connection.execute(delete(access_session).where(access_session.c.expires_at <= session.created_at))
            connection.execute(insert(access_session).values(SESSION.to_row(session)))
            append(connection, act)

    def end_session(self, digest: str, act: Act) -> None:
        """Remove a session."""
        with self._database.write("end_session") as connection:
            connection.execute(delete(access_session).where(access_session.c.digest == digest))
            append(connection, act)

    def put_secret(self, secret_: SealedSecret, act: Act) -> None:
        """Store a secret, replacing an older one with its name."""
        with self._database.write("put_secret") as connection:
            connection.execute(delete(secret).where(secret.c.name == secret_.name))
            connection.execute(insert(secret).values(SECRET.to_row(secret_)))
            append(connection, act)

    def secret(self, name: str) -> SealedSecret | None:
        """Return a secret."""
        with self._database.read() as connection:
            row = connection.execute(select(secret).where(secret.c.name == name)).one_or_none()
        return None if row is None else SECRET.from_row(row)

    def secrets(self) -> list[SealedSecret]:
        """Return all secrets by name."""
        with self._database.read() as connection:
            return [SECRET.from_row(row) for row in connection.execute(select(secret).order_by(secret.c.name))]

    def delete_secret(self, name: str, act: Act) -> bool:
        """Remove a secret; return False if it does not exist."""
        with self._database.write("delete_secret") as connection:
            if connection.execute(delete(secret).where(secret.c.name == name)).rowcount == 0:
                return False
            append(connection, act)
        return True


def _revoked(token_id: str, at: int) -> Update:
    is_valid = and_(access_token.c.token_id == token_id, access_token.c.revoked_at.is_(None))
    return update(access_token).where(is_valid).values(revoked_at=at)


def _hits(connection: Connection, statement: Update) -> bool:
    return connection.execute(statement).rowcount > 0
