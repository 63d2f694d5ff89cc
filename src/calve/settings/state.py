"""The state database."""

from calve.settings.fields import Section


class StoreSettings(Section):
    """The database that holds checkpoints."""

    url: str
    """An SQLAlchemy address: ``sqlite:///…`` or ``postgresql+psycopg://…``."""
