"""The use cases of signals: announce, look up, and trace."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from calve.engine import Announced, Announcement, Clock, Party, Signal, SignalUse, UseKind as Kind, Values
from calve.errors import SignalMissing


class SignalState(Protocol):
    """Stores signals. Those that steps send, and what signals start, are written by ``Changes``."""

    def announce(self, announcement: Announcement) -> Announced:
        """Store a signal unless it is known, wake steps that wait, and make triggers due, in one transaction."""
        ...

    def signal(self, name: str, seq: int | None = None) -> Signal | None:
        """Return a signal, the latest of its name if no number is given."""
        ...

    def signals(
        self, *, name: str | None = None, before: tuple[int, str, int] | None = None, limit: int = 100
    ) -> list[Signal]:
        """Return signals, newest first; ``before`` is (announced_at, name, seq) of the previous page's last one."""
        ...

    def signals_after(self, name: str, seq: int, limit: int) -> list[Signal]:
        """Return the signals of a name in order, starting after a number."""
        ...

    def last_before(self, name: str, at: int) -> int:
        """Return the number of the newest signal of a name that was announced before a time; 0 if there is none."""
        ...

    def signal_uses(self, name: str, seq: int) -> list[SignalUse]:
        """Return the sender of a signal, and what it started or released."""
        ...

    def instance_signals(self, workflow_id: str, instance_id: int) -> list[SignalUse]:
        """Return the signals that started or released an instance, and those that it sent."""
        ...


@dataclass(frozen=True, slots=True)
class SignalLineage:
    """The sender of a signal, and its effects."""

    signal: Signal
    sent_by: Party | None
    """The step that sent it; None if a client announced it."""
    started: tuple[Party, ...]
    released: tuple[Party, ...]


@dataclass(frozen=True, slots=True)
class InstanceLineage:
    """The signals of an instance; steps are named if one was released, or sent one."""

    workflow_id: str
    instance_id: int
    started_by: tuple[tuple[Party, Signal], ...]
    released_by: tuple[tuple[Party, Signal], ...]
    sent: tuple[tuple[Party, Signal], ...]


@dataclass(frozen=True, slots=True)
class Signals:
    """Announces signals, and traces what they started or released."""

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
        """Announce a signal; a known request, or without one the same params, does not make a new signal.

        Raises:
            RequestInvalid: the name or a value is invalid for a signal.
        """
        return self.state.announce(Announcement(name, params or {}, payload or {}, request_id, self.clock()))

    def latest(self, name: str) -> Signal:
        """Return the latest signal of a name.

        Raises:
            SignalMissing: no signal has this name.
        """
        return self._found(name, None)

    def instance(self, name: str, seq: int) -> Signal:
        """Return a signal.

        Raises:
            SignalMissing: the signal does not exist.
        """
        return self._found(name, seq)

    def list(
        self, *, name: str | None = None, before: tuple[int, str, int] | None = None, limit: int = 100
    ) -> list[Signal]:
        """Return signals, newest first; ``before`` is (announced_at, name, seq) of the previous page's last one."""
        return self.state.signals(name=name, before=before, limit=limit)

    def lineage(self, name: str, seq: int | None = None) -> SignalLineage:
        """Return the sender of a signal, and what it started or released.

        Raises:
            SignalMissing: the signal does not exist.
        """
        signal = self._found(name, seq)
        uses = self.state.signal_uses(signal.name, signal.seq)
        parties = {kind: tuple(use.party for use in uses if use.kind is kind) for kind in Kind}
        sender = next(iter(parties[Kind.SENT]), None)
        return SignalLineage(signal, sender, parties[Kind.STARTED], parties[Kind.RELEASED])

    def lineage_of(self, workflow_id: str, instance_id: int) -> InstanceLineage:
        """Return which signals started an instance or released its steps, and which it sent, except pruned ones."""
        uses = self.state.instance_signals(workflow_id, instance_id)
        known = [(use, signal) for use in uses if (signal := self.state.signal(use.name, use.seq)) is not None]
        found = {kind: tuple((use.party, signal) for use, signal in known if use.kind is kind) for kind in Kind}
        return InstanceLineage(workflow_id, instance_id, found[Kind.STARTED], found[Kind.RELEASED], found[Kind.SENT])

    def _found(self, name: str, seq: int | None) -> Signal:
        found = self.state.signal(name, seq)
        if found is None:
            missing = f"Signal {name} does not exist." if seq is None else f"Signal {name} has no number {seq}."
            raise SignalMissing(missing, signal=name)
        return found
