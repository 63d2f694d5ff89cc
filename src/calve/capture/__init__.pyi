from .appends import CaptureLimits as CaptureLimits
from .captures import CaptureOptions as CaptureOptions, Captures as Captures, Collected as Collected
from .changes import Wanted as Wanted
from .checkpoints import (
    Superseded as Superseded,
    Work as Work,
    find_superseded as find_superseded,
    superseded_by as superseded_by,
    work_of as work_of,
)
from .lag import Commit as Commit, Lag as Lag, Uncommitted as Uncommitted
from .manifests import (
    ADDED as ADDED,
    DATA_MANIFEST as DATA_MANIFEST,
    Manifest as Manifest,
    ManifestEntry as ManifestEntry,
    ManifestFile as ManifestFile,
    write_added_manifest as write_added_manifest,
    write_manifest_list as write_manifest_list,
)
from .model import (
    CHANGES as CHANGES,
    Adoption as Adoption,
    Artifacts as Artifacts,
    Checkpoint as Checkpoint,
    DeliveredUpTo as DeliveredUpTo,
    Exactness as Exactness,
    Mode as Mode,
    Move as Move,
    OnGap as OnGap,
    OnSchemaChange as OnSchemaChange,
    Operation as Operation,
    Pending as Pending,
    PendingOf as PendingOf,
    Status as Status,
    StoredCapture as StoredCapture,
    StoredCheckpoint as StoredCheckpoint,
)
from .ports import CaptureState as CaptureState, Clock as Clock, NewId as NewId
from .relations import filtered as filtered
from .report import (
    CaptureReport as CaptureReport,
    DeleteKeys as DeleteKeys,
    TableReport as TableReport,
    capture_json as capture_json,
    checkpoint_json as checkpoint_json,
    nothing_changed as nothing_changed,
)
from .rights import (
    CaptureCaller as CaptureCaller,
    ConsumerRight as ConsumerRight,
    OfWorkflow as OfWorkflow,
    no_capture as no_capture,
)
from .source import Source as Source
