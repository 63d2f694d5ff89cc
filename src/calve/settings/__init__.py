"""Settings: ``calve.toml``, overridden by the environment, which nothing else reads."""

from calve.settings.access import AccessSettings, OidcSettings, SecretStoreSettings, TableSettings
from calve.settings.alerts import AlertRule, AlertSettings, EmailChannel, SlackChannel, WebhookChannel
from calve.settings.environment import exported
from calve.settings.fields import parse_duration
from calve.settings.lake import VARIABLE_SUBSTITUTION, CaptureSettings, CatalogSettings, LakeSettings, SparkSettings
from calve.settings.loading import embedded, load
from calve.settings.naming import FILE
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
from calve.settings.settings import Settings
from calve.settings.state import RetentionSettings, StoreSettings

__all__ = [
    "FILE",
    "VARIABLE_SUBSTITUTION",
    "AccessSettings",
    "AlertRule",
    "AlertSettings",
    "CaptureSettings",
    "CatalogSettings",
    "ClientSettings",
    "DockerSettings",
    "EmailChannel",
    "HttpSettings",
    "KubernetesSettings",
    "LakeSettings",
    "LineageSettings",
    "LogSettings",
    "OidcSettings",
    "RetentionSettings",
    "SecretStoreSettings",
    "ServerSettings",
    "Settings",
    "SlackChannel",
    "SparkSettings",
    "StepLogSettings",
    "StoreSettings",
    "TableSettings",
    "TelemetrySettings",
    "TriggerSettings",
    "WebhookChannel",
    "WorkerSettings",
    "embedded",
    "exported",
    "load",
    "parse_duration",
]
