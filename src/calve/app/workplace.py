"""A project's workplace: its settings, store, engine and lake, and whoever works on them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from calve.app.capturing import open_lake
from calve.app.following import Follower, alerts_on, lineage_on
from calve.app.ids import new_uuid
from calve.app.retaining import pruner_on
from calve.app.scheduling import schedulers_on, valid_through_on, watcher_on
from calve.app.secret_store import secrets_on
from calve.app.working import runtimes_on, worker_on
from calve.settings import Settings, load
from calve.store import Store, open_store

if TYPE_CHECKING:
    from calve.access.secrets import Secrets
    from calve.alerts import Alerts
    from calve.engine import Engine, Listener, Runtimes, Tools, Worker, WorkerOptions
    from calve.lake import Lake
    from calve.lineage import Lineage
    from calve.retention import Pruner
    from calve.triggers import Scheduler, Turn
    from calve.triggers.signals import Signals
    from calve.triggers.tables import Watcher


@dataclass(frozen=True, slots=True)
class Workplace:
    """A project's engine, and what it takes to carry out its tasks."""

    settings: Settings
    store: Store
    engine: "Engine"
    lake: "Lake"

    @property
    def secrets(self) -> "Secrets":
        """What gives the text of a secret by its name."""
        return secrets_on(self.store, self.settings)

    @property
    def signals(self) -> "Signals":
        """What announces signals, and tells what came of them."""
        from calve.triggers.signals import Signals

        return Signals(self.store.engine, self.engine.tools.clock)

    def worker(
        self,
        *,
        options: "WorkerOptions | None" = None,
        listener: "Listener" = lambda _: None,
        runtimes: "Runtimes | None" = None,
    ) -> "Worker":
        """Return a worker on this machine, which does nothing until it is run.

        Args:
            options: how it behaves; by the settings, if not given.
            listener: is told of every turn that was written.
            runtimes: what carries out steps, by type; all that is installed, if not given.
        """
        tools, settings = self.engine.tools, self.settings
        if runtimes is None:
            runtimes = runtimes_on(self.store, self.lake, tools, settings)
        return worker_on(tools, settings, self.secrets, runtimes, options=options, listener=listener)

    def companions(self, listener: "Callable[[Turn], None]" = lambda _: None) -> list[Follower]:
        """Return all that runs where the scheduler does, each to be run in a thread of its own.

        Args:
            listener: is told of every turn of a scheduler.
        """
        valid_through = valid_through_on(self.store, self.lake, self.engine.tools, self.settings.triggers)
        return [*self.schedulers(listener), self.watcher(), valid_through, *self.followers(), self.pruner()]

    def schedulers(self, listener: "Callable[[Turn], None]" = lambda _: None) -> "list[Scheduler]":
        """Return what starts workflows by their triggers.

        Args:
            listener: is told of every turn.
        """
        return schedulers_on(self.store, self.lake, self.engine.tools, self.settings.triggers, listener)

    def watcher(self) -> "Watcher":
        """Return what sees the tables of triggers change."""
        return watcher_on(self.store, self.lake, self.engine.tools, self.settings.triggers)

    def pruner(self) -> "Pruner":
        """Return what takes away what has been kept for long enough."""
        return pruner_on(self.store, self.engine.tools, self.settings)

    def followers(self) -> list[Follower]:
        """Return those who tell others of what happens from now on, as far as the settings say whom."""
        settings = self.settings
        found: list[Alerts | Lineage] = []
        if settings.alerts.channels:
            found.append(alerts_on(self.store, self.engine.tools, settings.alerts, self.secrets))
        if settings.lineage.is_wanted:
            found.append(lineage_on(self.store, self.lake, settings.lineage, self.secrets))
        for each in found:
            each.begin()  # here, and not in their threads: a worker may be faster
        return [*found]


@contextmanager
def open_workplace(settings: Settings | None = None) -> Iterator[Workplace]:
    """Open the state database and the lake of a project, and the engine on them."""
    from calve.engine import Engine

    settings = settings or load()
    with open_lake(settings) as lake, open_store(settings.store.url) as store:
        yield Workplace(settings, store, Engine(tools_on(store, settings.store.url)), lake)


def tools_on(store: Store, url: str) -> "Tools":
    """Return what the engine works with on a store."""
    from calve.capture import find_superseded
    from calve.definition import vocabulary_with
    from calve.engine import AnchoredClock, Blueprints, Cache, Tools

    state = store.engine
    clock = AnchoredClock(state.now, is_shared=not url.startswith("sqlite"))
    return Tools(
        state,
        Blueprints(state.version),
        vocabulary_with(state),
        Cache(),
        clock,
        new_uuid,
        superseded=partial(find_superseded, store.captures),
    )
