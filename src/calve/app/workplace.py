"""A project's workplace: its settings, store, engine and lake, and whoever works on them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from calve.app.attempt_folders import AttemptFolders, folders_on
from calve.app.capturing import has_namespaces, may_read, open_lake, table_rights_on
from calve.app.following import Follower, alerts_on, lineage_on
from calve.app.ids import new_uuid
from calve.app.retaining import pruner_on
from calve.app.scheduling import schedulers_on, valid_through_on, watcher_on
from calve.app.secret_store import secrets_on
from calve.app.working import runtimes_on, worker_on
from calve.errors import StoreUnavailable
from calve.lake import Files
from calve.settings import Settings, StepLogSettings, load
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


Result = TypeVar("Result")
Wait = Callable[[StoreUnavailable], None]
"""Says why the state database does not answer, and waits a while."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """A project's engine, and what it takes to carry out its tasks."""

    settings: Settings
    store: Store
    engine: "Engine"
    lake: "Lake"
    wait: "Wait | None" = None
    """Is called while the database restarts, where this process waits for it."""

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

    def attempt_folders(self) -> AttemptFolders:
        """Return the folders in which steps have run on this machine."""
        return folders_on(self.settings, self.store.engine)

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
            patiently(each.begin, self.wait)  # here, and not in their threads: a worker may be faster
        return [*found]


@contextmanager
def open_workplace(settings: Settings | None = None, *, wait: Wait | None = None) -> Iterator[Workplace]:
    """Open the state database and the lake of a project, and the engine on them.

    Args:
        settings: of the project.
        wait: is called while the database restarts, and returns when it is time to try again; without it, a database
            that does not answer is an error at once.
    """
    from calve.engine import Engine

    settings = settings or load()
    with open_lake(settings) as lake, patiently(lambda: open_store(settings.store.url), wait) as store:
        tools = patiently(lambda: tools_on(store, settings.store.url, settings.project, settings.logs), wait)
        tools = replace(
            tools,
            has_namespaces=partial(has_namespaces, store, settings),
            may_read_table=partial(may_read, lake, table_rights_on(lake, store)),
        )
        yield Workplace(settings, store, Engine(tools), lake, wait)


def patiently(what: Callable[[], Result], wait: Wait | None) -> Result:
    """Do something that needs the state database, as soon as that is back where it restarts."""
    while True:
        try:
            return what()
        except StoreUnavailable as error:
            if wait is None or not error.context.get("is_passing"):
                raise
            wait(error)


def tools_on(store: Store, url: str, project: Path | None = None, logs: StepLogSettings | None = None) -> "Tools":
    """Return what the engine works with on a store; it looks for files of steps in the folder of the project."""
    from calve.capture import find_superseded
    from calve.definition import ProjectFiles, vocabulary_with
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
        files=None if project is None else ProjectFiles(project, project),
        log_files=Files(logs.properties if logs else None),
        superseded=partial(find_superseded, store.captures),
    )
