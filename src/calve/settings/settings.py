"""The settings of a project."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from calve.settings.access import AccessSettings, SecretStoreSettings
from calve.settings.alerts import AlertSettings
from calve.settings.execution import (
    DockerSettings,
    HttpSettings,
    KubernetesSettings,
    StepLogSettings,
    TriggerSettings,
    WorkerSettings,
)
from calve.settings.fields import Age, Section
from calve.settings.lake import CaptureSettings, CatalogSettings, LakeSettings, SparkSettings
from calve.settings.observability import LineageSettings, LogSettings, TelemetrySettings
from calve.settings.server import ClientSettings, ServerSettings


class StoreSettings(Section):
    """The state database."""

    url: str
    """An SQLAlchemy address: ``sqlite:///…`` or ``postgresql+psycopg://…``."""


class RetentionSettings(Section):
    """How long records are kept; ``never``, or 0, is for ever."""

    alerts: Age = timedelta(days=30)
    """Messages that were sent or given up."""
    audit: Age = timedelta(days=400)
    """Lines of the audit log."""
    credentials: Age = timedelta(days=30)
    """Tokens and sessions that expired or were revoked."""
    events: Age = timedelta(days=400)
    """Events of instances that ended."""
    instances: Age = timedelta(days=90)
    """Instances that ended, with everything that belongs to them."""
    lag: Age = timedelta(days=90)
    """How far consumers were behind, every five minutes."""
    logs: Age = timedelta(days=90)
    """The logs of steps."""
    signals: Age = timedelta(days=90)
    """Signals that started or released something."""
    unused_signals: Age = timedelta(days=400)
    """Signals that have not, so far."""


class Settings(Section):
    """All settings."""

    project: Path = Field(exclude=True)
    """The folder that holds ``calve.toml``."""
    home: Path
    """The folder for state, and for the embedded lake."""
    store: StoreSettings
    catalogs: Annotated[dict[str, CatalogSettings], Field(min_length=1)]
    default_catalog: str
    default_namespace: Annotated[str, Field(min_length=1)] = "default"
    """The namespace of names without one, here and in Spark."""
    spark: SparkSettings
    lake: LakeSettings = LakeSettings()
    capture: CaptureSettings = CaptureSettings()
    connections: dict[str, str] = Field(default_factory=dict)
    """The databases of SQL steps: SQLAlchemy addresses by name; a name with dots belongs to that namespace."""
    http: HttpSettings = HttpSettings()
    docker: DockerSettings = DockerSettings()
    kubernetes: KubernetesSettings = KubernetesSettings()
    worker: WorkerSettings = WorkerSettings()
    server: ServerSettings = ServerSettings()
    client: ClientSettings = ClientSettings()
    triggers: TriggerSettings = TriggerSettings()
    retention: RetentionSettings = RetentionSettings()
    alerts: AlertSettings = AlertSettings()
    log: LogSettings = LogSettings()
    logs: StepLogSettings = StepLogSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    lineage: LineageSettings = LineageSettings()
    access: AccessSettings = AccessSettings()
    secret_store: SecretStoreSettings
    secrets: dict[str, str] = Field(default={}, exclude=True, repr=False)
    """The texts of SECRET params by name; set by the environment rather than by a file."""
    failpoints: str | None = None
    debug: bool = False

    @property
    def own_secrets(self) -> frozenset[str]:
        """The names of secrets that calve itself uses, for alerts and others: the values of ``…_secret`` settings."""
        return frozenset(_secrets_in(self))

    def public_url(self, served: str = "") -> str:
        """Return the address under which people reach the web UI, for links; empty if unknown.

        Args:
            served: where this process serves it, if it does: enough where nobody comes from elsewhere.
        """
        by_oidc = (self.access.oidc.redirect_url or "").rpartition("/api/")[0]
        return self.server.url or by_oidc or ("" if self.access.hosts else served)

    @model_validator(mode="after")
    def _default_catalog_exists(self) -> Self:
        if self.default_catalog not in self.catalogs:
            known = ", ".join(self.catalogs)
            raise ValueError(f"default_catalog names {self.default_catalog!r}, but the catalogs are: {known}")
        return self


def _secrets_in(setting: Any) -> Iterator[str]:
    match setting:
        case Section():
            for name, value in setting:
                if name.endswith("_secret") and value is not None:
                    yield value
                else:
                    yield from _secrets_in(value)
        case dict():
            for value in setting.values():
                yield from _secrets_in(value)
        case _:
            pass
