"""Follows the events of steps and sends them at least once, in order, without delaying any step."""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from calve.capture import CaptureReport
from calve.engine import Event, StepStatus
from calve.errors import CalveError, CaptureMissing, Conflict
from calve.lake import TableName
from calve.lineage.edges import EdgeState, edges_of
from calve.lineage.ports import EventSource, KeptCaptures, LineageState, Sender
from calve.settings import LineageSettings

if TYPE_CHECKING:
    from openlineage.client.transport.http import TokenProvider

    from calve.lineage.events import Told

log = logging.getLogger(__name__)

NAME, EDGES = "lineage", "lineage_edges"
"""The names of two followers, so that an unavailable receiver does not delay the edges that calve itself stores."""
BATCH = 200
POLL, LONGEST = 2.0, 60.0
"""Seconds between polls; the longest pause while no receiver accepts events."""
_REFUSED = range(400, 500)
_PASSING = frozenset({401, 403, 404, 408, 429})
"""The status codes that may change when the settings or the receiver are repaired."""


@dataclass(slots=True)
class Lineage:
    """Reports which tables steps have read and written."""

    happenings: EventSource
    state: LineageState
    captures: KeptCaptures
    senders: Sequence[Sender]
    parse: Callable[[str], TableName]
    namespace: str = "calve"
    failures: int = field(default=0)
    """How often in a row an event was not accepted."""
    edges: EdgeState | None = None
    """Stores which tables succeeded steps have read and written; None stores nothing."""
    name: str = NAME
    """The name under which the store records the position of this follower."""

    def begin(self) -> None:
        """Record the start position if there is none: only later events are reported."""
        self.state.position(self.name)

    def run(self, stop: threading.Event, poll: float = POLL) -> None:
        """Run until ``stop`` is set."""
        while not stop.is_set():
            try:
                while self.turn():
                    pass
            except Conflict:
                log.debug("another process already did this")
            except CalveError as error:
                log.warning("lineage is waiting: %s", error.message)
            except Exception:
                log.exception("sending lineage failed; it will be retried")
            stop.wait(min(LONGEST, poll * 2 ** min(self.failures, 10)))

    def turn(self) -> bool:
        """Send the next events; tell whether there may be more right away."""
        position = self.state.position(self.name)
        events = self.happenings.events(after=position, limit=BATCH)
        done = position
        # In order: the receiver must not see an end before its start, so one event that fails holds up the rest.
        for event in events:
            if not self._tell(event):
                break
            done = event.seq
        if done != position:
            self.state.move(self.name, position, done)
        is_all_told = not events or done == events[-1].seq
        self.failures = 0 if is_all_told else self.failures + 1
        return is_all_told and len(events) == BATCH

    def _tell(self, event: Event) -> bool:
        """Send one event if it is relevant; return whether to continue with the next one."""
        from calve.lineage.events import built

        told = self._told(event)
        if told is None:
            return True
        if self.edges is not None and event.after == StepStatus.SUCCEEDED:
            self.edges.keep(edges_of(told, self.parse))
        if not self.senders:
            return True
        try:
            ready = built(told, self.namespace, self.parse)
            for sender in self.senders:
                sender.emit(ready)
        except Exception as error:  # noqa: BLE001 - whatever a transport raises, steps go on
            return self._is_hopeless(event, error)
        return True

    def _is_hopeless(self, event: Event, error: Exception) -> bool:
        """Tell whether an event will never be accepted, so that the next one may be sent."""
        code = getattr(getattr(error, "response", None), "status_code", None)
        is_hopeless = not isinstance(error, OSError | RuntimeError) if code is None else _is_refused(code)
        what = "is dropped" if is_hopeless else "is sent again later"
        said = type(error).__name__ if code is None else f"the receiver responded with {code}"
        log.warning("the lineage of event %d %s: %s", event.seq, what, said)
        return is_hopeless

    def _told(self, event: Event) -> "Told | None":
        from calve.lineage.events import TYPES, Told, state_of

        state = state_of(event)
        if state is None or event.step_id is None or not (self.senders or event.after == StepStatus.SUCCEEDED):
            return None
        attempts = self.happenings.attempts(event.run_uuid, event.step_id)
        attempt = next((each for each in attempts if each.attempt_id == event.attempt_id), None)
        if attempt is None or attempt.type not in TYPES:
            return None
        found = self.happenings.load(event.run_uuid)
        if found is None:
            return None
        return Told(event, state, found.run, attempt, self._capture(attempt.artifacts.get("capture_id")))

    def _capture(self, capture_id: str | None) -> CaptureReport | None:
        if not capture_id:
            return None
        try:
            stored = self.captures.capture(capture_id)
        except CaptureMissing:
            return None
        return CaptureReport.from_json(stored.document) if stored.document else None


def _is_refused(code: int) -> bool:
    return code in _REFUSED and code not in _PASSING


SECONDS = 10.0


def senders_of(settings: LineageSettings, secret: Callable[[str], str]) -> list[Sender]:
    """Return the transports of the settings; none if lineage is off."""
    found: list[Sender] = []
    if settings.url is not None:
        from openlineage.client.transport.http import HttpConfig, HttpTransport

        # No retries of its own: we retry, and a stop must not wait for its back-off.
        config = HttpConfig(
            settings.url, settings.endpoint, timeout=SECONDS, auth=_token(settings, secret), retry={"total": 0}
        )
        found.append(HttpTransport(config))
    if settings.file is not None:
        from openlineage.client.transport.file import FileConfig, FileTransport

        settings.file.parent.mkdir(parents=True, exist_ok=True)
        found.append(FileTransport(FileConfig(str(settings.file), append=True)))
    return found


def _token(settings: LineageSettings, secret: Callable[[str], str]) -> "TokenProvider":
    from openlineage.client.transport.http import ApiKeyTokenProvider, TokenProvider

    if settings.key_secret is None:
        return TokenProvider({})
    return ApiKeyTokenProvider({"api_key": secret(settings.key_secret)})
