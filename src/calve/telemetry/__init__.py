"""Telemetry: metrics, traces and logs of calve itself.

Import metrics, spans and log formats, and the port ``TelemetryState``, which provides the figures.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
