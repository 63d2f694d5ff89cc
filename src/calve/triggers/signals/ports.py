"""What signals need of others: a store that keeps them."""

from typing import Protocol

from calve.engine.signals import Announced, Announcement, Signal, SignalUse


class SignalState(Protocol):
    """Keeps signals. Those that steps send, and what signals start, come in by ``Changes``."""

    def announce(self, announcement: Announcement) -> Announced:
        """Keep a signal unless it is known, wake what waits for it, and make its triggers due: in one transaction."""
        ...

    def signal(self, name: str, seq: int | None = None) -> Signal | None:
        """Return a signal, the latest of its name if no number is given."""
        ...

    def signals(
        self, *, name: str | None = None, before: tuple[int, str, int] | None = None, limit: int = 100
    ) -> list[Signal]:
        """Return signals, newest first; ``before`` is (announced_at, name, seq) of the last one of the page before."""
        ...

    def signals_after(self, name: str, seq: int, limit: int) -> list[Signal]:
        """Return the signals of a name in order, from the one after a number."""
        ...

    def last_before(self, name: str, at: int) -> int:
        """Return the number of the last signal of a name that was announced before a time; 0 if none was."""
        ...

    def signal_uses(self, name: str, seq: int) -> list[SignalUse]:
        """Return who sent a signal, and what it started or released."""
        ...

    def instance_signals(self, workflow_id: str, instance_id: int) -> list[SignalUse]:
        """Return the signals that an instance was started or released by, and those that it sent."""
        ...
