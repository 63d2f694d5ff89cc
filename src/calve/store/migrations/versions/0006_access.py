"""Users, tokens, secrets and the audit log."""

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Make the tables."""
