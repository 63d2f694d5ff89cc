"""Telemetry: metrics, traces and logs of calve itself.

Import what counts, traces and logs, and the port ``TelemetryState``, which says where the figures come from.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
