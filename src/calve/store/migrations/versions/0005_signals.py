"""Signals, and what waits for them."""

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the tables."""
