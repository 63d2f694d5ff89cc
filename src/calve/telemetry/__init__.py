"""What calve tells about itself: metrics, spans and logs."""

from calve.telemetry.metrics import CONTENT_TYPE, Metrics
from calve.telemetry.model import Begun, Ended, Happened, Standing
from calve.telemetry.ports import TelemetryState

__all__ = ["CONTENT_TYPE", "Begun", "Ended", "Happened", "Metrics", "Standing", "TelemetryState"]
