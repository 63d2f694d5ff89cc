"""Named points at every durable boundary where a test can make the process die or fail.

``CALVE_FAILPOINTS="capture.registered:1:kill"`` kills the process the first time that point is reached; ``*`` stands
for every point, ``error`` raises an error instead, ``stop`` stops the process with ``SIGSTOP`` until it gets
``SIGCONT``, and ``count`` prints the reached points to standard error. An unarmed point costs one comparison.
"""

import signal
import sys
import threading
from dataclasses import dataclass, field

from calve.errors import CalveError, SettingsInvalid


class FailpointReached(CalveError):
    """An armed failpoint failed here."""

    code = "failpoint"
    is_passing = True  # the error simulates a crash, after which a step is retried


@dataclass(slots=True)
class _Armed:
    """The action of an armed failpoint, and how often it was reached."""

    name: str
    nth: int
    action: str
    passed: int = field(default=0)


_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}
_armed: _Armed | None = None


def arm(plan: str | None) -> None:
    """Arm a failpoint by ``name:N:kill|error|stop|count``; None disarms."""
    global _armed  # noqa: PLW0603 - a failpoint is process-wide by nature
    if plan is None:
        _armed = None
        return
    name, _, rest = plan.partition(":")
    nth, _, action = rest.partition(":")
    if not nth.isdigit() or action not in {*_SIGNALS, "error", "count"}:
        raise SettingsInvalid(f"failpoints: {plan!r} is not NAME:N: with kill, error, stop or count")
    _armed = _Armed(name, int(nth), action)


def reach(name: str) -> None:
    """Mark the point ``name``: do nothing unless it is armed."""
    if _armed is None or _armed.name not in {"*", name}:
        return
    _armed.passed += 1
    if _armed.action == "count":
        sys.stderr.write(f"failpoint {name}\n")
    elif _armed.passed == _armed.nth:
        if _armed.action == "error":
            raise FailpointReached(f"failpoint {name}", point=name)
        # Sent to the process, it may reach another thread, and this one would go on for a while.
        signal.pthread_kill(threading.get_ident(), _SIGNALS[_armed.action])
