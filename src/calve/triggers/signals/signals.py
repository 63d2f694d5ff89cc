"""Signals as the rest of calve sees them: announce, look up, and trace."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calve.engine.ports import Clock
from calve.engine.signals import Announced, Announcement, Party, Signal, Values
from calve.engine.signals import UseKind as Kind
from calve.errors import SignalMissing
from calve.triggers.signals.ports import SignalState


@dataclass(frozen=True, slots=True)
class SignalLineage:
    """Where a signal came from, and what it did."""

    signal: Signal
    sent_by: Party | None
    """The step that sent it; nothing if somebody else announced it."""
    started: tuple[Party, ...]
    released: tuple[Party, ...]


@dataclass(frozen=True, slots=True)
class InstanceLineage:
    """The signals that an instance has to do with; steps are named where one was released, or sent one."""

    workflow_id: str
    instance_id: int
    started_by: tuple[tuple[Party, Signal], ...]
    released_by: tuple[tuple[Party, Signal], ...]
    sent: tuple[tuple[Party, Signal], ...]


@dataclass(frozen=True, slots=True)
class Signals:
    """Announces signals, and tells what came of them."""

    state: SignalState
    clock: Clock

    def announce(
        self,
        name: str,
        params: Values | None = None,
        *,
        payload: Mapping[str, Any] | None = None,
        request_id: str | None = None,
    ) -> Announced:
        """Announce a signal; a known request, or the same params where there is none, is no new signal.

        Raises:
            RequestInvalid: a name or a value can be none of a signal.
        """
        return self.state.announce(Announcement(name, params or {}, payload or {}, request_id, self.clock()))

    def latest(self, name: str) -> Signal:
        """Return the latest signal of a name.

        Raises:
            SignalMissing: there was none.
        """
        return self._found(name, None)

    def instance(self, name: str, seq: int) -> Signal:
        """Return a signal.

        Raises:
            SignalMissing: there is none.
        """
        return self._found(name, seq)

    def list(
        self, *, name: str | None = None, before: tuple[int, str, int] | None = None, limit: int = 100
    ) -> list[Signal]:
        """Return signals, newest first; ``before`` is (announced_at, name, seq) of the last one of the page before."""
        return self.state.signals(name=name, before=before, limit=limit)

    def lineage(self, name: str, seq: int | None = None) -> SignalLineage:
        """Return who sent a signal, and what it started or released.

        Raises:
            SignalMissing: there is none.
        """
        signal = self._found(name, seq)
        uses = self.state.signal_uses(signal.name, signal.seq)
        parties = {kind: tuple(use.party for use in uses if use.kind is kind) for kind in Kind}
        sender = next(iter(parties[Kind.SENT]), None)
        return SignalLineage(signal, sender, parties[Kind.STARTED], parties[Kind.RELEASED])

    def lineage_of(self, workflow_id: str, instance_id: int) -> InstanceLineage:
        """Return which signals started an instance, or released its steps, and which it sent; old ones are gone."""
        uses = self.state.instance_signals(workflow_id, instance_id)
        known = [(use, signal) for use in uses if (signal := self.state.signal(use.name, use.seq)) is not None]
        found = {kind: tuple((use.party, signal) for use, signal in known if use.kind is kind) for kind in Kind}
        return InstanceLineage(workflow_id, instance_id, found[Kind.STARTED], found[Kind.RELEASED], found[Kind.SENT])

    def _found(self, name: str, seq: int | None) -> Signal:
        found = self.state.signal(name, seq)
        if found is None:
            what = f"signal {name}" if seq is None else f"signal {name} of number {seq}"
            raise SignalMissing(f"There is no {what}.", signal=name)
        return found
