"""A whole production in miniature: PostgreSQL, a REST catalog, S3, a Spark cluster, schedulers, servers and workers."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from tests.faults.proxy import Mode, Proxy
from tests.memory_folders import memory
from tests.scale.strikes import Place, place_of
from tests.services.iceberg_rest import throwaway_rest
from tests.services.s3 import throwaway_s3
from tests.services.spark_cluster import connect_program, spark_cluster, wait_for_port

from calve.lake import java
from calve.settings import FILE, Settings, load
from calve.testing.postgres import Postgres, throwaway_postgres

WORKERS, SCHEDULERS, SERVERS = 3, 2, 2
_DOWN_SECONDS = 0.5
"""How long something that died stays dead."""
_TAIL = 8192
_TOML = """
[store]
url = "{store}"

[catalogs.lake]
type = "rest"
uri = "{rest}"
{s3}

[spark]
remote = "{spark}"

[spark.conf]
"spark.sql.shuffle.partitions" = 2

[worker]
slots = 1
lease = "3s"
tries = 1000

[triggers]
table_interval = "1s"
"""
_STEP = """
SELECT attempt.step_id
FROM task JOIN attempt ON attempt.uuid = task.attempt_uuid JOIN worker ON worker.uuid = task.owner
WHERE worker.pid = %s AND attempt.ended_at IS NULL AND attempt.step_id IN ('capture', 'write', 'commit')
"""
"""What a worker executes, or had claimed when it was killed."""


@dataclass
class Member:
    """A process that is started again when it dies."""

    name: str
    argv: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    port: int | None = None
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def log(self) -> Path:
        """What it prints."""
        return self.folder / f"{self.name}.log"

    def start(self) -> None:
        """Start it."""
        with self.log.open("ab", buffering=0) as log:
            log.write(b"failpoint process.started\n")  # what an earlier process has passed tells nothing of this one
            # A group of its own: Ctrl-C is for the driver, which ends them all.
            self.process = subprocess.Popen(
                self.argv, cwd=self.folder, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self) -> bool:
        """Kill it, with what it has started in its group; tell whether it lived."""
        if self.process is None or self.process.poll() is not None:
            return False
        os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.wait() == -signal.SIGKILL

    def points(self) -> list[str]:
        """Return the last failpoints that it has passed since it was started."""
        with self.log.open("rb") as log:
            log.seek(max(log.seek(0, os.SEEK_END) - _TAIL, 0))
            lines = log.read().decode(errors="replace").splitlines()
        return [line.removeprefix("failpoint ") for line in lines if line.startswith("failpoint ")]


@dataclass
class House:
    """Everything that runs, and what can be killed."""

    folder: Path
    direct: Settings
    """Settings that reach the lake without the proxies, to write rows and to look at the result."""
    postgres: Postgres
    catalog: Proxy
    storage: Proxy
    members: list[Member]
    _state: "psycopg.Connection[tuple[str]] | None" = None
    _is_over: threading.Event = field(default_factory=threading.Event)

    @property
    def workers(self) -> list[Member]:
        """The workers."""
        return [member for member in self.members if member.name.startswith("worker")]

    def place(self, worker: Member) -> Place | None:
        """Return where a worker is, or was when it was killed; None if that cannot be known now."""
        if worker.process is None:
            return None
        try:
            if self._state is None or self._state.closed:
                url = self.postgres.url_at(self.postgres.port, "calve").replace("+psycopg", "")
                self._state = psycopg.connect(url, autocommit=True, connect_timeout=2)
            row = self._state.execute(_STEP, (worker.process.pid,)).fetchone()
        except psycopg.Error:
            return None
        return place_of(row[0] if row else None, worker.points())

    def strike(self, victim: str) -> bool:
        """Kill a part of the house, or cut it off; tell whether it was there to be struck."""
        match victim:
            case "postgres":
                self.postgres.restart()
                return True
            case "catalog" | "storage":
                proxy = self.catalog if victim == "catalog" else self.storage
                proxy.mode = Mode.REFUSE
                proxy.cut_all()
                time.sleep(_DOWN_SECONDS)
                proxy.mode = Mode.PASS
                return True
            case _:
                return next(member for member in self.members if member.name == victim).kill()

    def look_after(self) -> None:
        """Start again what has died, until the house is closed."""
        while not self._is_over.wait(_DOWN_SECONDS):
            for member in self.members:
                if member.process is None or member.process.poll() is not None:
                    member.start()

    def close(self) -> None:
        """End everything."""
        self._is_over.set()
        if self._state is not None:
            self._state.close()
        for member in self.members:
            member.kill()


@contextmanager
def house(folder: Path) -> Iterator[House]:
    """Start everything in a folder; end it all in the end."""
    with ExitStack() as stack:
        postgres = stack.enter_context(throwaway_postgres(within=memory()))
        postgres.database("calve")
        s3 = stack.enter_context(throwaway_s3())
        warehouse = s3.make_bucket("lake")
        rest = stack.enter_context(throwaway_rest(f"{warehouse}/warehouse", _for_java(s3.properties)))
        catalog, storage = stack.enter_context(Proxy(rest.port)), stack.enter_context(Proxy(s3.port))

        def settings(place: Path, uri: int, endpoint: int, spark: str) -> Settings:
            place.mkdir(exist_ok=True)
            given = "\n".join(f'"{key}" = "{value}"' for key, value in s3.properties_at(endpoint).items())
            store = postgres.url_at(postgres.port, "calve")
            text = _TOML.format(store=store, rest=f"http://127.0.0.1:{uri}", s3=given, spark=spark)
            (place / FILE).write_text(text)
            return load(place, {})

        project = folder / "project"
        cluster = folder / "cluster"
        cluster.mkdir()
        direct = settings(folder / "direct", rest.port, s3.port, "sc://localhost:1")
        through = settings(project, catalog.port, storage.port, "sc://localhost:1")
        home = java.find(direct.spark.java_home).home
        master = stack.enter_context(spark_cluster(cluster, home))
        spark = connect_program(through, folder / "connect", master)
        settings(project, catalog.port, storage.port, spark.address)
        direct = settings(folder / "direct", rest.port, s3.port, spark.address)
        connect = Member("spark", spark.argv, project, spark.environment, spark.port)
        made = House(folder, direct, postgres, catalog, storage, [connect])
        stack.callback(made.close)
        connect.start()
        wait_for_port(spark.port, "The Connect server")
        for kind, count in (("worker", WORKERS), ("scheduler", SCHEDULERS), ("server", SERVERS)):
            made.members += [_calve(kind, number, project) for number in range(1, count + 1)]
        keeper = threading.Thread(target=made.look_after, daemon=True)
        keeper.start()
        stack.callback(keeper.join)
        stack.callback(made._is_over.set)
        yield made


def _calve(kind: str, number: int, project: Path) -> Member:
    words = (sys.executable, "-m", "calve", kind, *(("--port", "0") if kind == "server" else ()))
    armed = {"CALVE_FAILPOINTS": "*:1:count"} if kind == "worker" else {}
    return Member(f"{kind}{number}", words, project, {**os.environ, **armed})  # noqa: TID251 - handed on


def _for_java(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a store as Iceberg's Java reads them."""
    return {
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "client.region": properties["s3.region"],
        "s3.path-style-access": "true",
        **{key: text for key, text in properties.items() if key != "s3.region"},
    }
