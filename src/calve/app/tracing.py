"""Spans of what workers do, if the settings say where to send them."""

import atexit
from functools import cache
from typing import TYPE_CHECKING

from calve.settings import TelemetrySettings

if TYPE_CHECKING:
    from calve.engine import Listener, Turn
    from calve.telemetry.spans import Spans


def traced(settings: TelemetrySettings, listener: "Listener") -> "Listener":
    """Return a listener that makes spans of turns too, if the settings say where to send them."""
    if settings.otlp_url is None:
        return listener
    spans = _spans(settings.otlp_url, settings.service)

    def heard(turn: "Turn") -> None:
        spans.tell(turn)
        listener(turn)

    return heard


@cache
def _spans(url: str, service: str) -> "Spans":
    """Return what sends spans, one for each process; what is left is sent when the process ends."""
    from calve.telemetry.spans import Spans, otlp_processor

    spans = Spans(otlp_processor(url), service)
    atexit.register(spans.close)
    return spans
