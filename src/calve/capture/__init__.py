"""What changed in Iceberg tables since somebody last looked, without reading or copying any data."""

from calve.capture.captures import CaptureOptions, Captures, Collected
from calve.capture.changes import Wanted
from calve.capture.lag import Lag
from calve.capture.listing import capture_json, checkpoint_json
from calve.capture.model import (
    Adoption,
    Artifacts,
    Checkpoint,
    DeliveredUpTo,
    Exactness,
    Mode,
    Move,
    OnGap,
    OnSchemaChange,
    Operation,
    Pending,
    PendingOf,
    Status,
    StoredCapture,
    StoredCheckpoint,
)
from calve.capture.ports import CaptureState, Clock, NewId
from calve.capture.report import CaptureReport, DeleteKeys, TableReport, nothing_changed
from calve.capture.rights import CaptureCaller, ConsumerRight, OfWorkflow, no_capture
from calve.capture.selection import Limits
from calve.capture.superseded import Superseded, find_superseded, superseded_by
from calve.capture.uncommitted import Commit, Uncommitted

__all__ = [
    "Adoption",
    "Artifacts",
    "CaptureCaller",
    "CaptureOptions",
    "CaptureReport",
    "CaptureState",
    "Captures",
    "Checkpoint",
    "Clock",
    "Collected",
    "Commit",
    "ConsumerRight",
    "DeleteKeys",
    "DeliveredUpTo",
    "Exactness",
    "Lag",
    "Limits",
    "Mode",
    "Move",
    "NewId",
    "OfWorkflow",
    "OnGap",
    "OnSchemaChange",
    "Operation",
    "Pending",
    "PendingOf",
    "Status",
    "StoredCapture",
    "StoredCheckpoint",
    "Superseded",
    "TableReport",
    "Uncommitted",
    "Wanted",
    "capture_json",
    "checkpoint_json",
    "find_superseded",
    "no_capture",
    "nothing_changed",
    "superseded_by",
]
