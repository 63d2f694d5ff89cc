"""Logs, traces and lineage."""

from pathlib import Path
from typing import Literal

from calve.settings.fields import Section


class LogSettings(Section):
    """The log of processes, on standard error."""

    format: Literal["text", "json"] = "text"
    """How processes log to standard error: ``text`` or ``json``."""
    level: Literal["debug", "info", "warning", "error"] = "warning"
    """The lowest level that processes log: ``debug``, ``info``, ``warning`` or ``error``."""


class TelemetrySettings(Section):
    """Traces."""

    otlp_url: str | None = None
    """The address for spans, by OTLP over HTTP, such as ``http://localhost:4318/v1/traces``; without it, there are no
    spans."""
    service: str = "calve"
    """The name of the service in traces."""


class LineageSettings(Section):
    """OpenLineage events; off, if neither address nor file is set."""

    url: str | None = None
    """The address of a receiver of OpenLineage events, such as ``http://marquez:5000``."""
    endpoint: str = "api/v1/lineage"
    """The path at that address."""
    file: Path | None = None
    """A file that gets OpenLineage events, one per line."""
    key_secret: str | None = None
    """The name of the secret that the receiver requires as a bearer token."""
    namespace: str = "calve"
    """The namespace of jobs in OpenLineage."""

    @property
    def is_wanted(self) -> bool:
        """Tell whether events are sent anywhere."""
        return self.url is not None or self.file is not None
