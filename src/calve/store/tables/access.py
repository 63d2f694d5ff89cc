"""The tables of access: users, tokens, sessions, the audit log, and secrets; times are milliseconds."""

from sqlalchemy import BigInteger, Boolean, Table

from calve.store.tables.columns import index, key, metadata, optional, required

access_user = Table(
    "access_user",
    metadata,
    key("name"),
    required("shown"),
    optional("password_hash"),
    required("grants"),
    required("is_disabled", Boolean),
    required("epoch", BigInteger),
    required("created_at", BigInteger),
)

access_token = Table(
    "access_token",
    metadata,
    key("token_id"),
    required("name"),
    required("digest"),
    required("grants"),
    required("created_at", BigInteger),
    optional("owner"),
    optional("expires_at", BigInteger),
    optional("revoked_at", BigInteger),
    optional("used_at", BigInteger),
    required("is_bootstrap", Boolean),
)
index("access_token_digest", access_token, "digest", unique=True)

access_session = Table(
    "access_session",
    metadata,
    key("digest"),
    required("user"),
    required("epoch", BigInteger),
    required("created_at", BigInteger),
    required("expires_at", BigInteger),
)
index("access_session_user", access_session, "user")

audit = Table(
    "audit",
    metadata,
    key("seq", BigInteger),
    required("at", BigInteger),
    required("who"),
    required("action"),
    required("target"),
    required("source"),
    required("result"),
    required("detail"),
    required("previous"),
    required("digest"),
)
"""Lines are appended, and never changed: each one contains the digest of the one before."""

secret = Table(
    "secret",
    metadata,
    key("name"),
    required("sealed"),
    required("changed_at", BigInteger),
    required("changed_by"),
)
"""Encrypted by a key that is not in the database."""
