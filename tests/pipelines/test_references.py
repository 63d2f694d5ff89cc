"""References in the files of steps, run for real: what calve resolves is what Spark and databases get."""

import io
import sqlite3
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.faults.pipeline import connected

from calve import settings
from calve.cli import entry
from calve.lake import make_catalogs
from calve.steps.spark.client import connect, release

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

_TOML = """
[spark]
remote = "{remote}"

[connections]
warehouse = "sqlite:///warehouse.db"
"""
_WORKFLOW = """
workflow:
  id: copying
  dag: sequential
  day: 20260301
  jobs:
    - job: {id: pick, type: Spark, spark: {script: "SELECT 'tv' AS device", fetch: value}}
    - job:
        id: copy
        type: Spark
        targets: [db.copied]
        spark:
          file: sql/copy.sql
          audit: [sql/audit.sql, "SELECT count(*) = 1 FROM db.copied WHERE literal = '$${day}'"]
          parameters: {unknown: '$${unknown}'}
    - job: {id: load, type: SQL, sql: {connection: warehouse, file: sql/load.sql}}
"""
_COPY = """-- the rows of ${day}
INSERT INTO db.copied
SELECT id, '${day}', '${pick.value}', '$${day}', :unknown
FROM db.plays WHERE day = ${day}
"""
_AUDIT = "SELECT count(*) = 1, max(day) = '${day}' FROM db.copied"
_LOAD = "CREATE TABLE loaded (day TEXT, device TEXT);\nINSERT INTO loaded VALUES ('${day}', '${pick__value}')"


@pytest.fixture(scope="module")
def project(connect_url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project whose Spark is a server of others, on which Spark's own substitution is on."""
    folder = tmp_path_factory.mktemp("references")
    (folder / settings.FILE).write_text(_TOML.format(remote=connect_url))
    (folder / "sql").mkdir()
    return folder


@pytest.fixture(scope="module")
def spark(project: Path, connect_url: str) -> Iterator["SparkSession"]:
    """Yield a session in which two days of plays have been written, and nothing was copied."""
    loaded = settings.load(project)
    make_catalogs(loaded)  # with tables as Spark wants them
    session = connected(loaded, connect_url)
    for statement in (
        "CREATE TABLE db.plays (id INT, day INT)",
        "INSERT INTO db.plays VALUES (1, 20260301), (2, 20260302)",
        "CREATE TABLE db.copied (id INT, day STRING, device STRING, literal STRING, value STRING)",
    ):
        session.sql(statement).collect()
    yield session
    release(session)


def _run(project: Path, workflow: str, *given: str) -> tuple[int, str]:
    (project / "flow.yaml").write_text(workflow)
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = entry.run(["-C", str(project), "run", str(project / "flow.yaml"), *given])
    return code, out.getvalue() + err.getvalue()


def test_spark_itself_would_take_references_for_variables(spark: "SparkSession", connect_url: str) -> None:
    """On this server a name that nobody knows becomes nothing, unless the session turns that off, as calve's do."""
    theirs = connect(connect_url)
    assert theirs.sql("SELECT '${day}'").collect()[0][0] == ""
    assert spark.sql("SELECT '${day}'").collect()[0][0] == "${day}"
    release(theirs)


def test_references_in_files_are_resolved_as_in_the_definition(project: Path, spark: "SparkSession") -> None:
    """In statements, audits and SQL for databases; what is escaped, and what a value holds, is left alone."""
    (project / "sql" / "copy.sql").write_text(_COPY)
    (project / "sql" / "audit.sql").write_text(_AUDIT)
    (project / "sql" / "load.sql").write_text(_LOAD)
    code, said = _run(project, _WORKFLOW)
    assert code == 0, said
    [row] = spark.sql("SELECT * FROM db.copied").collect()
    assert tuple(row) == (1, "20260301", "tv", "${day}", "${unknown}")
    with sqlite3.connect(project / "warehouse.db") as database:
        assert database.execute("SELECT * FROM loaded").fetchall() == [("20260301", "tv")]
    database.close()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("INSERT INTO db.copied\nSELECT 9, '${dya}', '', '', ''", "broken.sql:2:12: "),
        ("SELECT 1;\nINSERT INTO db.copied SELECT 9, '${ day }', '', '', ''", "broken.sql:2:34: ${ day } is not a"),
        ("SET x = 5; INSERT INTO db.copied SELECT 9, '${x}', '', '', ''", "broken.sql:1:45: "),
    ],
)
def test_what_is_not_resolved_fails_before_anything_runs(
    project: Path, spark: "SparkSession", text: str, place: str
) -> None:
    """With file, line and column; no row is written, and it is not tried again."""
    (project / "broken.sql").write_text(text)
    before = spark.table("db.copied").count()
    written = "workflow: {id: broken, jobs: [{job: {id: copy, type: Spark, spark: {file: '${name}'}}}]}"
    code, said = _run(project, written, "name=broken.sql")
    assert code == 1
    assert place in said
    assert "FATALLY_FAILED" in said
    assert spark.table("db.copied").count() == before
