from .logs import set_up as set_up
from .metrics import CONTENT_TYPE as CONTENT_TYPE, Metrics as Metrics
from .model import (
    Begun as Begun,
    Ended as Ended,
    Gauges as Gauges,
    Happened as Happened,
    TelemetryState as TelemetryState,
)
from .spans import Spans as Spans, otlp_processor as otlp_processor
