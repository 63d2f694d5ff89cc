"""Where the peers are installed: they conflict with each other and with us, so each has an environment of its own.

An environment is made from the dependency group ``peers-<environment>`` of ``pyproject.toml``, under ``bench/.peers``.
"""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

BENCH = Path(__file__).parents[1]
FOLDER = BENCH / ".peers"


class PeerMissing(Exception):
    """The peer is not installed here."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One way to run a chain of steps in another engine."""

    environment: str
    module: str
    includes: str
    most_steps: int | None = None

    @property
    def home(self) -> Path:
        """The folder of the environment."""
        return FOLDER / self.environment

    @property
    def stamp(self) -> Path:
        """The file that says the environment was made to the end."""
        return self.home / ".installed"

    @property
    def python(self) -> Path:
        """The interpreter that has the peer."""
        return self.home / "bin" / "python"


PEERS = {
    "prefect": Peer(
        "prefect",
        "peers.prefect",
        "a flow until it returns, on its own server with SQLite; what it sends to be recorded later is not waited for",
    ),
    "prefect-recorded": Peer(
        "prefect", "peers.prefect_recorded", "the same flow until its server has recorded that every task completed"
    ),
    "dagster": Peer("dagster", "peers.dagster", "execute_in_process: one process, runs and events in SQLite"),
    "airflow": Peer("airflow", "peers.airflow", "dag.test(): one process, no scheduler and no executor, SQLite"),
    "airflow-scheduler": Peer(
        "airflow",
        "peers.airflow_scheduler",
        "scheduler, LocalExecutor, API server and DAG processor, SQLite; from the request until the run has ended",
        most_steps=20,
    ),
}


def environment(name: str) -> Path | None:
    """Return the interpreter that has a peer, or None where it is not installed."""
    peer = PEERS[name]
    return peer.python if peer.stamp.exists() else None


def missing(names: Sequence[str]) -> list[str]:
    """Return those of the peers that are not installed here."""
    return [name for name in names if environment(name) is None]


def install(names: Sequence[str]) -> None:
    """Make the environments of some peers, or bring them to what ``pyproject.toml`` asks for."""
    for peer in {PEERS[name].environment: PEERS[name] for name in names}.values():
        _make(peer)


def _make(peer: Peer) -> None:
    peer.stamp.unlink(missing_ok=True)
    if not peer.python.exists():
        _uv("venv", "--python", sys.executable, str(peer.home))
    _uv("pip", "install", "--python", str(peer.python), "--group", f"peers-{peer.environment}")
    peer.stamp.touch()


def _uv(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "uv", *arguments, "--quiet"], check=True, cwd=BENCH.parent)  # noqa: S603
