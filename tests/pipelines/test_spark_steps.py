"""Spark steps on a real Spark: the worker's warm server, programs through spark-submit."""

import os
import secrets
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import pytest
from tests.no_deliveries import NoDeliveries
from tests.unit.steps.contexts import FakeContext

from calve.engine import Outcome, State
from calve.lake import Lake
from calve.settings import Settings
from calve.steps import Workspace
from calve.steps.processes.folders import ProcessFolder
from calve.steps.spark import Spark
from calve.steps.spark.errors import LOST

PROGRAM = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.sql(f"INSERT INTO {sys.argv[1]} SELECT id FROM range(4)")
print("wrote", spark.table(sys.argv[1]).count(), "rows")
"""
SLOW = "SELECT sum(sin(id)) FROM range(0, 1000000000000)"
"""Ends only if it is ended. A join of ranges would not even then: Spark's loops over one row do not look up."""
FUNCTIONS = """
def double(spark, table, *, times):
    spark.sql(f"INSERT INTO {table} SELECT id * {times} FROM {table}")
    return {"rows": spark.table(table).count()}
"""


FAILING = """
def table(spark):
    spark.sql("SELECT 1").collect()
    spark.table("db.nope").collect()

def column(spark):
    spark.range(3).select("nope").collect()

def module(spark):
    import gone_for_good

def few(spark, needed):
    pass

def reset(spark):
    raise ConnectionResetError("gone")
"""


@pytest.fixture(scope="module")
def runtime(lake_settings: Settings, lake: Lake) -> Iterator[Spark]:
    """Yield the runtime of a worker, whose server is shared by all tests here."""
    workspace = Workspace(lake_settings.project, os.environ, sys.executable)  # noqa: TID251 - a worker's
    made = Spark(lake_settings, workspace, lake, NoDeliveries())
    yield made
    made.close()


@pytest.fixture
def run(runtime: Spark, tmp_path: Path) -> Callable[..., tuple[Outcome, FakeContext]]:
    """Return a function that carries out a step."""

    def carried_out(**config: Any) -> tuple[Outcome, FakeContext]:
        context = FakeContext(tmp_path, {"spark": config}, key=f"attempt-{uuid.uuid4().hex}")
        return runtime.execute(context), context

    return carried_out


@pytest.fixture
def table(run: Callable[..., tuple[Outcome, FakeContext]]) -> str:
    """Return the name of a table with three rows."""
    letters = "".join(secrets.choice(ascii_lowercase) for _ in range(20))  # no name is near another one by chance
    name = f"db.s{letters}"
    script = (
        f"CREATE NAMESPACE IF NOT EXISTS db; CREATE TABLE {name} (id bigint); INSERT INTO {name} VALUES (1), (2), (3)"
    )
    outcome, _ = run(script=script)
    assert (outcome.state, outcome.message) == (State.DONE, "")
    return name


Run = Callable[..., tuple[Outcome, FakeContext]]


def test_statements_run_in_one_session_of_the_steps_own(run: Run, table: str) -> None:
    """With values, settings and a namespace; what the last one gives is kept, and a view is gone afterwards."""
    script = "CREATE TEMP VIEW few AS SELECT * FROM {} WHERE id >= :low; -- ;\nSELECT count(*) n, ';' s FROM few"
    config = {"parameters": {"low": 2}, "conf": {"spark.sql.shuffle.partitions": 1}, "namespace": "db"}
    outcome, _ = run(script=script.format(table.removeprefix("db.")), fetch="row", expect="any_row", **config)
    assert outcome.outputs["row"] == {"n": 2, "s": ";"}
    outcome, context = run(script="SELECT 1;\nSELECT * FROM few")
    assert outcome.state is State.FATAL_ERROR
    assert outcome.message.startswith("spark.script, line 2 (statement 2 of 2): [TABLE_OR_VIEW_NOT_FOUND] ")
    assert outcome.message.endswith("\n  2 | SELECT * FROM few\n    |               ^")
    assert "\tat " not in outcome.message
    assert "\tat " in context.text


VERIFY = "cannot be found. Verify the spelling and correctness of the schema and catalog."
"""What Spark says of every table that is not there."""


@pytest.mark.parametrize(
    ("script", "said", "shown"),
    [
        (
            "-- all\nSELECT 1;\n\nSELECT *\n  FORM {table}",
            "line 5 (statement 2 of 2): [PARSE_SYNTAX_ERROR] Syntax error at or near 'db'. SQLSTATE: 42601",
            "  5 |   FORM {table}\n    |        ^",
        ),
        (
            "SELECT :many + 1,\n       :name AS n, idd FROM {table}",
            (
                "line 2: [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `idd` "
                "cannot be resolved. Did you mean one of the following? [`id`]. SQLSTATE: 42703"
            ),
            "  2 |        :name AS n, idd FROM {table}\n    |                    ^",
        ),
        (
            "SELECT * FROM {near}",
            (
                f"line 1: [TABLE_OR_VIEW_NOT_FOUND] The table or view {{quoted}} {VERIFY} "
                "Did you mean {table}? SQLSTATE: 42P01"
            ),
            "  1 | SELECT * FROM {near}\n    |               ^",
        ),
        (
            "SELECT * FROM nope.db.t",
            (
                f"line 1: [TABLE_OR_VIEW_NOT_FOUND] The table or view `nope`.`db`.`t` {VERIFY} "
                "nope is not a catalog; the settings have: lake. SQLSTATE: 42P01"
            ),
            "  1 | SELECT * FROM nope.db.t\n    |               ^",
        ),
        (
            "SELECT id,\n  id / (id - 2) FROM {table}",
            (
                "line 2: [DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0 and return "
                'NULL instead. If necessary set "spark.sql.ansi.enabled" to "false" to bypass this error. '
                "SQLSTATE: 22012"
            ),
            "  2 |   id / (id - 2) FROM {table}\n    |   ^",
        ),
        (
            "CREATE OR REPLACE TEMP VIEW odd AS SELECT 1 / 0 AS n;\nSELECT * FROM odd",
            (
                "line 2 (statement 2 of 2): [DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor "
                'being 0 and return NULL instead. If necessary set "spark.sql.ansi.enabled" to "false" to bypass this '
                "error. It is in the view odd. SQLSTATE: 22012"
            ),
            "  2 | SELECT * FROM odd",
        ),
        (
            "SELECT * FROM {table} VERSION AS OF 12",
            "line 1: Cannot find snapshot with ID 12",
            "  1 | SELECT * FROM {table} VERSION AS OF 12",
        ),
    ],
)
def test_an_error_of_sql_fails_at_once_and_names_its_place(
    run: Run, table: str, script: str, said: str, shown: str
) -> None:
    """The cause in one line, then the line of the script and a caret; neither Java's stack nor Spark's plan."""
    near = f"{table[:-1]}_"
    names = {"table": table, "near": near, "quoted": f"`db`.`{near.removeprefix('db.')}`"}
    values = {"many": 1_000_000, "name": "it's"} if ":many" in script else {}
    outcome, _ = run(script=script.format(**names), parameters=values)
    assert outcome.message == f"spark.script, {said}\n{shown}".format(**names)
    assert outcome.state is State.FATAL_ERROR


def test_an_error_of_spark_in_python_fails_at_once(run: Run, lake_settings: Settings) -> None:
    """In a function and in an application; what only may fail again is tried again."""
    (lake_settings.project / "failing.py").write_text(FAILING)
    for name, state, said in [
        ("table", State.FATAL_ERROR, "AnalysisException: [TABLE_OR_VIEW_NOT_FOUND] The table or view `db`.`nope`"),
        ("column", State.FATAL_ERROR, "AnalysisException: [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column"),
        ("module", State.FATAL_ERROR, "ModuleNotFoundError: No module named 'gone_for_good'"),
        ("few", State.FATAL_ERROR, "cannot be called with a session and these arguments: missing a required argument"),
        ("nowhere", State.FATAL_ERROR, "failing.py has no nowhere."),
        ("reset", State.USER_ERROR, "ConnectionResetError: gone"),
    ]:
        outcome, _ = run(function=f"failing.py:{name}")
        assert (outcome.state, said in outcome.message, outcome.message.count("\n")) == (state, True, 0), outcome
    (lake_settings.project / "app.py").write_text(
        "from pyspark.sql import SparkSession\nSparkSession.builder.getOrCreate().table('db.nope')\n"
    )
    outcome, _ = run(application="app.py")
    assert outcome.state is State.FATAL_ERROR
    assert "TABLE_OR_VIEW_NOT_FOUND" in outcome.message
    assert "\tat " not in outcome.message


def test_spark_replaces_nothing_in_statements_by_itself(run: Run, lake_settings: Settings) -> None:
    """References are resolved by calve, in the file of a step too; a brace in a value or an escaped one stays."""
    (lake_settings.project / "own.sql").write_text("SET x = 5; SELECT '$${x}' AS escaped, :given AS given")
    outcome, _ = run(file="own.sql", parameters={"given": "${x}"}, fetch="row")
    assert (outcome.message, outcome.outputs.get("row")) == ("", {"escaped": "${x}", "given": "${x}"})
    outcome, _ = run(script="SELECT 1", conf={"spark.sql.variable.substitute": True})
    assert outcome.state is State.FATAL_ERROR
    assert "cannot be true" in outcome.message


def test_what_a_step_reads_and_writes_is_counted(run: Run, table: str) -> None:
    """Per step and per statement; the snapshots are stamped with the attempt."""
    copy = f"INSERT INTO {table} SELECT id FROM {table}"
    outcome, context = run(
        script=f"{copy}; SELECT summary['calve.attempt'] FROM {table}.snapshots ORDER BY committed_at"
    )
    assert (outcome.state, outcome.message) == (State.DONE, "")
    spark = outcome.artifacts["spark"]
    first = spark["statements"][0]
    assert (first["rows_read"], first["rows_written"], first["rows"]) == (3, 3, 3)
    assert first["bytes_read"] > 0
    assert first["bytes_written"] > 0
    assert "3 rows" in context.text
    outcome, _ = run(
        script=f"SELECT count(*) FROM {table}.snapshots WHERE summary['calve.attempt'] = '{context.key}'", fetch="value"
    )
    assert outcome.outputs["value"] == "1"


def test_a_step_that_is_interrupted_ends_its_job(run: Run, runtime: Spark, tmp_path: Path) -> None:
    """And the server goes on."""
    context, thread, outcomes = _slow(runtime, tmp_path)
    context.interruption.set()
    thread.join(timeout=60)
    assert [outcome.state for outcome in outcomes] == [State.STOPPED]
    assert run(script="SELECT 1")[0].state is State.DONE


def test_a_function_is_called_with_the_session(run: Run, table: str, lake_settings: Settings) -> None:
    """What it returns becomes outputs, and what it wrote is counted."""
    (lake_settings.project / "functions.py").write_text(FUNCTIONS)
    outcome, _ = run(function="functions.py:double", args=[table], parameters={"times": 2})
    assert (outcome.message, outcome.outputs["rows"]) == ("", 6)
    assert outcome.artifacts["spark"]["rows_written"] == 3


def test_an_application_runs_through_spark_submit(run: Run, table: str, lake_settings: Settings) -> None:
    """On the same lake; what it wrote is counted."""
    (lake_settings.project / "program.py").write_text(PROGRAM)
    outcome, context = run(application="program.py", args=[table])
    assert (outcome.message, outcome.state) == ("", State.DONE)
    assert "wrote 7 rows" in context.text
    assert outcome.artifacts["spark"]["rows_written"] == 4


def test_a_dead_server_fails_its_steps_for_now_and_is_restarted(run: Run, runtime: Spark, tmp_path: Path) -> None:
    """The engine runs them again."""
    context, thread, outcomes = _slow(runtime, tmp_path)
    [server] = runtime._jobs._servers._running.values()  # to kill it
    processes = ProcessFolder(server.folder / "process").processes()
    assert processes is not None
    os.kill(processes[0].pid, signal.SIGKILL)
    thread.join(timeout=90)
    assert [outcome.state for outcome in outcomes] == [State.INFRASTRUCTURE_ERROR]
    assert outcomes[0].message == f"spark.script, line 1: {LOST}\n  1 | {SLOW}"
    assert "-- the whole error of Spark:" in context.text
    assert run(script="SELECT 1", fetch="value")[0].outputs["value"] == "1"


def _slow(runtime: Spark, folder: Path) -> tuple[FakeContext, threading.Thread, list[Outcome]]:
    """Begin a step that ends only if it is ended; return what it is told by, its thread, and where its outcome goes."""
    context = FakeContext(folder, {"spark": {"script": SLOW}})
    outcomes: list[Outcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(runtime.execute(context)), daemon=True)
    thread.start()
    _until(lambda: "running" in context.text)
    return context, thread, outcomes


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)
