"""What calve tells about itself: logs, traces and lineage."""

from pathlib import Path
from typing import Literal

from calve.settings.fields import Section


class LogSettings(Section):
    """What processes write to standard error."""

    format: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "warning"


class TelemetrySettings(Section):
    """Where traces go."""

    otlp_url: str | None = None
    """The address that takes spans by OTLP over HTTP, such as ``http://localhost:4318/v1/traces``; none: no spans."""
    service: str = "calve"


class LineageSettings(Section):
    """Where OpenLineage events go; nowhere, if neither address nor file is given."""

    url: str | None = None
    """The address of a receiver, such as ``http://marquez:5000``."""
    endpoint: str = "api/v1/lineage"
    file: Path | None = None
    """A file that gets one event a line."""
    key_secret: str | None = None
    """The name of the secret that the receiver wants as a bearer token."""
    namespace: str = "calve"
    """The namespace of jobs."""

    @property
    def is_wanted(self) -> bool:
        """Tell whether they go anywhere."""
        return self.url is not None or self.file is not None
