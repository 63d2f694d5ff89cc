"""Iceberg's own reference REST catalog, as Maven Central has it: fetched once, started on a free port."""

import fcntl
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests import maven
from tests.services.process import folder_for, free_port, running

from calve.errors import EnvironmentUnfit
from calve.lake import java
from calve.settings import Settings, load

_ROOT = Path(__file__).parents[2]
_POM = Path(__file__).with_suffix(".xml")
_SERVER = "org.apache.iceberg.rest.RESTCatalogServer"


@dataclass(frozen=True, slots=True)
class RestServer:
    """A running REST catalog."""

    port: int
    warehouse: str

    @property
    def uri(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def throwaway_rest(
    warehouse: str | None = None, properties: Mapping[str, str] | None = None, settings: Settings | None = None
) -> Iterator[RestServer]:
    """Start a REST catalog, and remove it in the end with its tables, unless they are in a warehouse of the caller's.

    Args:
        warehouse: where new tables go; without one, into a temporary folder.
        properties: further properties of the catalog that it keeps its tables in, by Iceberg's names.
        settings: say where the jars are kept, and which Java is used.

    Raises:
        EnvironmentUnfit: it cannot be fetched, or does not start.
    """
    settings = settings or load(_ROOT)
    jars = _fetched(settings)
    with folder_for("rest") as folder:
        server = RestServer(free_port(), warehouse or str(folder / "warehouse"))
        given = {
            "rest.port": str(server.port),
            "warehouse": server.warehouse,
            "uri": f"jdbc:sqlite:{folder}/catalog.db",
        }
        told = {
            f"CATALOG_{key.replace('-', '__').replace('.', '_').upper()}": text
            for key, text in {**given, **(properties or {})}.items()
        }
        program = str(java.find(settings.spark.java_home).executable)
        # It takes no address to listen at: it is open to the network for as long as the tests run, and holds nothing.
        words = [program, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", _SERVER]
        with running(words, server.port, folder / "log", os.environ | told):  # noqa: TID251 - handed on
            yield server


def _fetched(settings: Settings) -> Path:
    """Return the folder of the jars, which Maven fetches the first time."""
    version = hashlib.sha256(_POM.read_bytes()).hexdigest()[:8]
    jars = settings.spark.jars_cache.parent / f"iceberg-rest-{version}"
    jars.parent.mkdir(parents=True, exist_ok=True)
    with jars.with_suffix(".lock").open("w") as lock:  # tests run in parallel
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not jars.is_dir():
            _fetch(settings, jars)
    return jars


def _fetch(settings: Settings, jars: Path) -> None:
    """Fetch into a temporary folder, then move it into place as a whole."""
    with tempfile.TemporaryDirectory(dir=jars.parent) as folder:
        target = Path(folder) / "jars"
        words = [*maven.command(settings, Path(folder)), "--quiet", "--batch-mode", "--file", str(_POM)]
        words += ["dependency:copy-dependencies", f"-DoutputDirectory={target}"]
        said = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        if said.returncode:
            raise EnvironmentUnfit(f"Maven could not fetch the REST catalog: {said.stdout}{said.stderr}")
        target.rename(jars)
