"""Logs, traces and lineage."""

from pathlib import Path
from typing import Literal

from calve.settings.fields import Section


class LogSettings(Section):
    """The log of processes, on standard error."""

    format: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "warning"


class TelemetrySettings(Section):
    """Traces."""

    otlp_url: str | None = None
    """The address for spans, by OTLP over HTTP, such as ``http://localhost:4318/v1/traces``; none: no spans."""
    service: str = "calve"


class LineageSettings(Section):
    """OpenLineage events; off, if neither address nor file is set."""

    url: str | None = None
    """The address of a receiver, such as ``http://marquez:5000``."""
    endpoint: str = "api/v1/lineage"
    file: Path | None = None
    """A file that gets one event per line."""
    key_secret: str | None = None
    """The name of the secret that is sent as a bearer token."""
    namespace: str = "calve"
    """The namespace of jobs."""

    @property
    def is_wanted(self) -> bool:
        """Tell whether events are sent anywhere."""
        return self.url is not None or self.file is not None
