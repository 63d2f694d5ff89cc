from .access import (
    AccessSettings as AccessSettings,
    OidcSettings as OidcSettings,
    SecretStoreSettings as SecretStoreSettings,
    TableSettings as TableSettings,
)
from .alerts import (
    AlertRule as AlertRule,
    AlertSettings as AlertSettings,
    EmailChannel as EmailChannel,
    SlackChannel as SlackChannel,
    WebhookChannel as WebhookChannel,
)
from .environment import exported as exported
from .execution import (
    DockerSettings as DockerSettings,
    HttpSettings as HttpSettings,
    KubernetesSettings as KubernetesSettings,
    StepLogSettings as StepLogSettings,
    TriggerSettings as TriggerSettings,
    WorkerSettings as WorkerSettings,
)
from .fields import parse_duration as parse_duration
from .keys import FILE as FILE
from .lake import (
    VARIABLE_SUBSTITUTION as VARIABLE_SUBSTITUTION,
    CaptureSettings as CaptureSettings,
    CatalogSettings as CatalogSettings,
    LakeSettings as LakeSettings,
    SparkSettings as SparkSettings,
)
from .observability import (
    LineageSettings as LineageSettings,
    LogSettings as LogSettings,
    TelemetrySettings as TelemetrySettings,
)
from .server import (
    THREADS as THREADS,
    ClientSettings as ClientSettings,
    GraphqlSettings as GraphqlSettings,
    ServerSettings as ServerSettings,
)
from .settings import RetentionSettings as RetentionSettings, Settings as Settings, StoreSettings as StoreSettings
from .sources import embedded as embedded, load as load
