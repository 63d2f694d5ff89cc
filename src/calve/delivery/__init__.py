"""Exactly-once delivery: what a job writes reaches its target tables once, whatever dies on the way.

The job writes to a branch of its own. Publishing is one commit of the target's catalog, which moves ``main`` to the
branch and says in a property what has been delivered; whether it may is decided inside that commit.
"""

from calve.delivery.deliveries import Deliveries
from calve.delivery.model import BranchStatus, Delivery, Published, StagedTarget, Staging, StoredBranch
from calve.delivery.ports import DeliveryState

__all__ = [
    "BranchStatus",
    "Deliveries",
    "Delivery",
    "DeliveryState",
    "Published",
    "StagedTarget",
    "Staging",
    "StoredBranch",
]
