"""The schema of the first release: later revisions start here. 0001 to 0009 were never released."""

revision = "0010"
down_revision = None


def upgrade() -> None:
    """Do nothing: a new database is created from ``calve.store.tables``, at the newest revision."""
