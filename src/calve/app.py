"""The composition root: the only module that knows every part."""

import atexit
import os
import secrets
import shutil
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from calve.errors import SettingsInvalid
from calve.settings import Settings, load
from calve.store import Store, open_store

if TYPE_CHECKING:
    from fastapi import FastAPI

    from calve.access import Office
    from calve.access.oidc import Provider
    from calve.access.secrets import Secrets, TableSecrets
    from calve.alerts import Alerts, Message
    from calve.api.access import Entrance
    from calve.capture import Captures
    from calve.delivery import Deliveries
    from calve.engine import Engine, Listener, Runtimes, Tools, Worker, WorkerOptions, WorkerRecord
    from calve.engine import Turn as EngineTurn
    from calve.engine.ports import Place
    from calve.lake import Lake
    from calve.lineage import Lineage
    from calve.telemetry import Metrics
    from calve.telemetry.spans import Spans
    from calve.triggers import Kind, Scheduler, Turn
    from calve.triggers.signals import Signals, ValidThrough
    from calve.triggers.tables import Watcher


class Follower(Protocol):
    """Works beside the scheduler until it is told to stop."""

    def run(self, stop: threading.Event) -> None:
        """Follow."""
        ...


_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
_PROCESS = secrets.token_hex(4)
"""Tells this process from others that had its number."""


def new_id() -> str:
    """Return a fresh random name, short enough to type and free of look-alikes."""
    return "".join(secrets.choice(_LETTERS) for _ in range(8))


def utc_now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)  # noqa: TID251 - the one clock that everything else is handed


@contextmanager
def open_captures(settings: Settings | None = None) -> "Iterator[Captures]":
    """Open the lake and the state database of a project, ready to capture.

    >>> with open_captures() as captures:  # doctest: +SKIP
    ...     change = captures.capture(["db.events"], consumer="daily")
    ...     spark.sql(f"INSERT INTO db.target SELECT * FROM {change.tables[0].relation}")
    ...     captures.commit(change.capture_id)
    """
    settings = settings or load()
    with open_lake(settings) as lake, open_store(settings.store.url) as store:
        yield captures_on(lake, store)


@contextmanager
def open_lake(settings: Settings) -> "Iterator[Lake]":
    """Open the lake of a project; its catalogs are opened when they are first asked for."""
    from calve.lake import Lake

    lake = Lake(settings)
    try:
        yield lake
    finally:
        lake.close()


def captures_on(lake: "Lake", store: Store) -> "Captures":
    """Return what captures changes of a lake, and keeps its checkpoints in a store."""
    from calve.capture import CaptureOptions, Captures

    options = CaptureOptions(lake.settings.capture.namespace, lake.settings.capture.lease_max_age)
    return Captures(lake, store.captures, clock=utc_now, new_id=new_id, options=options)


@contextmanager
def open_deliveries(settings: Settings) -> "Iterator[Deliveries]":
    """Open the lake and the state database of a project, ready to deliver."""
    with open_lake(settings) as lake, open_store(settings.store.url) as store:
        yield deliveries_on(lake, store)


def deliveries_on(lake: "Lake", store: Store) -> "Deliveries":
    """Return what delivers to the tables of a lake exactly once."""
    from calve.delivery import Deliveries

    return Deliveries(lake, store.deliveries, store.captures, clock=utc_now, new_id=new_id)


def new_uuid() -> str:
    """Return a fresh uuid of version 7: ids of one moment lie together, which databases like."""
    value = int(time.time() * 1_000) << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


@dataclass(frozen=True, slots=True)
class Workplace:
    """A project's engine, and what it takes to carry out its tasks."""

    settings: Settings
    store: Store
    engine: "Engine"
    lake: "Lake"

    @property
    def secret(self) -> "Secrets":
        """What gives the text of a secret by its name, where a step runs."""
        return secrets_on(self.store, self.settings)

    def worker(
        self,
        *,
        options: "WorkerOptions | None" = None,
        listener: "Listener | None" = None,
        runtimes: "Runtimes | None" = None,
    ) -> "Worker":
        """Return a worker on this machine, which does nothing until it is run.

        Args:
            options: how it behaves; by the settings, if not given.
            listener: is told of every turn that was written.
            runtimes: what carries out steps, by type; all that is installed, if not given.
        """
        from calve.engine import AnchoredClock, Executor, Worker, WorkerOptions

        settings, tools = self.settings, self.engine.tools
        folder = settings.home / "attempts"
        _forget_old(folder, settings.worker.keep_files.total_seconds())
        runtimes = self._runtimes() if runtimes is None else runtimes
        clock = tools.clock
        assert isinstance(clock, AnchoredClock)  # noqa: S101 - open_workplace made it
        return Worker(
            tools,
            lambda turns, left: Executor(
                tools,
                turns,
                runtimes,
                folder,
                self.secret,
                time.monotonic,
                left,
            ),
            clock=clock,
            identity=this_process(),
            is_gone=is_gone,
            options=options
            or WorkerOptions(
                slots=settings.worker.slots,
                lease=settings.worker.lease.total_seconds(),
                drain=settings.worker.drain.total_seconds(),
            ),
            listener=_observed(settings, listener or (lambda _: None)),
        )

    def companions(self, listener: "Callable[[Turn], None]" = lambda _: None) -> "list[Follower]":
        """Return all that runs where the scheduler does, each to be run in a thread of its own.

        Args:
            listener: is told of every turn of a scheduler.
        """
        return [*self.schedulers(listener), self.watcher(), self.valid_through(), *self.followers()]

    def schedulers(self, listener: "Callable[[Turn], None]" = lambda _: None) -> "list[Scheduler]":
        """Return what starts workflows by their triggers; kinds that are slow to look at do not hold up the others."""
        from calve.triggers import Kind, Scheduler, TriggerKind
        from calve.triggers.signals import SignalTriggers
        from calve.triggers.tables import TableChanges
        from calve.triggers.time import TimeTriggers

        tools, state = self.engine.tools, self.store.triggers
        time_triggers = TimeTriggers(self.settings.triggers.catch_up_limit, partial(self._is_disabled, Kind.TIME))
        signal_triggers = SignalTriggers(self.store.engine, tools.environment, partial(self._is_disabled, Kind.SIGNAL))
        table_triggers = TableChanges(tools, state, captures_on(self.lake, self.store), self.lake)
        quick: dict[Kind, TriggerKind] = {Kind.TIME: time_triggers, Kind.SIGNAL: signal_triggers}
        clock = tools.state.now  # the engine's own stands still while a machine sleeps
        return [
            Scheduler(tools, state, quick, clock=clock, listener=listener),
            Scheduler(tools, state, {Kind.INCREMENTAL: table_triggers}, clock=clock, listener=listener),
        ]

    def watcher(self) -> "Watcher":
        """Return what sees the tables of triggers change."""
        from calve.triggers.tables import Watcher

        interval = self.settings.triggers.table_interval.total_seconds()
        return Watcher(self.lake, self.store.triggers, self.engine.tools.clock, interval)

    def valid_through(self) -> "ValidThrough":
        """Return what sees through which time tables are complete that somebody waits for."""
        from calve.triggers.signals import ValidThrough

        interval = self.settings.triggers.table_interval.total_seconds()
        return ValidThrough(self.lake, self.store.engine, self.engine.tools.clock, interval)

    @property
    def signals(self) -> "Signals":
        """What announces signals, and tells what came of them."""
        from calve.triggers.signals import Signals

        return Signals(self.store.engine, self.engine.tools.clock)

    def _is_disabled(self, kind: "Kind", workflow_id: str) -> bool:
        found = self.engine.state.workflow(workflow_id)
        return found is not None and found.properties.get(f"{kind}_trigger_disabled") is True

    def followers(self) -> "list[Follower]":
        """Return those who follow what happens beside the scheduler, each to be run in a thread of its own."""
        settings = self.settings
        found: list[Follower] = [self.alerts()] if settings.alerts.channels else []
        if settings.lineage.url is not None or settings.lineage.file is not None:
            found.append(self.lineage())
        return found

    def lineage(self) -> "Lineage":
        """Return what tells others which tables steps read and write."""
        from calve.lineage import Lineage, senders_of

        settings, store = self.settings.lineage, self.store
        senders = senders_of(settings, self.secret)
        return Lineage(store.engine, store.positions, store.captures, senders, self.lake.parse, settings.namespace)

    def alerts(self) -> "Alerts":
        """Return what tells people of what happens."""
        from calve.alerts import Alerts, Policy, channels_of

        settings, state = self.settings.alerts, self.engine.state
        channels = channels_of(settings, self.secret)
        return Alerts(state, self.store.alerts, channels, Policy.of(settings), self.engine.tools.clock, settings.tries)

    def _declared(self, place: "Place") -> "list[tuple[str, str]]":
        """Return the targets of the workflow that a step stands in, by stream."""
        from calve.steps.captures.declared import declared_in

        run = self.engine.state.run(place.workflow_id, place.instance_id)
        if run is None:
            return []
        return declared_in(self.engine.tools.blueprints.get(place.workflow_id, run.version_id).workflow)

    def _runtimes(self) -> "Runtimes":
        from calve.steps import Cluster, Services, Surroundings, load_runtimes

        settings = self.settings
        surroundings = Surroundings(
            project=settings.project,
            environment=os.environ,  # noqa: TID251 - handed to the programs that steps run, never read
            python=sys.executable,
            java_home=settings.spark.java_home,
        )
        return load_runtimes(
            Services(
                self.engine.tools.clock,
                surroundings,
                settings,
                self.lake,
                captures_on(self.lake, self.store),
                deliveries_on(self.lake, self.store),
                http_allow=settings.http.allow,
                connections=settings.connections,
                docker_host=settings.docker.host,
                cluster=Cluster(settings.kubernetes.config, settings.kubernetes.context, settings.kubernetes.namespace),
                declared=self._declared,
            )
        )


@contextmanager
def open_workplace(settings: Settings | None = None) -> Iterator[Workplace]:
    """Open the state database and the lake of a project, and the engine on them."""
    from calve.engine import Engine

    settings = settings or load()
    with open_lake(settings) as lake, open_store(settings.store.url) as store:
        yield Workplace(settings, store, Engine(tools_on(store, settings.store.url)), lake)


def web_on(workplace: Workplace, host: str) -> "FastAPI":
    """Return the web application of a project, for a server that listens on an address.

    Raises:
        SettingsInvalid: others could reach it, and the settings do not say how it is protected.
    """
    from calve.api import Services, create_app
    from calve.api.guarding import guarded

    settings, store = workplace.settings, workplace.store
    services = Services(
        workplace.engine,
        captures_on(workplace.lake, store),
        signals=workplace.signals,
        triggers=store.triggers,
        changed=workplace.watcher().changed,
        scrape=metrics_on(workplace).scrape,
        probes={"database": store.problem, "disk": lambda: _room(settings)},
        body_limit=settings.server.max_body,
    )
    return create_app(services, **guarded(entrance_on(store, settings, host)))


def _room(settings: Settings) -> str | None:
    """Return what is wrong with the disk, if anything is."""
    free = shutil.disk_usage(settings.home if settings.home.is_dir() else settings.project).free
    return f"{free} bytes are free in {settings.home}." if free < settings.server.min_free else None


def _observed(settings: Settings, listener: "Listener") -> "Listener":
    """Return a listener that makes spans of turns too, if the settings say where to send them."""
    if settings.telemetry.otlp_url is None:
        return listener
    spans = _spans(settings.telemetry.otlp_url, settings.telemetry.service)

    def heard(turn: "EngineTurn") -> None:
        spans.tell(turn)
        listener(turn)

    return heard


@cache
def _spans(url: str, service: str) -> "Spans":
    """Return what sends spans, one for each process; what is left is sent when the process ends."""
    from calve.telemetry.spans import Spans, otlp_processor

    spans = Spans(otlp_processor(url), service)
    atexit.register(spans.close)
    return spans


def metrics_on(workplace: Workplace) -> "Metrics":
    """Return the metrics of a project, for whoever asks for them over HTTP."""
    from calve.telemetry import Metrics

    return Metrics(workplace.store.telemetry, workplace.engine.tools.clock)


def test_message(channel: str, to: tuple[str, ...]) -> "Message":
    """Return a message that tells nothing but that a channel works."""
    from calve.alerts.model import Alert, Message, Route
    from calve.definition.model.alerting import AlertType

    at = int(time.time() * 1_000)
    text = "If you read this, the channel works. Nothing has happened."
    title = f"A test of the channel {channel}"
    return Message(Alert(f"test/{new_id()}", AlertType.RUN_SUCCESS, "", at, title=title, text=text), Route(channel, to))


def secrets_on(store: Store, settings: Settings) -> "Secrets":
    """Return what looks for secrets, in the places and the order that the settings say."""
    from calve.access.secrets import Backend, FileSecrets, GivenSecrets, Secrets

    made: dict[str, Callable[[], Backend]] = {
        "env": lambda: GivenSecrets(settings.secrets),
        "file": lambda: FileSecrets(settings.secret_store.folder or settings.home / "secrets"),
        "table": lambda: secret_table_on(store, settings),
    }
    return Secrets([made[name]() for name in settings.secret_store.backends])


def secret_table_on(store: Store, settings: Settings, *, makes_key: bool = False) -> "TableSecrets":
    """Return the encrypted table of secrets; its key may be made where there is none."""
    from calve.access.secrets import TableSecrets, make_key, parse_key, read_key

    given = settings.secret_store

    def key() -> bytes | None:
        if given.key is not None:
            return parse_key(given.key)
        found = read_key(given.key_file)
        return make_key(given.key_file, secrets.token_bytes) if found is None and makes_key else found

    return TableSecrets(store.access, key)


def office_on(store: Store) -> "Office":
    """Return what keeps users and tokens."""
    from calve.access import Office

    return Office(store.access, now_ms, secrets.token_bytes)


def entrance_on(store: Store, settings: Settings, host: str) -> "Entrance":
    """Return what guards a server that listens on an address.

    Raises:
        SettingsInvalid: others could reach it, and the settings do not say how it is protected.
    """
    from calve.access import Door, Rate
    from calve.api.access import Entrance
    from calve.api.origins import rules

    access = settings.access
    life = int(access.session.total_seconds() * 1_000)
    return Entrance(
        Door(store.access, now_ms, secrets.token_bytes, life),
        office_on(store),
        rules(access, host),
        Rate(access.requests_per_second, time.monotonic),
        _provider(store, settings),
    )


def bootstrap_on(store: Store, settings: Settings, host: str) -> str | None:
    """Return a token that makes the first administrator, to be shown once; None if nobody has to sign in, or can."""
    from calve.access import By, Principal, PrincipalKind
    from calve.api.origins import rules

    if rules(settings.access, host).is_open:
        return None
    by = By(Principal("server", PrincipalKind.LOOPBACK), "server")
    return office_on(store).bootstrap_token(by, life=60 * 60_000)


def _provider(store: Store, settings: Settings) -> "Provider | None":
    from calve.access.oidc import Client, Provider
    from calve.api.guarding import HttpFetch

    given = settings.access.oidc
    if given.issuer is None:
        return None
    if given.redirect_url is None:
        raise SettingsInvalid(
            "access.oidc.redirect_url is not set.", remedy="Set it to https://HOST/api/v3/access/oidc/callback."
        )
    name, look_up = given.client_secret, secrets_on(store, settings)
    client = Client(
        issuer=given.issuer,
        client_id=given.client_id,
        redirect_url=given.redirect_url,
        scopes=given.scopes,
        name_claim=given.name_claim,
        groups_claim=given.groups_claim,
        roles=given.roles,
        secret=None if name is None else lambda: look_up(name),
    )
    return Provider(client, HttpFetch(), now_ms, secrets.token_bytes)


def now_ms() -> int:
    """Return the time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def tools_on(store: Store, url: str) -> "Tools":
    """Return what the engine works with on a store."""
    from calve.definition import installed
    from calve.engine import AnchoredClock, Blueprints, Cache, Tools

    state = store.engine
    clock = AnchoredClock(state.now, is_shared=not url.startswith("sqlite"))
    return Tools(state, Blueprints(state.version), installed(), Cache(), clock, new_uuid)


def _forget_old(folder: Path, seconds: float) -> None:
    """Remove the folders of attempts that nothing has been written to for a long time."""
    for attempt in folder.iterdir() if folder.is_dir() else ():
        if time.time() - attempt.stat().st_mtime > seconds:
            shutil.rmtree(attempt, ignore_errors=True)


def this_machine() -> str:
    """Return a name of this machine since it was started: process numbers mean something only there."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    since = boot.read_text().strip()[:8] if boot.exists() else ""
    return f"{socket.gethostname()}/{since}"


def this_process() -> "WorkerRecord":
    """Return how a worker of this process is known to others."""
    from calve.engine import WorkerRecord

    return WorkerRecord("", f"{this_machine()}/{_PROCESS}", os.getpid(), 0, 0, 0)


def is_gone(worker: "WorkerRecord") -> bool:
    """Tell whether a worker's process is gone for sure: it was on this machine, and is no more."""
    machine, _, process = worker.host.rpartition("/")
    if machine != this_machine():
        return False
    if worker.pid == os.getpid():
        return process != _PROCESS  # a process that had our number before us, as in a container that was restarted
    try:
        os.kill(worker.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
