"""Watermarks: up to which time tables are complete, by their property ``calve.valid-through``, told by signals.

A signal ``vtts/<table>`` with the param ``through`` says that a table holds everything up to that time. Steps and
triggers wait for it as for any other. Any client may announce it; if something waits for it, the table's own property
is polled too.
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
"""The property of a table: milliseconds, or a time with a zone as ISO 8601 writes it."""


class AwaitedSignals(Protocol):
    """Returns which signals are waited for, and accepts new ones."""

    def awaited_signals(self, prefix: str) -> list[str]:
        """Return the names with a prefix that steps or triggers wait for."""
        ...

    def match_signal(self, name: str, wanted: tuple[ParamMatch, ...]) -> Signal | None:
        """Return the latest signal of a name whose params fit."""
        ...

    def announce(self, announcement: Announcement) -> Announced:
        """Keep a signal unless it is known, wake what waits for it, and make its triggers due."""
        ...


def moment_of(text: str) -> int:
    """Return a time in milliseconds.

    Raises:
        RequestInvalid: it is not a time, or has no zone.
    """
    text = text.strip()
    if text.removeprefix("-").isdecimal() and len(text) < 19:  # a database has 64 bits for it
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
    """Polls the tables that something waits for, from metadata only, and announces what their properties say.

    The same value is announced once, so several pollers do no harm. A watermark never goes back: a property that is set
    to an earlier time announces nothing.
    """

    def __init__(self, lake: Lake, state: AwaitedSignals, clock: Clock, interval: float) -> None:
        """Take the lake, the signals, and the seconds between two polls."""
        self._lake = lake
        self._state = state
        self._clock = clock
        self._interval = interval
        self._seen: dict[str, str] = {}

    def run(self, stop: threading.Event) -> None:
        """Poll until ``stop`` is set."""
        keep_polling(self.poll, self._interval, stop)

    def poll(self) -> list[Signal]:
        """Read tables that are waited for and have changed; return the resulting signals."""
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
            except CalveError as error:  # one that cannot be read does not hold up the others
                log.warning("%s: %s", table, error.message)
            self._seen[name] = location
        return found

    def _tables(self) -> dict[str, TableName]:
        """Return the tables of the signals that are waited for; other names are announced from elsewhere."""
        found = {}
        for name in self._state.awaited_signals(VALID_THROUGH):
            try:
                found[name] = self._lake.parse(name.removeprefix(VALID_THROUGH))
            except CalveError as error:
                log.debug("%s: %s", name, error.message)
        return found

    def _told(self, name: str, table: TableName) -> list[Signal]:
        """Announce a table's property if it is later than what is known."""
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
    """Set up to which time a table is complete, in its property; return that time.

    Raises:
        RequestInvalid: it is not a time, or does not name a table.
        LakeError: the table does not exist, or cannot be changed.
    """
    moment, name = moment_of(through), lake.parse(table)
    lake.catalog(name.catalog).change(name, lambda _: TableCommit(properties={PROPERTY: str(moment)}))
    return moment
