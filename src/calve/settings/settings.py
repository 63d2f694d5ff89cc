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
    """The state database, for everything that calve stores outside the lake: ``sqlite:///…`` or
    ``postgresql+psycopg://…``. Default: ``sqlite:///<home>/state.db``."""


class RetentionSettings(Section):
    """How long records are kept; ``never``, or 0, is for ever."""

    alerts: Age = timedelta(days=30)
    """How long messages of alerts are kept after they were sent or have finally failed."""
    audit: Age = timedelta(days=400)
    """How long lines of the audit log are kept."""
    credentials: Age = timedelta(days=30)
    """How long tokens and sessions are kept after they expired or were revoked."""
    events: Age = timedelta(days=400)
    """How long events of instances that ended are kept."""
    instances: Age = timedelta(days=90)
    """How long instances are kept after their end, with their runs, attempts, events and logs; ``never`` or ``0`` keeps
    them for ever."""
    lag: Age = timedelta(days=90)
    """How long samples of consumers' lag are kept, taken every five minutes."""
    logs: Age = timedelta(days=90)
    """How long the logs of steps are kept after their end."""
    signals: Age = timedelta(days=90)
    """How long signals are kept that started a workflow or released a step."""
    unused_signals: Age = timedelta(days=400)
    """How long signals are kept that have not started or released anything yet."""


class Settings(Section):
    """All settings."""

    project: Path = Field(exclude=True)
    """The folder that holds ``calve.toml``."""
    home: Path
    """The folder for state, and for the embedded lake. Default: ``.calve``."""
    store: StoreSettings
    catalogs: Annotated[dict[str, CatalogSettings], Field(min_length=1)]
    """The Iceberg catalogs. Default: one catalog ``lake``."""
    default_catalog: str
    """The catalog of names without one, also Spark's default. Default: ``lake``, else the first one."""
    default_namespace: Annotated[str, Field(min_length=1)] = "default"
    """The namespace of names without one, also Spark's. calve does not create it."""
    spark: SparkSettings
    lake: LakeSettings = LakeSettings()
    capture: CaptureSettings = CaptureSettings()
    connections: dict[str, str] = Field(default_factory=dict)
    """The databases of ``SQL`` steps: SQLAlchemy addresses by name; a name with dots belongs to that namespace."""
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
    """The texts of ``SECRET`` params by name; set them by variables rather than in a file."""
    failpoints: str | None = None
    """For tests of calve itself: where to die or fail."""
    debug: bool = False
    """Whether every error is printed with its traceback."""

    @property
    def own_secrets(self) -> frozenset[str]:
        """The names of secrets that calve itself uses, for alerts and others: the values of ``…_secret`` settings."""
        return frozenset(_secrets_in(self))

    def public_url(self, served: str = "") -> str:
        """Return the address under which people reach the web UI, for links; empty if unknown.

        Args:
            served: the address at which this process serves the web UI, if it does; used unless the settings name
                host names for other machines.
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
