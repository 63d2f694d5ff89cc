"""All the settings of a project."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from calve.settings.access import AccessSettings, SecretStoreSettings
from calve.settings.alerts import AlertSettings
from calve.settings.fields import Section
from calve.settings.lake import CaptureSettings, CatalogSettings, LakeSettings, SparkSettings
from calve.settings.observing import LineageSettings, LogSettings, TelemetrySettings
from calve.settings.running import (
    DockerSettings,
    HttpSettings,
    KubernetesSettings,
    StepLogSettings,
    TriggerSettings,
    WorkerSettings,
)
from calve.settings.server import ClientSettings, ServerSettings
from calve.settings.state import RetentionSettings, StoreSettings


class Settings(Section):
    """Everything that can be set."""

    project: Path = Field(exclude=True)
    """The folder that holds ``calve.toml``."""
    home: Path
    """The folder for state; also that of the embedded lake."""
    store: StoreSettings
    catalogs: Annotated[dict[str, CatalogSettings], Field(min_length=1)]
    default_catalog: str
    default_namespace: Annotated[str, Field(min_length=1)] = "default"
    """The namespace of names that give none, here and in Spark."""
    spark: SparkSettings
    lake: LakeSettings = LakeSettings()
    capture: CaptureSettings = CaptureSettings()
    connections: dict[str, str] = Field(default_factory=dict)
    """The databases of SQL steps: SQLAlchemy addresses by name; one with dots is for the workflows of its namespace."""
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
    """The texts of SECRET params by name; given by the environment rather than by a file."""
    failpoints: str | None = None
    debug: bool = False

    @property
    def own_secrets(self) -> frozenset[str]:
        """The names of the secrets that calve itself needs, for alerts, say: what settings named ``…_secret`` hold."""
        return frozenset(_secrets_in(self))

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
