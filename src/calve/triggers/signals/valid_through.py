"""Through which time tables are complete: their property ``calve.valid-through``, told by signals.

A signal ``vtts/<table>`` with the param ``through`` says that a table holds everything up to that time. Steps and
triggers wait for it as for any other. Anybody may announce it; where somebody waits for it, the table's own property
is looked at too.
"""

import logging
import threading
from datetime import UTC, datetime
from typing import Protocol

from calve.definition.model.triggers import THROUGH, VALID_THROUGH, Operator
from calve.engine.ports import Clock
from calve.engine.signals import Announced, Announcement, Signal, Wanted
from calve.errors import CalveError, RequestInvalid
from calve.lake import Lake, TableName
from calve.lake.metadata import Change
from calve.triggers.polling import keep_polling, locations_of

log = logging.getLogger(__name__)

PROPERTY = "calve.valid-through"
"""The property of a table: milliseconds, or a time with a zone as ISO 8601 writes it."""


class AwaitedSignals(Protocol):
    """Tells which signals somebody waits for, and takes new ones."""

    def awaited_signals(self, prefix: str) -> list[str]:
        """Return the names with a prefix that steps or triggers wait for."""
        ...

    def match_signal(self, name: str, wanted: tuple[Wanted, ...]) -> Signal | None:
        """Return the latest signal of a name whose params fit."""
        ...

    def announce(self, announcement: Announcement) -> Announced:
        """Keep a signal unless it is known, wake what waits for it, and make its triggers due."""
        ...


def moment_of(text: str) -> int:
    """Return a time in milliseconds.

    Raises:
        RequestInvalid: it is none, or has no zone.
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
            f"{text[:80]!r} is no time.", remedy="Write milliseconds, or a time with its zone: 2026-01-31T00:00:00Z."
        )
    return int(moment.astimezone(UTC).timestamp() * 1_000)


class ValidThrough:
    """Polls the tables that somebody waits for, from metadata only, and announces what their properties say.

    The same is announced once, whoever announces it: several of them do no harm. What was true once stays true: a
    property that goes back announces nothing.
    """

    def __init__(self, lake: Lake, state: AwaitedSignals, clock: Clock, interval: float) -> None:
        """Take the lake, the signals, and how many seconds lie between two polls."""
        self._lake = lake
        self._state = state
        self._clock = clock
        self._interval = interval
        self._seen: dict[str, str] = {}

    def run(self, stop: threading.Event) -> None:
        """Poll until ``stop`` is set."""
        keep_polling(self.poll, self._interval, stop)

    def poll(self) -> list[Signal]:
        """Look at the tables that somebody waits for and that have changed; return the signals that came of it."""
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
        """Return the tables of the signals that somebody waits for; what names no table may come from elsewhere."""
        found = {}
        for name in self._state.awaited_signals(VALID_THROUGH):
            try:
                found[name] = self._lake.parse(name.removeprefix(VALID_THROUGH))
            except CalveError as error:
                log.debug("%s: %s", name, error.message)
        return found

    def _told(self, name: str, table: TableName) -> list[Signal]:
        """Announce what a table's property says, if that is more than what is known."""
        loaded = self._lake.catalog(table.catalog).load(table)
        text = loaded.metadata.get("properties", {}).get(PROPERTY)
        if text is None:
            return []
        through = moment_of(text)
        if self._state.match_signal(name, (Wanted(THROUGH, through, Operator.GREATER_OR_EQUAL),)) is not None:
            return []
        payload = {"table": str(table), "metadata_location": loaded.metadata_location}
        return [self._state.announce(Announcement(name, {THROUGH: through}, payload, at=self._clock())).signal]


def set_valid_through(lake: Lake, table: str, through: str) -> int:
    """Say through which time a table is complete, in its property; return that time.

    Raises:
        RequestInvalid: it is no time, or names no table.
        LakeError: the table is not there, or cannot be changed.
    """
    moment, name = moment_of(through), lake.parse(table)
    lake.catalog(name.catalog).change(name, lambda _: Change(properties={PROPERTY: str(moment)}))
    return moment
