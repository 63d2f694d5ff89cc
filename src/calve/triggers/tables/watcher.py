"""Notices changes of tables, from metadata only: the metadata location changes with every commit."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from calve.capture.inspection import EVERY
from calve.engine import Clock
from calve.errors import CalveError
from calve.lake import Lake, TableName
from calve.triggers.model import Trigger, TriggerState, TriggerType, all_triggers
from calve.triggers.table_poll import Locations, keep_polling, locations_of

Key = tuple[str, str]
View = tuple[int, tuple[tuple[str, str | None], ...]]
"""The basis of a trigger's evaluation: its version, and the metadata location of each table."""


@dataclass(frozen=True, slots=True)
class _Watched:
    """A trigger and its tables."""

    key: Key
    version_id: int
    tables: tuple[TableName, ...]
    seen: View

    def view(self, locations: Locations) -> View | None:
        """Return the current view; None if a catalog could not be reached."""
        if any(table not in locations for table in self.tables):
            return None
        return self.version_id, tuple(sorted((str(table), locations[table]) for table in self.tables))


class Watcher:
    """Polls catalogs, each table once however many triggers watch it, and makes those triggers due.

    The last evaluated state is in the rows of the triggers; nothing is written while nothing changes. Several watchers
    do no harm: they only read, and it does not matter which of them makes a trigger due.
    """

    def __init__(self, lake: Lake, state: TriggerState, clock: Clock, interval: float) -> None:
        """Create a watcher for a lake and its triggers, with the seconds between two polls."""
        self._lake = lake
        self._state = state
        self._clock = clock
        self._interval = interval
        self._asked: dict[Key, View] = {}
        self._names: dict[str, TableName | None] = {}

    def run(self, stop: threading.Event) -> None:
        """Poll until ``stop`` is set."""
        keep_polling(self.poll, self._interval, stop)

    def poll(self) -> int:
        """Read the metadata locations of all watched tables; return how many triggers became due."""
        now = self._clock()
        triggers = all_triggers(self._state, TriggerType.INCREMENTAL)
        watched = [self._watched(trigger) for trigger in triggers if not _is_due(trigger, now)]
        locations = locations_of(self._lake, {table for each in watched for table in each.tables})
        moved = {
            each.key: view
            for each in watched
            if (view := each.view(locations)) is not None and view not in {each.seen, self._asked.get(each.key)}
        }
        if moved:
            self._state.make_due(moved, now)
        # A trigger that cannot be evaluated keeps its old view: it was made due once, and then follows its backoff.
        self._asked = {each.key: view for each in watched if (view := self._asked.get(each.key)) is not None} | moved
        return len(moved)

    def changed(self, table: str, is_for: Callable[[str], bool] = lambda _: True) -> int:
        """Make the triggers of a table due now, because a client reports a change; return how many watch it.

        Args:
            table: the name of the table.
            is_for: tells whether the triggers of a workflow may use the table.

        Raises:
            RequestInvalid: the name is not that of a table.
        """
        name = self._lake.parse(table)
        watching = (
            trigger for trigger in all_triggers(self._state, TriggerType.INCREMENTAL) if is_for(trigger.workflow_id)
        )
        keys = [_key(trigger) for trigger in watching if name in self._watched(trigger).tables]
        if keys:
            self._state.make_due(keys, self._clock())
        return len(keys)

    def _watched(self, trigger: Trigger) -> _Watched:
        names = (self._parsed(text) for text in trigger.definition.get("source_tables", ()))
        tables = tuple(dict.fromkeys(name for name in names if name is not None))
        seen = trigger.state.get("seen", {})
        view = (trigger.state.get("version", 0), tuple(sorted((str(table), seen.get(str(table))) for table in tables)))
        return _Watched(_key(trigger), trigger.version_id, tables, view)

    def _parsed(self, text: str) -> TableName | None:
        """Return the table of a name; None if it is invalid, which evaluating the trigger reports."""
        if text not in self._names:
            try:
                self._names[text] = self._lake.parse(text)
            except CalveError:
                self._names[text] = None
        return self._names[text]


@dataclass(frozen=True, slots=True)
class LagSampler:
    """Samples the lag of consumers at an interval; with several samplers, each sample is stored once."""

    take: Callable[[], int]
    """Takes a sample of each consumer; returns how many there are."""
    interval: float = EVERY / 1_000
    """Seconds between two samples."""

    def run(self, stop: threading.Event) -> None:
        """Take samples until ``stop`` is set."""
        keep_polling(self.take, self.interval, stop)


def _key(trigger: Trigger) -> Key:
    return trigger.workflow_id, trigger.trigger_id


def _is_due(trigger: Trigger, now: int) -> bool:
    """Tell whether a trigger is about to be evaluated anyway."""
    return trigger.due_at is not None and trigger.due_at <= now
