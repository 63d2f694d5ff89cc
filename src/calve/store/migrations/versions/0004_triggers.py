"""Triggers, and the version of each workflow whose triggers are there."""

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the tables."""
