"""Times a DAG of chained tasks that do nothing in Airflow, by ``dag.test()``: one process, no scheduler, SQLite.

The tasks are Python tasks: Airflow never runs an EmptyOperator, so it would measure nothing.
"""

import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from peers.timing import Round, report, require, timed

AIRFLOW = (sys.executable, "-m", "airflow")


def settings(home: Path) -> dict[str, str]:
    """Return what keeps Airflow in its home, quiet, and without its examples."""
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "false",
        "SCARF_ANALYTICS": "false",
    }


def prepare(home: Path, steps: int) -> Path:
    """Make Airflow's database and its folder of DAGs, and return the file with the chain."""
    dags = home / "dags"
    dags.mkdir()
    (dags / "steps.txt").write_text(str(steps))
    with (home / "migrate.log").open("w") as log:
        subprocess.run([*AIRFLOW, "db", "migrate"], check=True, stdout=log, stderr=log)  # noqa: S603 - our own
    return Path(shutil.copy(Path(__file__).with_name("airflow_dag.py"), dags / "chain.py"))


@contextmanager
def chain(home: Path, steps: int) -> Iterator[Round]:
    """Yield a round that runs the DAG in this process."""
    dag = runpy.run_path(str(prepare(home, steps)))["dag"]

    def run() -> None:
        done = dag.test()
        states = [task.state for task in done.get_task_instances()]
        require(states == ["success"] * steps, "the DAG did not run every task")

    yield lambda: timed(run)


if __name__ == "__main__":
    report("airflow", "apache-airflow", settings, chain)
