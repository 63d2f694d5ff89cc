"""Sees tables change, from metadata only: where it lies moves with every commit."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from calve.engine.ports import Clock
from calve.errors import CalveError
from calve.lake import Lake, TableName
from calve.triggers.model import Kind, Trigger
from calve.triggers.polling import Locations, keep_polling, locations_of
from calve.triggers.ports import TriggerState

_PAGE = 1_000

Key = tuple[str, str]
View = tuple[int, tuple[tuple[str, str | None], ...]]
"""What a trigger looks at: its version, and where the metadata of each table lies."""


@dataclass(frozen=True, slots=True)
class _Watched:
    """A trigger, and the tables that it names."""

    key: Key
    version_id: int
    tables: tuple[TableName, ...]
    seen: View

    def view(self, locations: Locations) -> View | None:
        """Return what there is to look at now; None where a catalog gave no answer."""
        if any(table not in locations for table in self.tables):
            return None
        return self.version_id, tuple(sorted((str(table), locations[table]) for table in self.tables))


class Watcher:
    """Polls catalogs, each table once however many triggers watch it, and makes those triggers due.

    What was seen last stands in the triggers' rows; nothing is written while nothing changes. Several watchers do no
    harm: they only read, and who of them makes a trigger due makes no difference to when it fires.
    """

    def __init__(self, lake: Lake, state: TriggerState, clock: Clock, interval: float) -> None:
        """Take the lake, the triggers, and how many seconds lie between two polls."""
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
        """Look where the metadata of all watched tables lies; return how many triggers that made due."""
        now = self._clock()
        watched = [self._watched(trigger) for trigger in self._triggers() if not _is_due(trigger, now)]
        locations = locations_of(self._lake, {table for each in watched for table in each.tables})
        moved = {
            each.key: view
            for each in watched
            if (view := each.view(locations)) is not None and view not in {each.seen, self._asked.get(each.key)}
        }
        if moved:
            self._state.make_due(moved, now)
        # a trigger that cannot be looked at still shows the old view: asked for once, it is left to its backoff
        self._asked = {each.key: view for each in watched if (view := self._asked.get(each.key)) is not None} | moved
        return len(moved)

    def changed(self, table: str, is_for: Callable[[str], bool] = lambda _: True) -> int:
        """Let triggers look at a table now, because somebody says that it changed; return how many watch it.

        Args:
            table: its name.
            is_for: tells whether it is for the triggers of a workflow.

        Raises:
            RequestInvalid: it names no table.
        """
        name = self._lake.parse(table)
        watching = (trigger for trigger in self._triggers() if is_for(trigger.workflow_id))
        keys = [_key(trigger) for trigger in watching if name in self._watched(trigger).tables]
        if keys:
            self._state.make_due(keys, self._clock())
        return len(keys)

    def _triggers(self) -> Iterator[Trigger]:
        after = ("", "")
        while page := self._state.triggers(kind=Kind.INCREMENTAL, after=after, limit=_PAGE):
            yield from page
            after = _key(page[-1])

    def _watched(self, trigger: Trigger) -> _Watched:
        names = (self._parsed(text) for text in trigger.definition.get("source_tables", ()))
        tables = tuple(dict.fromkeys(name for name in names if name is not None))
        seen = trigger.state.get("seen", {})
        view = (trigger.state.get("version", 0), tuple(sorted((str(table), seen.get(str(table))) for table in tables)))
        return _Watched(_key(trigger), trigger.version_id, tables, view)

    def _parsed(self, text: str) -> TableName | None:
        """Return the table that a name means; None where it names none, which a look at the trigger tells."""
        if text not in self._names:
            try:
                self._names[text] = self._lake.parse(text)
            except CalveError:
                self._names[text] = None
        return self._names[text]


def _key(trigger: Trigger) -> Key:
    return trigger.workflow_id, trigger.trigger_id


def _is_due(trigger: Trigger, now: int) -> bool:
    """Tell whether a trigger is about to be looked at anyway."""
    return trigger.due_at is not None and trigger.due_at <= now
