"""What Spark's event log says about a session."""

import json
from pathlib import Path
from typing import Any

from calve.steps.spark.event_log import EventLog, Usage

A, B = "02fbb078-8795-43a5-8c1e-2aba3f2ec45b", "12fbb078-8795-43a5-8c1e-2aba3f2ec45b"
OPERATION = "0378ce1f-0812-4f6b-932a-4504b2bc72d5"
CONNECT = "org.apache.spark.sql.connect.service.SparkListenerConnect"
SQL = "org.apache.spark.sql.execution.ui.SparkListener"
METRICS = "v2Custom_org.apache.iceberg.spark.source.metrics."


def _tag(session: str) -> str:
    return f"SparkConnect_OperationTag_User_calve_Session_{session}_Operation_{OPERATION}"


def _event(kind: str, **fields: Any) -> str:
    return json.dumps({"Event": kind, **fields}, separators=(",", ":")) + "\n"


def _job(session: str, *stages: int) -> str:
    tags = {"spark.job.tags": f"x,{_tag(session)}"}
    return _event("SparkListenerJobStart", **{"Job ID": 1, "Stage IDs": stages, "Properties": tags})


def _stage(number: int, **counted: int) -> str:
    metrics = [{"ID": 1, "Name": f"internal.metrics.{name}", "Value": value} for name, value in counted.items()]
    return _event("SparkListenerStageCompleted", **{"Stage Info": {"Stage ID": number, "Accumulables": metrics}})


def _execution(session: str, plan: str = "") -> str:
    metric = {"name": "total data file size (bytes)", "accumulatorId": 549, "metricType": f"{METRICS}TotalDataFileSize"}
    more = {"jobTags": [_tag(session)], "physicalPlanDescription": plan, "sparkPlanInfo": {"metrics": [metric]}}
    return _event(f"{SQL}SQLExecutionStart", executionId=10, **more)


def _updates() -> str:
    return _event(f"{SQL}DriverAccumUpdates", executionId=10, accumUpdates=[[549, 2951015], [550, 7]])


def _file(folder: Path, number: int) -> Path:
    (folder / "eventlog_v2_x").mkdir(exist_ok=True)
    return folder / "eventlog_v2_x" / f"events_{number}_x"


INPUT = {"input.recordsRead": 5, "input.bytesRead": 90}
OUTPUT = {"output.recordsWritten": 3, "output.bytesWritten": 40, "shuffle.write.bytesWritten": 7}


def test_stages_are_added_up_for_the_session_whose_jobs_they_are_of(tmp_path: Path) -> None:
    """Those of other sessions are not."""
    lines = [_job(A, 1, 2), _job(B, 3), _stage(1, **INPUT), _stage(2, **OUTPUT), _stage(3, **INPUT)]
    _file(tmp_path, 1).write_text("".join(lines))
    events = EventLog(tmp_path)
    assert events.usage(A) == Usage(5, 90, 3, 40, 7)
    assert events.usage(B) == Usage(5, 90)


def test_the_files_of_an_iceberg_scan_count_by_their_size(tmp_path: Path) -> None:
    """Spark sees only some of the bytes that are read of them."""
    _file(tmp_path, 1).write_text(_execution(A) + _updates() + _job(A, 1) + _stage(1, **INPUT))
    assert EventLog(tmp_path).usage(A) == Usage(5, 2951015)


def test_the_tables_that_are_written_to_are_known_by_the_plan(tmp_path: Path) -> None:
    """Also those that a merge rewrites."""
    plan = "AppendData IcebergWrite(table=lake.db.t, format=PARQUET)\nIcebergPositionDeltaWrite(table=lake.db.u)"
    _file(tmp_path, 1).write_text(_execution(A, plan))
    events = EventLog(tmp_path)
    events.usage(A)
    assert events.tables(A)[1] == {"lake.db.t", "lake.db.u"}
    assert events.tables(B)[1] == frozenset()


def test_the_tables_that_are_read_are_known_by_the_plan(tmp_path: Path) -> None:
    """By the names of its scans; files that are no tables are left out."""
    started = _execution(A).rstrip("\n").removesuffix("}")
    nodes = [{"nodeName": name} for name in ("BatchScan lake.db.t", "BatchScan parquet file:/x", "Project")]
    _file(tmp_path, 1).write_text(f'{started},"nodes":{json.dumps(nodes, separators=(",", ":"))}}}\n')
    events = EventLog(tmp_path)
    events.usage(A)
    assert events.tables(A)[0] == {"lake.db.t"}
    assert events.tables(B)[0] == frozenset()


def test_an_application_is_one_whole(tmp_path: Path) -> None:
    """Its jobs have no tags."""
    job = _event("SparkListenerJobStart", **{"Job ID": 1, "Stage IDs": [1], "Properties": {}})
    _file(tmp_path, 1).write_text(job + _stage(1, **OUTPUT))
    assert EventLog(tmp_path, is_application=True).usage() == Usage(0, 0, 3, 40, 7)


def test_a_log_is_read_on_where_it_was_left_and_into_the_next_file(tmp_path: Path) -> None:
    """A line without an end is not read yet; a file that Spark has left is deleted."""
    first, second = _file(tmp_path, 1), _file(tmp_path, 2)
    first.write_text(_job(A, 1, 2) + _stage(1, **OUTPUT)[:40])
    events = EventLog(tmp_path)
    assert events.usage(A) == Usage()
    first.write_text(_job(A, 1, 2) + _stage(1, **OUTPUT))
    second.write_text(_stage(2, **OUTPUT))
    assert events.usage(A) == Usage(0, 0, 6, 80, 14)
    assert not first.exists()


def test_the_port_of_a_server_stands_in_its_log(tmp_path: Path) -> None:
    """None until it is up."""
    events = EventLog(tmp_path)
    assert events.port() is None
    _file(tmp_path, 1).write_text(_event(f"{CONNECT}ServiceStarted", hostAddress="h", bindingPort=15777))
    assert events.port() == 15777


def test_what_a_session_used_is_forgotten_with_it(tmp_path: Path) -> None:
    """A server lives long."""
    over = _event(f"{CONNECT}OperationFinished", jobTag=_tag(A))
    _file(tmp_path, 1).write_text(_job(A, 1) + _stage(1, **OUTPUT) + over)
    events = EventLog(tmp_path)
    assert events.usage(A, after=OPERATION, seconds=60).rows_written == 3
    events.forget(A)
    assert events.usage(A) == Usage()


def test_stages_that_are_over_are_counted(tmp_path: Path) -> None:
    """Also those that a job did not need, once it is over."""
    end = _event("SparkListenerJobEnd", **{"Job ID": 1})
    file = _file(tmp_path, 1)
    file.write_text(_job(A, 1, 2, 3) + _stage(2))
    events = EventLog(tmp_path)
    assert (events.stages(A), events.stages(B)) == ((1, 3), (0, 0))
    with file.open("a") as more:
        more.write(_stage(3) + end + _stage(9))
    assert events.stages(A) == (3, 3)
