"""Follows what happens to steps, and tells it: at least once, in order, and without anybody waiting for it."""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from calve.capture import CaptureReport
from calve.engine.model import Event
from calve.errors import CalveError, CaptureMissing, Conflict
from calve.lake import TableName
from calve.lineage.ports import Happenings, KeptCaptures, LineageState, Sender

if TYPE_CHECKING:
    from calve.lineage.building import Told

log = logging.getLogger(__name__)

NAME = "lineage"
BATCH = 200
POLL, LONGEST = 2.0, 60.0
"""Seconds between looks; the longest pause while nobody takes anything."""
_REFUSED = range(400, 500)
_PASSING = frozenset({401, 403, 404, 408, 429})
"""Answers that may be others tomorrow, when somebody has mended the settings."""


@dataclass(slots=True)
class Lineage:
    """Tells others which tables steps have read and written."""

    happenings: Happenings
    state: LineageState
    captures: KeptCaptures
    senders: Sequence[Sender]
    parse: Callable[[str], TableName]
    namespace: str = "calve"
    failures: int = field(default=0)
    """How often in a row nobody took an event."""

    def begin(self) -> None:
        """Note where to begin, if nobody has followed before: whatever happens from now on is told."""
        self.state.position(NAME)

    def run(self, stop: threading.Event, poll: float = POLL) -> None:
        """Go on until told to stop."""
        while not stop.is_set():
            try:
                while self.turn():
                    pass
            except Conflict:
                log.debug("another process was faster")
            except CalveError as error:
                log.warning("lineage waits: %s", error.message)
            except Exception:
                log.exception("lineage stumbled; it goes on")
            stop.wait(min(LONGEST, poll * 2 ** min(self.failures, 10)))

    def turn(self) -> bool:
        """Tell of the next events; tell whether there may be more at once."""
        position = self.state.position(NAME)
        events = self.happenings.events(after=position, limit=BATCH)
        done = position
        for event in events:
            if not self._tell(event):
                break
            done = event.seq
        if done != position:
            self.state.move(NAME, position, done)
        is_all_told = not events or done == events[-1].seq
        self.failures = 0 if is_all_told else self.failures + 1
        return is_all_told and len(events) == BATCH

    def _tell(self, event: Event) -> bool:
        """Tell of one event, if it means something; tell whether that is done."""
        from calve.lineage.building import built

        told = self._told(event)
        if told is None:
            return True
        try:
            ready = built(told, self.namespace, self.parse)
            for sender in self.senders:
                sender.emit(ready)
        except Exception as error:  # noqa: BLE001 - whatever a transport raises, steps go on
            return self._is_hopeless(event, error)
        return True

    def _is_hopeless(self, event: Event, error: Exception) -> bool:
        """Tell whether an event will never be taken, so that the next one may be told."""
        code = getattr(getattr(error, "response", None), "status_code", None)
        is_hopeless = not isinstance(error, OSError | RuntimeError) if code is None else _is_refused(code)
        what = "is dropped" if is_hopeless else "is sent again later"
        said = type(error).__name__ if code is None else f"the receiver answered {code}"
        log.warning("the lineage of event %d %s: %s", event.seq, what, said)
        return is_hopeless

    def _told(self, event: Event) -> "Told | None":
        from calve.lineage.building import TYPES, Told, state_of

        state = state_of(event)
        if state is None or event.step_id is None:
            return None
        attempts = self.happenings.attempts(event.run_uuid, event.step_id)
        attempt = next((each for each in attempts if each.attempt_id == event.attempt_id), None)
        found = self.happenings.load(event.run_uuid)
        if attempt is None or found is None or attempt.type not in TYPES:
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
