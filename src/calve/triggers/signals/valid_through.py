"""Watermarks: signals that announce until when tables are complete, from their property ``calve.valid-through``.

A signal ``vtts/<table>`` with the param ``through`` says that a table is complete up to that time. Steps and triggers
wait for it as for any other signal. Any client may announce it; if something waits for it, calve also polls the
property of the table.
"""

import logging
import threading
from datetime import UTC, datetime
from typing import Protocol

from calve.definition.model import THROUGH, VALID_THROUGH, Operator
from calve.engine import Announced, Announcement, Clock, ParamMatch, Signal
from calve.errors import CalveError, RequestInvalid
from calve.lake import Lake, TableCommit, TableName
from calve.triggers.table_poll import keep_polling, locations_of

log = logging.getLogger(__name__)

PROPERTY = "calve.valid-through"
"""The property of a table: milliseconds, or a time with a time zone in ISO 8601."""


class AwaitedSignals(Protocol):
    """Returns the names of awaited signals, and accepts new signals."""

    def awaited_signals(self, prefix: str) -> list[str]:
        """Return the names with a prefix that steps or triggers wait for."""
        ...

    def match_signal(self, name: str, wanted: tuple[ParamMatch, ...]) -> Signal | None:
        """Return the newest signal of a name whose params meet the conditions."""
        ...

    def announce(self, announcement: Announcement) -> Announced:
        """Store a signal unless it is known, wake steps that wait, and make triggers due."""
        ...


def moment_of(text: str) -> int:
    """Return a time in milliseconds.

    Raises:
        RequestInvalid: it is not a time, or has no time zone.
    """
    text = text.strip()
    if text.removeprefix("-").isdecimal() and len(text) < 19:  # the database stores 64 bits
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise RequestInvalid(
            f"{text[:80]!r} is not a time.",
            remedy="Use milliseconds, or a time with its time zone: 2026-01-31T00:00:00Z.",
        )
    return int(moment.astimezone(UTC).timestamp() * 1_000)


class ValidThrough:
    """Polls the tables of awaited signals, from metadata only, and announces the values of their properties.

    The same value is announced once, so several pollers do no harm. A watermark never goes back: a property that is set
    to an earlier time announces nothing.
    """

    def __init__(self, lake: Lake, state: AwaitedSignals, clock: Clock, interval: float) -> None:
        """Create a poller for a lake and its signals, with the seconds between two polls."""
        self._lake = lake
        self._state = state
        self._clock = clock
        self._interval = interval
        self._seen: dict[str, str] = {}

    def run(self, stop: threading.Event) -> None:
        """Poll until ``stop`` is set."""
        keep_polling(self.poll, self._interval, stop)

    def poll(self) -> list[Signal]:
        """Read awaited tables that have changed; return the resulting signals."""
        tables = self._tables()
        locations = locations_of(self._lake, set(tables.values()))
        self._seen = {name: location for name, location in self._seen.items() if name in tables}
        found: list[Signal] = []
        for name, table in tables.items():
            location = locations.get(table)
            if location is None or self._seen.get(name) == location:
                continue
            try:
                found += self._told(name, table)
            except CalveError as error:  # a table that cannot be read does not block the others
                log.warning("%s: %s", table, error.message)
            self._seen[name] = location
        return found

    def _tables(self) -> dict[str, TableName]:
        """Return the tables of the awaited signals; signals with other names are announced by clients."""
        found = {}
        for name in self._state.awaited_signals(VALID_THROUGH):
            try:
                found[name] = self._lake.parse(name.removeprefix(VALID_THROUGH))
            except CalveError as error:
                log.debug("%s: %s", name, error.message)
        return found

    def _told(self, name: str, table: TableName) -> list[Signal]:
        """Announce a table's property if it is later than all announced values."""
        loaded = self._lake.catalog(table.catalog).load(table)
        text = loaded.metadata.get("properties", {}).get(PROPERTY)
        if text is None:
            return []
        through = moment_of(text)
        if self._state.match_signal(name, (ParamMatch(THROUGH, through, Operator.GREATER_OR_EQUAL),)) is not None:
            return []
        payload = {"table": str(table), "metadata_location": loaded.metadata_location}
        return [self._state.announce(Announcement(name, {THROUGH: through}, payload, at=self._clock())).signal]


def set_valid_through(lake: Lake, table: str, through: str) -> int:
    """Set the time up to which a table is complete, in its property; return that time.

    Raises:
        RequestInvalid: the time is invalid, or the name is not that of a table.
        LakeError: the table does not exist, or cannot be changed.
    """
    moment, name = moment_of(through), lake.parse(table)
    lake.catalog(name.catalog).change(name, lambda _: TableCommit(properties={PROPERTY: str(moment)}))
    return moment
