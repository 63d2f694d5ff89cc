"""The state database, and how long it keeps what."""

from datetime import timedelta

from calve.settings.fields import Age, Section


class StoreSettings(Section):
    """The database that holds checkpoints."""

    url: str
    """An SQLAlchemy address: ``sqlite:///…`` or ``postgresql+psycopg://…``."""


class RetentionSettings(Section):
    """How long what nobody needs any more is kept; ``never``, or 0, is for ever."""

    alerts: Age = timedelta(days=30)
    """Messages that were sent, or given up."""
    audit: Age = timedelta(days=400)
    """Lines of the audit log."""
    credentials: Age = timedelta(days=30)
    """Tokens and sessions that have expired, or were revoked."""
    events: Age = timedelta(days=400)
    """What has happened to instances that are over."""
    instances: Age = timedelta(days=90)
    """Instances that are over, with all that belongs to them."""
    logs: Age = timedelta(days=90)
    """What steps have printed."""
    signals: Age = timedelta(days=90)
    """Signals that have started or released something."""
    unused_signals: Age = timedelta(days=400)
    """Signals that have not, so far."""
