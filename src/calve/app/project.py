"""A project: its settings, state database, lake and engine, and the services that work on them."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from calve.app.access import accounts_on, secret_table_on, secrets_on
from calve.app.attempt_folders import AttemptFolders, folders_on
from calve.app.captures import (
    captures_on,
    deliveries_on,
    has_namespaces,
    may_read,
    open_lake,
    table_rights_on,
    tables_on,
)
from calve.app.host import new_uuid, now_ms
from calve.app.scheduler import (
    BackgroundService,
    alerts_on,
    lineage_keeper_on,
    lineage_on,
    pruner_on,
    schedulers_on,
    test_message,
    valid_through_on,
    watcher_on,
)
from calve.app.worker import runtimes_on, worker_on
from calve.errors import RequestInvalid, StoreUnavailable
from calve.settings import Settings, StepLogSettings, load
from calve.store import Store, open_store

if TYPE_CHECKING:
    from calve.access import Accounts, Actor, SealedSecret, Secrets
    from calve.alerts import Alerts, MessageStatus, StoredMessage
    from calve.capture import Captures, Collected
    from calve.capture.inspection import Tables
    from calve.delivery import Deliveries
    from calve.engine import Engine, Listener, Runtimes, Tools, Worker, WorkerOptions
    from calve.lake import Lake
    from calve.lineage import EdgeState, Lineage
    from calve.retention import Pruner
    from calve.triggers import Scheduler, SchedulerRound, TriggerState
    from calve.triggers.signals import Signals
    from calve.triggers.tables import Watcher

Result = TypeVar("Result")
Wait = Callable[[StoreUnavailable], None]
"""Reports why the state database does not answer, and waits a moment."""


class Project:
    """The parts of a project. Each is imported and opened when it is first used: most commands need only a few.

    It implements ``calve.operations.Services``, which carry out operations.
    """

    def __init__(self, settings: Settings, store: Store, lake: "Lake", wait: "Wait | None" = None) -> None:
        self.settings = settings
        self.store = store
        self.lake = lake
        self.wait = wait
        """Called while the database restarts, if this process waits for it."""

    @cached_property
    def engine(self) -> "Engine":
        """The engine: workflows and their instances."""
        from calve.engine import Engine

        settings, store, lake = self.settings, self.store, self.lake
        tools = patiently(lambda: tools_on(store, settings.store.url, settings.project, settings.logs), self.wait)
        tools = replace(
            tools,
            has_namespaces=partial(has_namespaces, store, settings),
            may_read_table=partial(may_read, lake, table_rights_on(lake, store)),
        )
        return Engine(tools)

    @cached_property
    def captures(self) -> "Captures":
        """Captures of changes, and checkpoints."""
        return captures_on(self.lake, self.store)

    @cached_property
    def tables(self) -> "Tables":
        """Tables: their history, and who reads and writes them."""
        return tables_on(self.lake, self.store)

    @property
    def lineage(self) -> "EdgeState":
        """Which steps read and wrote which tables."""
        return self.store.lineage

    @cached_property
    def deliveries(self) -> "Deliveries":
        """Deliveries to target tables."""
        return deliveries_on(self.lake, self.store)

    @property
    def triggers(self) -> "TriggerState":
        """The triggers of active versions."""
        return self.store.triggers

    @property
    def changed(self) -> "Callable[[str, Callable[[str], bool]], int]":
        """Let the triggers of some workflows check a table now; return how many watch it."""
        return self.watcher().changed

    @property
    def accounts(self) -> "Accounts":
        """Users, tokens and the audit log."""
        return accounts_on(self.store)

    @property
    def administration(self) -> "ProjectAdministration":
        """The administration of the project."""
        return ProjectAdministration(self)

    @property
    def secrets(self) -> "Secrets":
        """The secrets of the project, by name."""
        return secrets_on(self.store, self.settings)

    @property
    def signals(self) -> "Signals":
        """Signals: announces them, and returns what they started."""
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
            options: the options of the worker; by default, those of the settings.
            listener: called with every turn that was written.
            runtimes: the runtimes by type of step; by default, all that are installed.
        """
        tools, settings = self.engine.tools, self.settings
        if runtimes is None:
            runtimes = runtimes_on(self.store, self.lake, tools, settings)
        return worker_on(tools, settings, self.secrets, runtimes, options=options, listener=listener)

    def background_services(
        self, listener: "Callable[[SchedulerRound], None]" = lambda _: None, served: str = ""
    ) -> list[BackgroundService]:
        """Return the schedulers and the services beside them, each of which needs a thread of its own.

        Args:
            listener: called with every round of a scheduler.
            served: the address at which this process serves the web UI, if it does.
        """
        from calve.triggers.tables import LagSampler

        valid_through = valid_through_on(self.store, self.lake, self.engine.tools, self.settings.triggers)
        lag = LagSampler(self.tables.take_samples)
        return [*self.schedulers(listener), self.watcher(), lag, valid_through, *self.followers(served), self.pruner()]

    def schedulers(self, listener: "Callable[[SchedulerRound], None]" = lambda _: None) -> "list[Scheduler]":
        """Return the schedulers, which start workflows by their triggers.

        Args:
            listener: called with every round.
        """
        return schedulers_on(self.store, self.lake, self.engine.tools, self.settings.triggers, listener)

    def watcher(self) -> "Watcher":
        """Return the watcher of the tables that triggers refer to."""
        return watcher_on(self.store, self.lake, self.engine.tools, self.settings.triggers)

    def attempt_folders(self) -> AttemptFolders:
        """Return the working folders of steps on this machine."""
        return folders_on(self.settings, self.store.engine)

    def pruner(self) -> "Pruner":
        """Return the pruner, which deletes records older than their retention."""
        return pruner_on(self.store, self.engine.tools, self.settings)

    def followers(self, served: str = "") -> list[BackgroundService]:
        """Return the services that follow events from now on: lineage, and alerts if the settings have channels."""
        settings = self.settings
        found: list[Alerts | Lineage] = [lineage_keeper_on(self.store, self.lake)]
        if settings.alerts.channels:
            server = settings.public_url(served)
            found.append(alerts_on(self.store, self.engine.tools, settings.alerts, self.secrets, server))
        if settings.lineage.is_wanted:
            found.append(lineage_on(self.store, self.lake, settings.lineage, self.secrets))
        for each in found:
            patiently(each.begin, self.wait)  # not in their threads: a worker may write events before those start
        return [*found]


@dataclass(frozen=True, slots=True)
class ProjectAdministration:
    """The alerts, secrets, old records and garbage of a project."""

    project: Project

    @property
    def instances_kept(self) -> int | None:
        """How many seconds instances are kept after their end; None: forever."""
        kept = self.project.settings.retention.instances
        return None if kept is None else int(kept.total_seconds())

    @property
    def is_worked(self) -> bool:
        """Whether a worker is alive, so that started instances run."""
        if self.project.settings.store.url.startswith("sqlite"):
            return self.project.store.has_scheduler()
        return bool(self.project.engine.state.workers())

    def alerts(self, status: "MessageStatus | None", limit: int) -> "Sequence[StoredMessage]":
        """Return alerts, newest first."""
        return self.project.store.alerts.messages(status=status, limit=limit)

    def test_channel(self, channel: str, to: Sequence[str]) -> str:
        """Send a test message on a channel; return its id.

        Raises:
            RequestInvalid: the settings have no such channel.
        """
        from calve.alerts import channels_of

        settings = self.project.settings
        known = channels_of(settings.alerts, self.project.secrets, settings.public_url())
        if channel not in known:
            names = ", ".join(known) or "none"
            raise RequestInvalid(
                f"Channel {channel} does not exist (channels: {names}).",
                remedy=f"Add [alerts.channels.{channel}] to calve.toml.",
            )
        message = test_message(channel, tuple(to))
        known[channel].send(message, message.alert.at)
        return message.id

    def secrets(self) -> "Sequence[SealedSecret]":
        """Return the secrets of the encrypted table."""
        return self.project.store.access.secrets()

    def set_secret(self, name: str, text: str, actor: "Actor") -> None:
        """Store a secret in the encrypted table; create the key if there is none."""
        table = secret_table_on(self.project.store, self.project.settings, makes_key=True)
        table.put(name, text, actor, now_ms(), secrets.token_bytes)

    def delete_secret(self, name: str, actor: "Actor") -> None:
        """Remove a secret from the encrypted table."""
        secret_table_on(self.project.store, self.project.settings).delete(name, actor, now_ms())

    def prune(self, *, is_dry_run: bool) -> dict[str, Any]:
        """Delete records older than their retention, and old working folders on this machine; or only count them."""
        pruner, folders = self.project.pruner(), self.project.attempt_folders()
        found = pruner.survey() if is_dry_run else pruner.prune()
        ages = pruner.ages.used
        return {
            "is_dry_run": is_dry_run,
            "kinds": [
                {"kind": kind.value, "older_than_seconds": ages[kind] // 1_000, "rows": rows}
                for kind, rows in found.items()
            ],
            "attempt_folders": folders.sweep(is_dry_run=is_dry_run),
            "attempt_folders_older_than_seconds": int(folders.keep_seconds),
        }

    def set_valid_through(self, table: str, time: str) -> int:
        """Store up to which time a table is complete; return it in milliseconds."""
        from calve.triggers.signals import set_valid_through

        return set_valid_through(self.project.lake, table, time)

    def collect_garbage(self, grace: timedelta) -> "tuple[Sequence[Collected], Sequence[object]]":
        """Delete what captures and jobs left behind; return the captures and the branches."""
        return self.project.captures.collect_garbage(grace), list(self.project.deliveries.collect(grace))


@contextmanager
def open_project(settings: Settings | None = None, *, wait: Wait | None = None) -> Iterator[Project]:
    """Open a project: its state database and its lake, and other parts when they are used.

    Args:
        settings: the settings of the project; by default, of the current folder.
        wait: called while the database restarts, returns when it is time to try again; without it, a database that
            does not answer is an error.
    """
    settings = settings or load()
    with open_lake(settings) as lake, patiently(lambda: open_store(settings.store.url), wait) as store:
        yield Project(settings, store, lake, wait)


def patiently(what: Callable[[], Result], wait: Wait | None) -> Result:
    """Call a function that needs the state database, and repeat the call while the database restarts."""
    while True:
        try:
            return what()
        except StoreUnavailable as error:
            if wait is None or not error.context.get("is_passing"):
                raise
            wait(error)


def tools_on(store: Store, url: str, project: Path | None = None, logs: StepLogSettings | None = None) -> "Tools":
    """Return the tools of the engine, which read the files of steps in the folder of the project."""
    from calve.capture import find_superseded
    from calve.definition import ProjectFiles, vocabulary_with
    from calve.engine import AnchoredClock, Blueprints, Cache, Tools
    from calve.lake import Files

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
