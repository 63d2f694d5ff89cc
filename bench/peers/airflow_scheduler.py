"""Times the same DAG as ``airflow`` in a whole Airflow: scheduler, LocalExecutor, API server, DAG processor, SQLite."""

import json
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError

from peers import airflow
from peers.timing import Round, report, require, timed, wait_until

PROGRAMS = ("api-server", "scheduler", "dag-processor")
RUNS = "/api/v2/dags/chain/dagRuns"
ENDED = ("success", "failed")
GRACE = 30


def settings(home: Path) -> dict[str, str]:
    """Return what makes Airflow serve on a free port of this machine, and ask no one who they are."""
    port = _free_port()
    return airflow.settings(home) | {
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "false",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "true",
    }


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Server:
    """Airflow's REST interface, as far as a run needs it."""

    def __init__(self, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}"
        self._headers = {"Content-Type": "application/json"}

    def call(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Return the answer to a GET, or to a POST where there is a body."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._address + path, data, self._headers)  # noqa: S310 - our own address
        with urllib.request.urlopen(request, timeout=GRACE) as answer:  # noqa: S310 - the same
            return json.load(answer)

    def is_up(self) -> bool:
        """Tell whether it answers, and keep the token that it hands out."""
        try:
            self._headers["Authorization"] = f"Bearer {self.call('/auth/token')['access_token']}"
        except (URLError, ConnectionError):
            return False
        return True

    def knows_the_chain(self) -> bool:
        """Tell whether the DAG was found by now."""
        return any(dag["dag_id"] == "chain" for dag in self.call("/api/v2/dags")["dags"])

    def run(self, steps: int) -> None:
        """Start the DAG, wait until it has ended, and see that every task ran."""
        run = f"{RUNS}/{self.call(RUNS, {'logical_date': None})['dag_run_id']}"
        wait_until(lambda: self.call(run)["state"] in ENDED, "Airflow has ended the run", every=0.1)
        tasks = self.call(f"{run}/taskInstances?limit={steps}")["task_instances"]
        require([task["state"] for task in tasks] == ["success"] * steps, "the DAG did not run every task")


@contextmanager
def started(program: str, home: Path) -> Iterator[None]:
    """Keep one of Airflow's programs running."""
    with (home / f"{program}.log").open("w") as log:
        process = subprocess.Popen([*airflow.AIRFLOW, program], stdout=log, stderr=log)  # noqa: S603 - our own
        try:
            yield
        finally:
            _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def chain(home: Path, steps: int) -> Iterator[Round]:
    """Yield a round that is timed from the request to run until the run has ended."""
    from airflow.configuration import conf  # type: ignore[import-not-found]

    airflow.prepare(home, steps)
    server = Server(conf.getint("api", "port"))
    with ExitStack() as running:
        for program in PROGRAMS:
            running.enter_context(started(program, home))
        wait_until(server.is_up, "Airflow's API server answers", every=0.5)
        wait_until(server.knows_the_chain, "Airflow has found the DAG", every=0.5)
        yield lambda: timed(lambda: server.run(steps))


if __name__ == "__main__":
    report("airflow-scheduler", "apache-airflow", settings, chain)
