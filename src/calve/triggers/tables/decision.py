"""Whether uncommitted changes of tables start a workflow: now, later, or not at all. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from hashlib import sha256
from typing import Any

from calve.capture import Operation, Uncommitted


@dataclass(frozen=True, slots=True)
class ChangeRules:
    """When a change is large or old enough to start a workflow; times are milliseconds."""

    min_files: int = 0
    min_bytes: int = 0
    max_delay: int | None = None
    """Milliseconds after the first uncommitted change until the workflow starts in any case."""
    debounce: int = 0
    """Milliseconds without a new change before the workflow starts."""
    operations: frozenset[Operation] = frozenset(Operation)
    """The operations of snapshots that count."""


@dataclass(frozen=True, slots=True)
class UncommittedChange:
    """The relevant uncommitted snapshots of one table."""

    table: str
    table_uuid: str
    from_snapshot_id: int | None
    taken: int | None
    """How many files of ``from_snapshot_id`` are committed, if a limit ended the last capture within it."""
    to_snapshot_id: int | None
    """The newest snapshot that counts; a later compaction does not change it."""
    commits: int
    files: int
    bytes: int
    first_at: int
    last_at: int

    @property
    def base(self) -> str:
        """The identity of the start of the change."""
        return f"{self.table_uuid}:{self.from_snapshot_id}.{self.taken}"

    @property
    def identity(self) -> str:
        """The identity of the change: the same until the table or its consumer commits."""
        return f"{self.base}:{self.to_snapshot_id}"

    def as_json(self) -> dict[str, Any]:
        """Return what an instance stores about the change that started it."""
        return {
            "table": self.table,
            "table_uuid": self.table_uuid,
            "from_snapshot_id": self.from_snapshot_id,
            "to_snapshot_id": self.to_snapshot_id,
            "commits": self.commits,
            "files": self.files,
            "bytes": self.bytes,
            "committed_at": self.last_at,
        }


@dataclass(frozen=True, slots=True)
class Memory:
    """What a trigger remembers of changes from one evaluation to the next."""

    fired: str | None = None
    """The change for which it last fired: if that instance fails, the same change does not start another one."""
    change: str | None = None
    """The change that it is waiting with."""
    base: str | None = None
    """Where that change begins: what was committed before."""
    since: int | None = None
    """When a change after ``base`` was first seen."""
    noticed: int | None = None
    """When ``change`` was first seen as it is."""

    def as_json(self) -> dict[str, Any]:
        """Return the memory as plain JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> "Memory":
        """Read what ``as_json`` wrote; other keys are ignored."""
        return cls(**{each.name: raw.get(each.name) for each in fields(cls)})


class Reaction(StrEnum):
    """What to do about the changes of a trigger's tables."""

    NOTHING = "nothing"
    WAIT = "wait"
    WAIT_FOR_END = "wait for the end of an instance"
    FIRE = "fire"


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, when to evaluate again, and what to remember."""

    reaction: Reaction
    memory: Memory
    due_at: int | None = None
    """None until another change comes, or an instance ends."""


def counted(found: Uncommitted, rules: ChangeRules, *, is_first: bool, now: int) -> UncommittedChange | None:
    """Return the relevant uncommitted snapshots of a table; None if there are none.

    Args:
        found: the snapshots.
        rules: which operations count; a snapshot without one always does.
        is_first: without a checkpoint, the first capture sets one even if nothing changed.
        now: the time.
    """
    commits = [each for each in found.commits if each.operation is None or each.operation in rules.operations]
    start = found.start
    if not commits and not (is_first and start is None):
        return None
    return UncommittedChange(
        table=found.table,
        table_uuid=found.table_uuid,
        from_snapshot_id=start.snapshot_id if start else None,
        taken=start.pending.taken if start and start.pending else None,
        to_snapshot_id=commits[-1].snapshot_id if commits else None,
        commits=len(commits),
        files=sum(each.files for each in commits),
        bytes=sum(each.bytes for each in commits),
        first_at=min((each.committed_at for each in commits), default=now),
        last_at=max((each.committed_at for each in commits), default=now),
    )


def identity_of(changes: Iterable[UncommittedChange]) -> str:
    """Name what changed in all tables together."""
    return _digest(each.identity for each in changes)


def _digest(names: Iterable[str]) -> str:
    return sha256("|".join(sorted(set(names))).encode()).hexdigest()[:32]


def decide(
    changes: Sequence[UncommittedChange], memory: Memory, rules: ChangeRules, now: int, *, is_busy: bool
) -> Decision:
    """Decide about the changes of all tables of a trigger.

    Args:
        changes: the relevant uncommitted changes.
        memory: the memory from the last evaluation.
        rules: when a change is enough.
        now: the time.
        is_busy: whether an instance of the workflow is unfinished.
    """
    if not changes:
        return Decision(Reaction.NOTHING, Memory())  # all is committed: the same change would count again
    change = identity_of(changes)
    if change == memory.fired:
        return Decision(Reaction.NOTHING, Memory(fired=change))
    waiting = _waiting(changes, memory, change, now)
    if is_busy:
        return Decision(Reaction.WAIT_FOR_END, waiting)
    ready_at = _ready_at(changes, waiting, rules)
    if ready_at is None or ready_at > now:
        return Decision(Reaction.WAIT, waiting, ready_at)
    return Decision(Reaction.FIRE, Memory(fired=change))


def _waiting(changes: Sequence[UncommittedChange], memory: Memory, change: str, now: int) -> Memory:
    """Return what to remember of a waiting change; a writer's clock that is ahead must not delay it."""
    base = _digest(each.base for each in changes)
    since = memory.since if memory.base == base and memory.since is not None else now
    noticed = memory.noticed if memory.change == change and memory.noticed is not None else now
    first, last = min(each.first_at for each in changes), max(each.last_at for each in changes)
    return Memory(memory.fired, change, base, since=min(since, first), noticed=min(noticed, last))


def _ready_at(changes: Sequence[UncommittedChange], waiting: Memory, rules: ChangeRules) -> int | None:
    """Return when the changes suffice if no others follow; None if they never do."""
    files, size = sum(each.files for each in changes), sum(each.bytes for each in changes)
    quiet_at = (waiting.noticed or 0) + rules.debounce
    latest = None if rules.max_delay is None else (waiting.since or 0) + rules.max_delay
    if files < rules.min_files or size < rules.min_bytes:
        return latest
    return quiet_at if latest is None else min(quiet_at, latest)
