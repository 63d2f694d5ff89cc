"""Job templates that were pushed."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "job_template",
        sa.Column("job_type", sa.Text, primary_key=True),
        sa.Column("version", sa.Text, primary_key=True),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("modified_at", sa.BigInteger, nullable=False),
    )
