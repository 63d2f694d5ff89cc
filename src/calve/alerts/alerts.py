"""Follows what happens, decides who is told, and sends it: at least once, each channel for itself."""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from calve.alerts.deciding import is_of_interest, of_event, of_time, of_version, of_waiting, wants_dependencies
from calve.alerts.model import Message, StoredMessage
from calve.alerts.policies import Policy
from calve.alerts.ports import AlertState, Channel, Happenings
from calve.engine.model import Event
from calve.engine.statuses import RunStatus
from calve.errors import AlertNotSent, CalveError, Conflict

log = logging.getLogger(__name__)

EVENTS, DEFINITIONS, CLOCK = "alerts", "alerts/definitions", "alerts/clock"
"""The followers: of events, of new versions, and of time that passes."""
BATCH = 500
POLL = 2.0
"""Seconds between looks at events."""
WATCH = 30_000
"""Milliseconds between looks at what takes long."""
OVERLAP = 60_000
"""How far back to look for versions that were being written during the last look."""
IN_HAND = 120_000
"""After how long a message that somebody died over is sent by another."""
FIRST, LONGEST = 10_000, 3_600_000
"""Milliseconds until a message is sent again: doubled each time."""
_LIVE = tuple(status for status in RunStatus if not status.is_terminal)


@dataclass(slots=True)
class Alerts:
    """Tells people of what happens; any number of processes may do it on one store."""

    happenings: Happenings
    state: AlertState
    channels: Mapping[str, Channel]
    policy: Policy
    clock: Callable[[], int]
    tries: int = 10
    resting: dict[str, int] = field(default_factory=dict)
    """Channels that have failed, and until when nothing is sent there."""

    def begin(self) -> None:
        """Note where to begin, if nobody has followed before: whatever happens from now on is told."""
        self.state.position(EVENTS)
        self.state.position(DEFINITIONS, self.clock())

    def run(self, stop: threading.Event, poll: float = POLL) -> None:
        """Go on until told to stop; a database that is away is borne."""
        while not stop.is_set():
            try:
                self.turn()
            except Conflict:
                log.debug("another process was faster")
            except CalveError as error:
                log.warning("alerts wait: %s", error.message)
            except Exception:
                log.exception("alerts stumbled; they go on")
            stop.wait(poll)

    def turn(self) -> int:
        """Look at everything that has happened since the last turn, and send what is due; return how many were sent."""
        while self._follow():
            pass
        self._watch()
        self._look_at_definitions()
        return self.send()

    def send(self) -> int:
        """Send what is due; return how many messages were sent. A channel that fails rests, lest others wait for it."""
        count, now = 0, self.clock()
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
        """Look at the next events; tell whether there may be more."""
        position = self.state.position(EVENTS)
        events = self.happenings.events(after=position, limit=BATCH)
        if events:
            messages = [message for event in events for message in self._of_event(event)]
            self.state.take(EVENTS, position, events[-1].seq, messages, self.clock())
        return len(events) == BATCH

    def _of_event(self, event: Event) -> Iterable[Message]:
        found = self.happenings.load(event.run_uuid) if is_of_interest(event) else None
        return () if found is None else of_event(event, found, self.policy)

    def _watch(self) -> None:
        """Look at what is under way, now and then: who came last is in the store, so that one of many looks."""
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
        """Look at versions that were pushed; those that were known before anybody followed are none of our business."""
        now = self.clock()
        last = self.state.position(DEFINITIONS, now)
        versions = self.state.versions(last)
        if versions:
            messages = [
                message
                for version in versions
                for message in of_version(version, self.state.properties(version.workflow_id), self.policy)
            ]
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
            log.exception("the channel %s stumbled over a message", message.route.channel)
            self._not_sent(stored, AlertNotSent(f"{type(error).__name__}"))
            return False
        self.state.sent(message.id, now)
        return True

    def _channel(self, name: str) -> Channel:
        if name not in self.channels:
            known = ", ".join(self.channels) or "none"
            raise AlertNotSent(
                f"There is no channel {name} (there are: {known}).",
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
        level, what = (logging.ERROR, "is given up") if is_over else (logging.WARNING, "is tried again")
        channel, title = message.route.channel, message.alert.title
        log.log(level, "the alert %r on %s %s: %s", title, channel, what, said)
