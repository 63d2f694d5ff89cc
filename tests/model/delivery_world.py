"""What the model of delivery is made of: protocols, the world that attempts share, and what must never be in it."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

SNAPSHOTS = 3
"""The source has one snapshot at first, and this many at the end; each is one piece of data."""

FOREIGN_WRITES = 1
"""How often someone else writes to the target."""

SUPERSESSIONS = 1
"""How often the next instance starts though the last one has not committed."""

Phase = Literal["capture", "register", "job", "hold", "publish", "insert", "tell", "commit", "publish late"]
Guard = Literal["none", "marker", "write id", "branch", "unchecked branch", "property"]
Effect = Literal["append", "upsert", "accumulate"]
WhenMoved = Literal["run again", "append again", "append again unasked"]
Superseding = Literal["never", "by number", "refuse", "take over", "take over or mend", "adopt"]
Publishing = Literal["in the job", "before the checkpoint", "after the checkpoint"]

DUPLICATE = "I1: a piece of data is in the target twice"
LOSS = "I2: the checkpoint has passed data that is not in the target"
BACKWARDS = "I3: the checkpoint moved backwards"
OTHER_CONTENT = "I4: the captured table holds another range than the one on record"
STALE = "I5: an older capture was applied after a newer one"
LOST_UPDATE = "I6: a result was published over a write that the job had not read"


@dataclass(frozen=True, slots=True)
class DeliveryProtocol:
    """One way to deliver captures to a target; the defaults are the better choice each."""

    guard: Guard
    """What keeps a second attempt from delivering again."""
    effect: Effect = "append"
    when_moved: WhenMoved = "append again"
    """What a holder of a branch does that finds that main has moved; only with ``property``."""
    tells_apart: bool = False
    """The property is set by a second commit, after the one that moves main."""
    is_pinned: bool = True
    """Every attempt of an instance uses the range that the first one put on record."""
    has_shared_name: bool = False
    """Every attempt writes the captured table under one name."""
    checks_lease: bool = False
    """An attempt looks whether it still holds its lease, just before it inserts."""
    commits_blindly: bool = False
    """The checkpoint is set, not compared and set."""
    is_expiring: bool = False
    """Old snapshots of the target, and the markers in them, expire."""
    superseding: Superseding = "never"
    """What is made of a delivery whose capture was given up before its commit."""
    publishing: Publishing = "in the job"


class Delivery(NamedTuple):
    """One commit on the main branch of the target: the range of data it brought; a foreign one has number 0."""

    number: int
    after: int
    upto: int
    is_marked: bool = True
    """Its snapshot is still there to tell whose it was."""
    is_on_what_was_read: bool = True


class Told(NamedTuple):
    """What the property of the target says was delivered last."""

    number: int = 0
    after: int = 0
    upto: int = 0


class Held(NamedTuple):
    """A branch that waits for its publication, on record by capture."""

    number: int
    base: int


class Attempt(NamedTuple):
    """A live process; it may be a zombie, and know nothing of it."""

    phase: Phase
    number: int
    """Of its instance and so of its capture."""
    after: int = 0
    upto: int = 0
    base: int = 0
    """The head of the target that its commit expects, as a length of the target's history."""
    read: int = 0
    """The head of the target that its job has read."""
    seen: int = 0
    """The open capture that it has looked at, and means to supersede."""
    has_lease: bool = True


class World(NamedTuple):
    """Everything that outlives a process, and the processes."""

    source: int = 1
    checkpoint: int = 0
    number: int = 1
    """Of the newest instance."""
    opened: Told | None = None
    """The capture on record as the open one; that of an earlier instance until the newest one has put its own there."""
    shared: Told = Told()
    """What the captured table holds, where all captures share one name."""
    target: tuple[Delivery, ...] = ()
    told: Told = Told()
    held: tuple[Held, ...] = ()
    foreign_writes: int = 0
    """How many are still to come."""
    supersessions: int = 0
    attempts: tuple[Attempt, ...] = ()
    """Sorted: who is who makes no difference."""


def fault_of(protocol: DeliveryProtocol, world: World) -> str | None:
    """Return what must not be in a world."""
    ours = [delivery for delivery in world.target if delivery.number]
    times = [sum(each.after < piece <= each.upto for each in ours) for piece in range(1, SNAPSHOTS + 1)]
    if protocol.effect != "upsert" and any(count > 1 for count in times):
        return DUPLICATE
    if protocol.effect != "append" and any(before.number > after.number for before, after in pairwise(ours)):
        return STALE
    if protocol.effect != "append" and not all(each.is_on_what_was_read for each in ours):
        return LOST_UPDATE
    if 0 in times[: world.checkpoint]:
        return LOSS
    if world.opened and world.shared.number == world.opened.number and world.shared != world.opened:
        return OTHER_CONTENT
    return None
