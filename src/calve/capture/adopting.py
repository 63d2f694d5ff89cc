"""Where checkpoints go that lie behind what was delivered: never back, and only where all is known. Pure."""

from calve.capture.history import steps_between
from calve.capture.model import Adoption, DeliveredUpTo, Move, StoredCheckpoint
from calve.capture.source import Source
from calve.errors import CaptureError


def adoption_of(source: Source, stored: StoredCheckpoint | None, delivered: DeliveredUpTo) -> Adoption | None:
    """Return how a checkpoint gets to where the target is; None where the way there is not known to lead forward."""
    end = delivered.ends[str(source.name)]
    if end is not None and end not in source.snapshots:
        return None
    try:
        steps_between(source, stored.checkpoint if stored else source.checkpoint(None), end)
    except CaptureError:
        return None
    move = Move(source.name, stored.version if stored else 0, source.checkpoint_as_of(end))
    return Adoption(move, delivered.versions[str(source.name)])
