"""The three workflows of the talk, as they were shown, pushed and run by the talk's own commands on a real Spark."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.pipeline import connected

from calve import settings
from calve.lake import make_catalogs

SCHEDULER = Path(sys.executable).with_name("scheduler")
TALK = Path(__file__).parents[1] / "data" / "talk"
RECOVERY = "Workflow: {id: example.recovery.wf, jobs: [{job: {id: mend, type: NoOp}}]}"
SCRIPT = (
    "INSERT INTO ${TARGET_TABLE} SELECT user_id, date_int, sum(watch_time) FROM ${SOURCE_TABLE} "
    "WHERE is_active GROUP BY user_id, date_int"
)


@pytest.fixture
def project(tmp_path: Path, connect_url: str) -> Path:
    """Return a folder with the talk's files, as a user of the talk has them."""
    for text in TALK.glob("*.yaml"):
        shutil.copy(text, tmp_path)
    (tmp_path / "recovery.yaml").write_text(RECOVERY)
    (tmp_path / "my_script.sql").write_text(SCRIPT)
    (tmp_path / settings.FILE).write_text(f"[spark]\nremote = '{connect_url}'\n")
    return tmp_path


def _scheduler(project: Path, *words: str) -> str:
    done = subprocess.run(
        [str(SCHEDULER), *words], cwd=project, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_talks_workflows_run_as_they_were_shown(project: Path, connect_url: str) -> None:
    """The query is replaced by a param, remediation looks after the pipeline, and two steps make it incremental."""
    loaded = settings.load(project, {})
    make_catalogs(loaded)
    spark = connected(loaded, connect_url)

    def watched() -> list[tuple[int, int, int]]:
        return sorted(tuple(row) for row in spark.sql("SELECT * FROM watched").collect())

    spark.sql("CREATE NAMESPACE IF NOT EXISTS default")
    columns = "user_id BIGINT, date_int INT, watch_time BIGINT"
    spark.sql(f"CREATE TABLE membership_table ({columns}, is_active BOOLEAN) USING iceberg")
    spark.sql(f"CREATE TABLE watched ({columns}) USING iceberg")
    spark.sql(
        "INSERT INTO membership_table VALUES (1, 20240101, 10, true), (1, 20240101, 5, true), (2, 20240102, 7, false)"
    )

    _scheduler(project, "push", "first.yaml", "second.yaml", "recovery.yaml", "third.yaml")
    assert "demo.pipeline 1 SUCCEEDED" in _scheduler(project, "run", "demo.pipeline", "my_query=SELECT 1")
    run = ("run", "incremental.processing.pipeline", "TARGET_TABLE=watched")
    assert "incremental.processing.pipeline 1 SUCCEEDED" in _scheduler(project, *run)
    assert watched() == [(1, 20240101, 15)]
    spark.sql("INSERT INTO membership_table VALUES (3, 20240101, 30, true)")
    _scheduler(project, *run)
    assert watched() == [(1, 20240101, 15), (3, 20240101, 30)]
    assert "auto.remediation.pipeline UNSATISFIED" in _scheduler(project, *run)  # as nothing changed
    assert watched() == [(1, 20240101, 15), (3, 20240101, 30)]
