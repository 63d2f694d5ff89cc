"""A model of capture, job and commit: attempts that die, sleep, and wake too late, around a target others write to.

Any attempt may be killed at any point and another started; two or more live at once and none knows of the others; a
reply may be lost after the commit it belongs to; the source grows; somebody else writes to the target; snapshots of
the target expire; the next instance may start though the last one never committed.
"""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, assert_never

from tests.model.delivery_world import (
    BACKWARDS,
    FOREIGN_WRITES,
    SNAPSHOTS,
    SUPERSESSIONS,
    Attempt,
    Delivery,
    DeliveryProtocol,
    Held,
    Phase,
    Told,
    World,
    fault_of,
)

Step = tuple[str, World]
Opinion = Literal["deliver", "delivered", "refuse"]


class DeliveryModel:
    """Everything that may happen under one protocol, with some processes at a time."""

    def __init__(self, protocol: DeliveryProtocol, *, processes: int = 2, foreign_writes: int = FOREIGN_WRITES) -> None:
        self._protocol = protocol
        self._processes = processes
        self._foreign_writes = foreign_writes

    def start(self) -> World:
        """Return a source with one snapshot and a target with none."""
        supersessions = 0 if self._protocol.superseding == "never" else SUPERSESSIONS
        return World(foreign_writes=self._foreign_writes, supersessions=supersessions)

    def steps(self, world: World) -> Iterator[Step]:
        """Yield what the scheduler, the surroundings and each attempt may do next."""
        yield from self._scheduled(world)
        yield from self._surroundings(world)
        for place, attempt in enumerate(world.attempts):
            turn = Turn(world, attempt, world.attempts[:place] + world.attempts[place + 1 :])
            yield turn.end(f"kill -9 before {attempt.phase}")
            yield from self._acts(turn)

    def fault(self, world: World) -> str | None:
        """Return what must not be in a world."""
        return fault_of(self._protocol, world)

    def fault_between(self, before: World, after: World) -> str | None:
        """Return what must not happen to a world."""
        return BACKWARDS if after.checkpoint < before.checkpoint else None

    def is_done(self, world: World) -> bool:
        """Tell whether all data was delivered and committed."""
        return world.checkpoint == SNAPSHOTS

    def _scheduled(self, world: World) -> Iterator[Step]:
        if len(world.attempts) < self._processes and not self.is_done(world):
            older = world.attempts
            if self._protocol.checks_lease:
                older = tuple(attempt._replace(has_lease=False) for attempt in older)
            started = Attempt("capture", world.number)
            yield "start an attempt", world._replace(attempts=_sorted((*older, started)))
        if world.supersessions and not self.is_done(world):
            left = world.supersessions - 1
            yield "start the next instance", _superseded(world)._replace(supersessions=left)
        elif self._is_refused(world):  # not counted: whoever is refused must be able to go on
            yield "start the next instance after a refusal", _superseded(world)
        if self._protocol.superseding == "take over or mend" and _is_ahead(world) and not _is_told(world):
            mended = _superseded(world._replace(checkpoint=world.told.upto, opened=None))
            yield "abandon the open capture, and set the checkpoint by hand", mended

    def _is_refused(self, world: World) -> bool:
        """Tell whether the newest instance's capture can never be delivered, and another one could."""
        opened, told = world.opened, world.told
        if self._protocol.superseding != "adopt" or opened is None or opened.number != world.number:
            return False
        return told.number != opened.number and told.upto != opened.after

    def _surroundings(self, world: World) -> Iterator[Step]:
        if world.source < SNAPSHOTS:
            yield "append to the source", world._replace(source=world.source + 1)
        if world.foreign_writes:
            foreign = (*world.target, Delivery(0, 0, 0))
            yield "foreign write", world._replace(target=foreign, foreign_writes=world.foreign_writes - 1)
        if self._protocol.is_expiring and any(delivery.is_marked for delivery in world.target[:-1]):
            old = tuple(delivery._replace(is_marked=False) for delivery in world.target[:-1])
            yield "expire snapshots of the target", world._replace(target=old + world.target[-1:])

    def _acts(self, turn: "Turn") -> Iterator[Step]:
        match turn.attempt.phase:
            case "capture":
                yield self._capture(turn)
            case "register":
                yield self._register(turn)
            case "job":
                yield from self._job(turn)
            case "hold":
                yield self._hold(turn)
            case "publish":
                yield from self._publish(turn)
            case "insert":
                yield from self._land(turn)
            case "tell":
                yield turn.go("set the property", "commit", told=turn.delivers())
            case "commit":
                yield self._commit(turn)
            case "publish late":
                yield from self._publish_late(turn)
            case _:
                assert_never(turn.attempt.phase)

    def _capture(self, turn: "Turn") -> Step:
        world, told, opened = turn.world, turn.world.told, turn.world.opened
        if turn.attempt.number != world.number:
            return turn.end("superseded")
        if opened is not None and opened.number == world.number:
            return turn.take("take the capture on record", opened)
        if self._takes_over and opened is not None and opened.number == told.number:
            return turn.take("take over what was delivered but not committed", opened)
        if self._protocol.superseding == "adopt" and _is_ahead(world):
            return turn.stay("adopt what was delivered but not committed", checkpoint=told.upto)
        if world.source == world.checkpoint:
            return turn.end("nothing new")
        content = Told(world.number, world.checkpoint, world.source)
        shared = content if self._protocol.has_shared_name else world.shared
        then: Phase = "register" if self._protocol.is_pinned else "job"
        seen = opened.number if opened else 0
        return turn.go("write the captured table", then, world.checkpoint, world.source, seen=seen, shared=shared)

    @property
    def _takes_over(self) -> bool:
        return self._protocol.superseding in {"take over", "take over or mend"}

    def _register(self, turn: "Turn") -> Step:
        attempt, world = turn.attempt, turn.world
        opened = world.opened.number if world.opened else 0
        if world.opened is not None and opened == attempt.number:
            return turn.take("find another capture on record", world.opened)
        if opened != attempt.seen:
            return turn.end("another capture is open")
        if attempt.after != world.checkpoint:  # the checkpoint's version is compared where the capture is opened
            return turn.end("the checkpoint has moved")
        return turn.go("put the capture on record", "job", opened=turn.delivers())

    def _job(self, turn: "Turn") -> Iterator[Step]:
        if self._protocol.guard == "none" and self._protocol.effect == "append":
            yield from self._land(turn)
        elif self._is_marked(turn):
            yield turn.go("find the marker", "commit")
        elif self._protocol.guard == "property":
            then: Phase = "publish" if self._protocol.publishing == "in the job" else "hold"
            yield self._after_opinion(turn, "run the job on a branch", then)
            if self._protocol.publishing == "before the checkpoint" and turn.held() is not None:
                yield self._after_opinion(turn, "find the job done, its branch held", "publish")
        else:
            yield turn.go("run the job", "publish", base=len(turn.world.target))

    def _is_marked(self, turn: "Turn") -> bool:
        return self._protocol.guard in {"marker", "branch"} and turn.is_marked()

    def _after_opinion(self, turn: "Turn", label: str, then: Phase) -> Step:
        """Read the target once, its head and what it says was delivered, and do as that demands."""
        match self._opinion(turn):
            case "delivered":
                return turn.go("find it delivered", "commit")
            case "refuse":
                return turn.end("refused: another capture was delivered")
            case "deliver":
                head = len(turn.world.target)
                held = turn.held() if then == "publish" else None
                base = head if held is None else held.base
                return turn.go(label, then, base=base, read=base)

    def _opinion(self, turn: "Turn") -> Opinion:
        """Tell from the property what has become of a capture."""
        told, attempt = turn.world.told, turn.attempt
        if told.number == attempt.number:
            return "delivered"
        if told.number > attempt.number:
            return "refuse"
        is_next = told.upto == attempt.after or self._protocol.superseding == "by number"
        return "deliver" if is_next else "refuse"

    def _hold(self, turn: "Turn") -> Step:
        attempt, world = turn.attempt, turn.world
        others = tuple(held for held in world.held if held.number != attempt.number)
        held = tuple(sorted((*others, Held(attempt.number, attempt.base))))
        then: Phase = "publish" if self._protocol.publishing == "before the checkpoint" else "commit"
        return turn.go("hold the branch", then, base=attempt.base, read=attempt.read, held=held)

    def _publish(self, turn: "Turn") -> Iterator[Step]:
        attempt, world = turn.attempt, turn.world
        match self._protocol.guard:
            case "none":
                yield from self._land(turn)
            case "marker" if self._protocol.checks_lease:
                yield turn.go("find the lease held", "insert") if attempt.has_lease else turn.end("the lease is lost")
            case "marker":
                yield from self._land(turn)
            case "write id" if turn.is_marked():
                yield turn.go("refused: this id was published", "commit")
            case "write id":
                yield from self._land(turn)
            case _ if attempt.base == len(world.target):
                yield from self._land(turn)
            case "branch" | "unchecked branch":
                yield turn.go("main has moved", "job")
            case "property":
                yield self._main_moved(turn)
            case _:
                assert_never(self._protocol.guard)

    def _main_moved(self, turn: "Turn") -> Step:
        head = len(turn.world.target)
        match self._protocol.when_moved:
            case "run again":
                return turn.go("main has moved: run again", "job")
            case "append again unasked":
                return turn.go("main has moved: append again", "publish", base=head, read=turn.attempt.read)
            case "append again":
                opinion = self._opinion(turn)
                if opinion == "deliver":
                    return turn.go("main has moved: append again", "publish", base=head, read=turn.attempt.read)
                if opinion == "delivered":
                    return turn.go("main has moved: find it delivered", "commit")
                return turn.end("main has moved: refused")
            case _:
                assert_never(self._protocol.when_moved)

    def _land(self, turn: "Turn") -> Iterator[Step]:
        """Commit to the target; the reply may get lost, and then the attempt looks again."""
        changes = self._landed(turn)
        if self._protocol.tells_apart:
            del changes["told"]
        yield turn.go("publish", "tell" if self._protocol.tells_apart else "commit", **changes)
        if self._protocol.guard != "none" or self._protocol.effect != "append":
            yield turn.go("publish, and the reply is lost", "job", **changes)

    def _landed(self, turn: "Turn") -> dict[str, Any]:
        attempt, world = turn.attempt, turn.world
        # A plain statement that commits by itself is checked by Iceberg against what it has read.
        is_seen = self._protocol.guard != "property" or attempt.read == len(world.target)
        delivery = Delivery(attempt.number, attempt.after, attempt.upto, is_on_what_was_read=is_seen)
        changes: dict[str, Any] = {"target": (*world.target, delivery)}
        if self._protocol.guard == "property":
            changes["told"] = turn.delivers()
            changes["held"] = tuple(held for held in world.held if held.number != attempt.number)
        return changes

    def _commit(self, turn: "Turn") -> Step:
        attempt, world = turn.attempt, turn.world
        is_open = attempt.number == (world.opened.number if world.opened else world.number)
        is_first = is_open and attempt.after == world.checkpoint
        if not is_first and not self._protocol.commits_blindly:
            return turn.end("commit: the checkpoint is elsewhere")
        moved: dict[str, Any] = {
            "checkpoint": attempt.upto,
            "number": max(world.number, attempt.number) + 1,
            "opened": None,
        }
        if self._protocol.publishing == "after the checkpoint":
            return turn.go("commit", "publish late", base=attempt.base, read=attempt.read, **moved)
        return turn.end("commit", **moved)

    def _publish_late(self, turn: "Turn") -> Iterator[Step]:
        if turn.attempt.base == len(turn.world.target):
            yield turn.end("publish", **self._landed(turn))
        else:
            yield turn.end("main has moved")


class Turn(NamedTuple):
    """An attempt that is about to act, and the world that it acts on."""

    world: World
    attempt: Attempt
    others: tuple[Attempt, ...]

    def go(
        self,
        label: str,
        phase: Phase,
        after: int | None = None,
        upto: int | None = None,
        *,
        base: int = 0,
        read: int = 0,
        seen: int = 0,
        **changes: Any,
    ) -> Step:
        """Return the world in which the attempt goes on with another phase."""
        attempt = self.attempt._replace(
            phase=phase,
            after=self.attempt.after if after is None else after,
            upto=self.attempt.upto if upto is None else upto,
            base=base,
            read=read,
            seen=seen,
        )
        return label, self.world._replace(attempts=_sorted((*self.others, attempt)), **changes)

    def take(self, label: str, capture: Told) -> Step:
        """Return the world in which the attempt works on a capture that is on record."""
        attempt = Attempt("job", *capture, has_lease=self.attempt.has_lease)
        return label, self.world._replace(attempts=_sorted((*self.others, attempt)))

    def delivers(self) -> Told:
        """Return what the attempt delivers."""
        return Told(self.attempt.number, self.attempt.after, self.attempt.upto)

    def stay(self, label: str, **changes: Any) -> Step:
        """Return the world in which the attempt does the same again."""
        return label, self.world._replace(**changes)

    def end(self, label: str, **changes: Any) -> Step:
        """Return the world in which the attempt is gone."""
        return label, _tidied(self.world._replace(attempts=self.others, **changes))

    def is_marked(self) -> bool:
        """Tell whether a snapshot of the target says that this capture is in it."""
        return any(each.number == self.attempt.number and each.is_marked for each in self.world.target)

    def held(self) -> Held | None:
        """Return the branch on record for this capture."""
        return next((held for held in self.world.held if held.number == self.attempt.number), None)


def _superseded(world: World) -> World:
    """Return the world in which a new instance is the newest one."""
    return _tidied(world._replace(number=world.number + 1))


def _is_ahead(world: World) -> bool:
    """Tell whether the target holds a capture that begins at the checkpoint."""
    return world.told.after == world.checkpoint < world.told.upto


def _is_told(world: World) -> bool:
    """Tell whether the open capture is the one that was delivered last."""
    return world.opened is not None and world.opened.number == world.told.number


def _tidied(world: World) -> World:
    """Return a world without the branches that nobody is left to publish."""
    if not world.held:
        return world
    numbers = {
        world.number,
        world.opened.number if world.opened else 0,
        *(attempt.number for attempt in world.attempts),
    }
    return world._replace(held=tuple(held for held in world.held if held.number in numbers))


def _sorted(attempts: tuple[Attempt, ...]) -> tuple[Attempt, ...]:
    return tuple(sorted(attempts))
