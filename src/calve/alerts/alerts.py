"""Follows events, decides who is notified, and sends messages: at least once, each channel independently."""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from calve.alerts.model import Message, StoredMessage
from calve.alerts.policy import Policy
from calve.alerts.ports import AlertState, Channel, EventSource
from calve.alerts.rules import is_of_interest, of_event, of_time, of_version, of_waiting, wants_dependencies
from calve.engine import Event, RunStatus
from calve.errors import AlertNotSent, CalveError, Conflict

log = logging.getLogger(__name__)

EVENTS, DEFINITIONS, CLOCK = "alerts", "alerts/definitions", "alerts/clock"
"""The followers: of events, of new versions, and of the clock."""
BATCH = 500
POLL = 2.0
"""Seconds between polls of events."""
WATCH = 30_000
"""Milliseconds between checks for late runs."""
OVERLAP = 60_000
"""How many milliseconds to look back, for versions whose transactions were not committed at the last check."""
IN_HAND = 120_000
"""Milliseconds after which another process may send a claimed message, if its sender has died."""
FIRST, LONGEST = 10_000, 3_600_000
"""Milliseconds until a failed message is sent again: at first, and at most; the wait doubles each time."""
_LIVE = tuple(status for status in RunStatus if not status.is_terminal)


@dataclass(slots=True)
class Alerts:
    """Sends alerts; any number of processes may do so on one store."""

    happenings: EventSource
    state: AlertState
    channels: Mapping[str, Channel]
    policy: Policy
    clock: Callable[[], int]
    tries: int = 10
    resting: dict[str, int] = field(default_factory=dict)
    """The channels that failed, each with the time until which nothing is sent to it."""

    def begin(self) -> None:
        """Record where to begin, if nothing was followed before: only later events are reported."""
        self.state.position(EVENTS)
        self.state.position(DEFINITIONS, self.clock())

    def run(self, stop: threading.Event, poll: float = POLL) -> None:
        """Run until ``stop`` is set; an unreachable database is retried."""
        while not stop.is_set():
            try:
                self.turn()
            except Conflict:
                log.debug("another process already did this")
            except CalveError as error:
                log.warning("alerts are waiting: %s", error.message)
            except Exception:
                log.exception("sending alerts failed; it will be retried")
            stop.wait(poll)

    def turn(self) -> int:
        """Process everything that happened since the last turn, and send what is due; return how many were sent."""
        while self._follow():
            pass
        self._watch()
        self._look_at_definitions()
        return self.send()

    def send(self) -> int:
        """Send what is due; return how many messages were sent. A failed channel pauses, so others do not wait."""
        count, now = 0, self.clock()
        # One at a time: if this process died, all messages that it had claimed would be IN_HAND milliseconds late.
        while stored := next(iter(self.state.due(now, without=self._resting(now), limit=1)), None):
            if not self.state.claim(stored, now + IN_HAND):
                continue
            is_sent = self._sent(stored)
            count += is_sent
            if not is_sent:
                self.resting[stored.message.route.channel] = now + FIRST
        return count

    def _resting(self, now: int) -> tuple[str, ...]:
        return tuple(channel for channel, until in self.resting.items() if until > now)

    def _follow(self) -> bool:
        """Process the next events; tell whether there may be more."""
        position = self.state.position(EVENTS)
        events = self.happenings.events(after=position, limit=BATCH)
        if events:
            messages = [message for event in events for message in self._of_event(event)]
            # Position and messages in one transaction: another process that follows too gets a Conflict, not
            # duplicates.
            self.state.take(EVENTS, position, events[-1].seq, messages, self.clock())
        return len(events) == BATCH

    def _of_event(self, event: Event) -> Iterable[Message]:
        found = self.happenings.load(event.run_uuid) if is_of_interest(event) else None
        if found is None:
            return ()
        around = self.happenings.ancestors(found.run.uuid) if found.run.is_inline else ()
        return of_event(event, found, self.policy, around)

    def _watch(self) -> None:
        """Check running instances at intervals, in one process: the time of the last check is in the store."""
        now = self.clock()
        last = self.state.position(CLOCK, 0)
        if now - last >= WATCH:
            self.state.take(CLOCK, last, now, list(self._of_time(now)), now)

    def _of_time(self, now: int) -> Iterable[Message]:
        before: tuple[int, str] | None = None
        while runs := self.happenings.instances(statuses=_LIVE, before=before, limit=BATCH):
            for run in runs:
                yield from of_time(run, now, self.policy)
                if wants_dependencies(run, self.policy):
                    found = self.happenings.load(run.uuid)
                    yield from () if found is None else of_waiting(found, now, self.policy)
            before = (runs[-1].created_at, runs[-1].uuid)

    def _look_at_definitions(self) -> None:
        """Process new versions; those from before the first start are not reported."""
        now = self.clock()
        last = self.state.position(DEFINITIONS, now)
        versions = self.state.versions(last)
        if versions:
            messages = [
                message
                for version in versions
                for message in of_version(version, self.state.properties(version.workflow_id), self.policy)
            ]
            # created_at is set before the commit, so a version may appear later than a newer one; messages are unique
            # by id.
            after = max(last, versions[-1].created_at - OVERLAP)
            self.state.take(DEFINITIONS, last, after, messages, now)

    def _sent(self, stored: StoredMessage) -> bool:
        message, now = stored.message, self.clock()
        try:
            self._channel(message.route.channel).send(message, now)
        except AlertNotSent as error:
            self._not_sent(stored, error)
            return False
        except Exception as error:
            log.exception("the channel %s failed on a message", message.route.channel)
            self._not_sent(stored, AlertNotSent(f"{type(error).__name__}"))
            return False
        self.state.sent(message.id, now)
        return True

    def _channel(self, name: str) -> Channel:
        if name not in self.channels:
            known = ", ".join(self.channels) or "none"
            raise AlertNotSent(
                f"Channel {name} does not exist (channels: {known}).",
                remedy=f"Add [alerts.channels.{name}] to the settings.",
                is_final=True,
            )
        return self.channels[name]

    def _not_sent(self, stored: StoredMessage, error: AlertNotSent) -> None:
        tries, message = stored.tries + 1, stored.message
        said = f"{error.message} {error.remedy}".strip()
        is_over = tries >= self.tries or bool(error.context.get("is_final"))
        due_at = None if is_over else self.clock() + min(LONGEST, FIRST * 2 ** (tries - 1))
        self.state.failed(message.id, said, due_at)
        level, what = (logging.ERROR, "has finally failed") if is_over else (logging.WARNING, "will be sent again")
        channel, title = message.route.channel, message.alert.title
        log.log(level, "the alert %r on %s %s: %s", title, channel, what, said)
