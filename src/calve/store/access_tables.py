"""The tables of access: users, tokens, sessions, the audit log, and secrets; times are milliseconds."""

from sqlalchemy import BigInteger, Boolean, Column, Index, Table, Text

from calve.store.tables import metadata

access_user = Table(
    "access_user",
    metadata,
    Column("name", Text, primary_key=True),
    Column("shown", Text, nullable=False),
    Column("password_hash", Text),
    Column("grants", Text, nullable=False),
    Column("is_disabled", Boolean, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

access_token = Table(
    "access_token",
    metadata,
    Column("token_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("grants", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("owner", Text),
    Column("expires_at", BigInteger),
    Column("revoked_at", BigInteger),
    Column("used_at", BigInteger),
    Column("is_bootstrap", Boolean, nullable=False),
)
Index("access_token_digest", access_token.c.digest, unique=True)

access_session = Table(
    "access_session",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
)
Index("access_session_user", access_session.c.user)

audit = Table(
    "audit",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("who", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("digest", Text, nullable=False),
)
"""Lines are added, and never changed: each one holds the digest of the one before."""

secret = Table(
    "secret",
    metadata,
    Column("name", Text, primary_key=True),
    Column("sealed", Text, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    Column("changed_by", Text, nullable=False),
)
"""Encrypted by a key that is not in the database."""
