from .deliveries import Deliveries as Deliveries
from .model import (
    BranchStatus as BranchStatus,
    Delivery as Delivery,
    DeliveryState as DeliveryState,
    Published as Published,
    StagedTarget as StagedTarget,
    Staging as Staging,
    StoredBranch as StoredBranch,
)
from .snapshots import append_snapshot as append_snapshot
