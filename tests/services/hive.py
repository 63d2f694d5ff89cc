"""Temporary Hive metastores on a free port of loopback: 2.3 of the jars that PySpark brings, and 4.0 from Maven."""

import os
import socket
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from tests import maven
from tests.services.process import folder_for, free_port

from calve.errors import EnvironmentUnfit
from calve.lake import java
from calve.settings import Settings, load

_ROOT = Path(__file__).parents[2]
_CACHE = _ROOT / ".cache" / "hive"
_HIVE_4 = "hive-standalone-metastore-server", "4.0.1"
_MORE = (
    "commons-collections:commons-collections:3.2.2",
    "org.apache.httpcomponents:httpclient:4.5.13",
    "org.apache.hadoop:hadoop-hdfs:3.4.2",
    "org.slf4j:slf4j-api:1.7.36",
)
"""Hive 4 expects them of Hadoop; PySpark does not bring them, or newer ones."""
_START, _STOP = 90, 10
_LOGS = """
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = Console
appender.file.name = file
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c: %m%n%throwable
"""


class Version(Enum):
    """Which metastore."""

    OF_SPARK = "2.3"
    HIVE_4 = "4.0"


@dataclass(slots=True)
class HiveMetastore:
    """A running metastore."""

    port: int
    folder: Path
    words: list[str] = field(default_factory=list)
    _process: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def uri(self) -> str:
        """Its address."""
        return f"thrift://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it listens.

        Raises:
            EnvironmentUnfit: it does not.
        """
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(self.words, cwd=self.folder, stdout=log, stderr=log)
        end = time.monotonic() + _START
        while not _listens(self.port):
            if self._process.poll() is not None or time.monotonic() > end:
                raise EnvironmentUnfit(f"The metastore did not start: {(self.folder / 'log').read_text()[-3000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop it; what it has in memory is lost."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(_STOP)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None


@contextmanager
def throwaway_metastore(version: Version, settings: Settings | None = None) -> Iterator[HiveMetastore]:
    """Start a metastore, and remove it in the end."""
    settings = settings or load(_ROOT)
    with folder_for("hive") as folder:
        (folder / "log4j2.properties").write_text(_LOGS)
        metastore = HiveMetastore(port := free_port(), folder)
        try:
            metastore.words = _command(version, settings, folder, port)
            metastore.start()
            yield metastore
        finally:
            metastore.stop()


def _listens(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


def _command(version: Version, settings: Settings, folder: Path, port: int) -> list[str]:
    program = str(java.find(settings.spark.java_home).executable)
    match version:
        case Version.OF_SPARK:
            return [*_java(program, folder, "memory:metastore;create=true"), *_of_spark(folder, port)]
        case Version.HIVE_4:
            return _of_hive_4(program, settings, folder, port)


def _java(program: str, folder: Path, database: str) -> list[str]:
    """Return how to start Java with what both need."""
    logs = folder / "log4j2.properties"
    opened = (f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("net", "lang", "util"))
    return [
        *(program, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *opened),
        *(f"-Dderby.system.home={folder}", f"-Dlog4j2.configurationFile={logs}"),
        *(f"-D{name}.log4j.file={logs}" for name in ("hive", "metastore")),
        *(f"-D{name}.async.log.enabled=false" for name in ("hive", "metastore")),
        f"-Djavax.jdo.option.ConnectionURL=jdbc:derby:{database}",
        "-Djavax.jdo.option.ConnectionDriverName=org.apache.derby.jdbc.EmbeddedDriver",
    ]


def _of_spark(folder: Path, port: int) -> list[str]:
    return [
        "-Ddatanucleus.connectionPoolingType=none",
        *("-Ddatanucleus.schema.autoCreateAll=true", "-Dhive.metastore.schema.verification=false"),
        f"-Dhive.metastore.warehouse.dir=file:{folder}/warehouse",
        *("-cp", f"{_spark_jars()}/*", str(Path(__file__).with_name("Metastore.java")), "-p", str(port)),
    ]


def _of_hive_4(program: str, settings: Settings, folder: Path, port: int) -> list[str]:
    """Create the schema; return how to start the metastore on it."""
    home = _fetched(settings)
    # What it expects of an installed Hadoop.
    patterns = [f"{name}-*.jar" for name in ("hadoop-client", "commons", "javax.servlet-api", "gson")]
    hadoop = ":".join(str(jar) for pattern in patterns for jar in sorted(_spark_jars().glob(pattern)))
    start = [
        *_java(program, folder, f"{folder}/metastore;create=true"),
        *("-Ddatanucleus.schema.autoCreateAll=false", f"-Dmetastore.warehouse.dir=file:{folder}/warehouse"),
        *("-cp", f"{home}/lib/*:{hadoop}"),
    ]
    tool = "org.apache.hadoop.hive.metastore.tools.schematool.MetastoreSchemaTool"
    environment = {**os.environ, "METASTORE_HOME": str(home)}  # noqa: TID251 - handed on
    words = [*start, tool, "-dbType", "derby", "-initSchema"]
    said = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if said.returncode:
        raise EnvironmentUnfit(f"The schema of the metastore cannot be created: {said.stdout}{said.stderr}")
    return [*start, "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port)]


def _spark_jars() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent / "jars"


def _fetched(settings: Settings) -> Path:
    """Return the folder of Hive 4's metastore, which Maven fetches the first time (79 MB)."""
    name, version = _HIVE_4
    kept = _CACHE / f"{name}-{version}"
    if not kept.is_dir():
        _CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_CACHE) as folder:
            for artifact in (f"org.apache.hive:{name}:{version}:tar.gz:bin", *_MORE):
                _copy(settings, artifact, Path(folder))
            with tarfile.open(next(Path(folder).glob("*.tar.gz"))) as packed:
                packed.extractall(folder, filter="data")
            home = next(each for each in Path(folder).iterdir() if each.is_dir())
            for jar in Path(folder).glob("*.jar"):
                jar.rename(home / "lib" / jar.name)
            home.rename(kept)
    return kept


def _copy(settings: Settings, artifact: str, folder: Path) -> None:
    words = [*maven.command(settings, folder), "--quiet", "--batch-mode", "dependency:copy"]
    words += [f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
    said = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if said.returncode:
        raise EnvironmentUnfit(f"Maven cannot fetch {artifact}: {said.stdout}{said.stderr}")
