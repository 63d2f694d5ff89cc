"""Which signals may still be needed, however old they are. Pure."""

from collections.abc import Iterable

from calve.triggers.model import Trigger


def read_through(trigger: Trigger, name: str) -> int:
    """Return the last signal of a name that a trigger needs no more; all later ones it may."""
    if not trigger.is_begun:
        return 0
    waiting = [int(seq) - 1 for seq, _ in trigger.state.get("waiting", {}).get(name, ())]
    return min([int(trigger.state.get("read", {}).get(name, 0)), *waiting])


def is_needed(seq: int, newest: int, read: Iterable[int]) -> bool:
    """Tell whether somebody may still come back to a signal.

    Args:
        seq: its number.
        newest: that of the newest of its name, which stays: who begins to wait looks at what has come before.
        read: how far each of those who wait for its name has read.
    """
    return seq >= newest or any(seq > each for each in read)
