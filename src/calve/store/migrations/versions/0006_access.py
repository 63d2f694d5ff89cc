"""Users, tokens, secrets and the audit log."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def _needed(name: str, kind: Any = sa.Text) -> "sa.Column[Any]":
    return sa.Column(name, kind, nullable=False)


def upgrade() -> None:
    """Make the tables."""
    _make_people()
    op.create_table(
        "audit",
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        _needed("at", sa.BigInteger),
        *(_needed(name) for name in ("who", "action", "target", "source", "result", "detail", "previous", "digest")),
    )
    op.create_table(
        "secret",
        sa.Column("name", sa.Text, primary_key=True),
        _needed("sealed"),
        _needed("changed_at", sa.BigInteger),
        _needed("changed_by"),
    )


def _make_people() -> None:
    op.create_table(
        "access_user",
        sa.Column("name", sa.Text, primary_key=True),
        _needed("shown"),
        sa.Column("password_hash", sa.Text),
        _needed("grants"),
        _needed("is_disabled", sa.Boolean),
        _needed("epoch", sa.BigInteger),
        _needed("created_at", sa.BigInteger),
    )
    op.create_table(
        "access_token",
        sa.Column("token_id", sa.Text, primary_key=True),
        _needed("name"),
        _needed("digest"),
        _needed("grants"),
        _needed("created_at", sa.BigInteger),
        sa.Column("owner", sa.Text),
        sa.Column("expires_at", sa.BigInteger),
        sa.Column("revoked_at", sa.BigInteger),
        sa.Column("used_at", sa.BigInteger),
        _needed("is_bootstrap", sa.Boolean),
    )
    op.create_index("access_token_digest", "access_token", ["digest"], unique=True)
    op.create_table(
        "access_session",
        sa.Column("digest", sa.Text, primary_key=True),
        _needed("user"),
        _needed("epoch", sa.BigInteger),
        _needed("created_at", sa.BigInteger),
        _needed("expires_at", sa.BigInteger),
    )
    op.create_index("access_session_user", "access_session", ["user"])
