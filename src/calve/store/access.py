"""Users, tokens, sessions and secrets, in SQL."""

import json
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Update, and_, delete, insert, select, union, update

from calve.access import ROOT, Act, Grants, Role, SealedSecret, Session, Token, User
from calve.store.access_tables import access_session, access_token, access_user, secret
from calve.store.auditing import SqlAudit, append
from calve.store.database import Database, fits


class SqlAccessState(SqlAudit):
    """Keeps who may get in (the ports are ``AccessState`` and ``SecretState`` in ``calve.access.ports``)."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._database = database

    def users(self) -> list[User]:
        """Return all users by name."""
        with self._database.read() as connection:
            return [_user(row) for row in connection.execute(select(access_user).order_by(access_user.c.name))]

    def user(self, name: str) -> User | None:
        """Return a user."""
        with self._database.read() as connection:
            row = connection.execute(select(access_user).where(access_user.c.name == name)).one_or_none()
        return None if row is None else _user(row)

    def add_user(self, user: User, act: Act) -> bool:
        """Keep a new user; False if there is one of that name."""
        with self._database.write("add_user") as connection:
            if not fits(connection, insert(access_user).values(_values(user))):
                return False
            append(connection, act)
        return True

    def change_user(self, user: User, act: Act) -> bool:
        """Replace a user; where his epoch is a new one, his sessions are removed. False if there is none."""
        with self._database.write("change_user") as connection:
            changed = update(access_user).where(access_user.c.name == user.name).values(_values(user))
            if not _hits(connection, changed):
                return False
            is_over = and_(access_session.c.user == user.name, access_session.c.epoch != user.epoch)
            connection.execute(delete(access_session).where(is_over))
            append(connection, act)
        return True

    def tokens(self) -> list[Token]:
        """Return all tokens, the newest last."""
        order = (access_token.c.created_at, access_token.c.token_id)
        with self._database.read() as connection:
            return [_token(row) for row in connection.execute(select(access_token).order_by(*order))]

    def has_namespaces(self) -> bool:
        """Tell whether anybody was ever given a role in a namespace only, disabled users and old tokens included."""
        held = union(select(access_user.c.grants), select(access_token.c.grants))
        with self._database.read() as connection:
            return any(_grants(row.grants).keys() - {ROOT} for row in connection.execute(held))

    def token(self, digest: str) -> Token | None:
        """Return the token with that digest."""
        with self._database.read() as connection:
            row = connection.execute(select(access_token).where(access_token.c.digest == digest)).one_or_none()
        return None if row is None else _token(row)

    def add_token(self, token: Token, act: Act) -> None:
        """Keep a new token."""
        with self._database.write("add_token") as connection:
            connection.execute(insert(access_token).values(_values(token)))
            append(connection, act)

    def revoke_token(self, token_id: str, at: int, act: Act) -> bool:
        """Let a token open nothing any more; False if there is none that does."""
        with self._database.write("revoke_token") as connection:
            if not _hits(connection, _revoked(token_id, at)):
                return False
            append(connection, act)
        return True

    def touch_token(self, token_id: str, at: int) -> None:
        """Note that a token was used."""
        used = update(access_token).where(access_token.c.token_id == token_id).values(used_at=at)
        with self._database.write("touch_token") as connection:
            connection.execute(used)

    def bootstrap(self, token_id: str, user: User, at: int, act: Act) -> bool:
        """Use up a bootstrap token and keep its user, both or neither; False if it is used up, or the name taken."""
        with self._database.write("bootstrap") as connection:
            if not fits(connection, insert(access_user).values(_values(user))):
                return False
            if not _hits(connection, _revoked(token_id, at)):
                connection.execute(delete(access_user).where(access_user.c.name == user.name))
                return False
            append(connection, act)
        return True

    def session(self, digest: str) -> tuple[Session, User] | None:
        """Return a session and its user."""
        query = select(access_session, *_labelled_user()).join(access_user, access_user.c.name == access_session.c.user)
        with self._database.read() as connection:
            row = connection.execute(query.where(access_session.c.digest == digest)).one_or_none()
        if row is None:
            return None
        found = row._asdict()
        user = {name.removeprefix("of_"): found.pop(name) for name in tuple(found) if name.startswith("of_")}
        return Session(**found), User(**{**user, "grants": _grants(user["grants"])})

    def add_session(self, session: Session, act: Act) -> None:
        """Keep a session; those that have expired are removed."""
        with self._database.write("add_session") as connection:
            connection.execute(delete(access_session).where(access_session.c.expires_at <= session.created_at))
            connection.execute(insert(access_session).values(asdict(session)))
            append(connection, act)

    def end_session(self, digest: str, act: Act) -> None:
        """Remove a session."""
        with self._database.write("end_session") as connection:
            connection.execute(delete(access_session).where(access_session.c.digest == digest))
            append(connection, act)

    def put_secret(self, secret_: SealedSecret, act: Act) -> None:
        """Keep a secret, in place of an older one of its name."""
        with self._database.write("put_secret") as connection:
            connection.execute(delete(secret).where(secret.c.name == secret_.name))
            connection.execute(insert(secret).values(asdict(secret_)))
            append(connection, act)

    def secret(self, name: str) -> SealedSecret | None:
        """Return a secret."""
        with self._database.read() as connection:
            row = connection.execute(select(secret).where(secret.c.name == name)).one_or_none()
        return None if row is None else SealedSecret(**row._asdict())

    def secrets(self) -> list[SealedSecret]:
        """Return all secrets by name."""
        with self._database.read() as connection:
            return [SealedSecret(**row._asdict()) for row in connection.execute(select(secret).order_by(secret.c.name))]

    def delete_secret(self, name: str, act: Act) -> bool:
        """Remove a secret; False if there is none of that name."""
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


def _labelled_user() -> list[ColumnElement[Any]]:
    return [column.label(f"of_{column.name}") for column in access_user.c]


def _values(record: User | Token) -> dict[str, Any]:
    return asdict(replace(record, grants=dict(record.grants))) | {"grants": json.dumps(record.grants, sort_keys=True)}


def _grants(text: str) -> Grants:
    return {namespace: Role(role) for namespace, role in json.loads(text).items()}


def _user(row: Row[Any]) -> User:
    return User(**{**row._asdict(), "grants": _grants(row.grants)})


def _token(row: Row[Any]) -> Token:
    return Token(**{**row._asdict(), "grants": _grants(row.grants)})
