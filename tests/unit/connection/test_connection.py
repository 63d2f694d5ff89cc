"""``calve.connect``: a project or a server from Python, and the rows of a change without a JVM."""

import subprocess
import sys
from collections.abc import Iterator
from enum import EnumType
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pyarrow as pa  # noqa: TID253 - the rows of the tables
import pytest

import calve
from calve import Change, Connection
from calve.api import serve
from calve.app import web_on
from calve.connection.options import CaptureOptions, PlanOptions
from calve.dsl import Workflow, noop
from calve.errors import DefinitionInvalid, RequestInvalid, TableMissing, WaitedTooLong
from calve.operations.captures import CaptureRequest, PlanRequest

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "day": pa.array([10, 11], pa.int32())})
PIPELINE = """
Workflow:
  id: demo
  jobs:
    - job: {id: a, type: NoOp}
    - job: {id: b, type: NoOp}
  dag: sequential
"""


@pytest.fixture(params=["project", "server"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connection]:
    """Give a connection to a project with a table, on this machine or through a server."""
    with calve.connect(tmp_path) as project:
        catalog = project.lake.catalog("lake").pyiceberg()
        catalog.create_namespace("db")
        catalog.create_table("db.events", schema=ROWS.schema).append(ROWS)
        if request.param == "project":
            yield project
            return
        app = web_on(project._project, "127.0.0.1")
        with serve(app, drain=1) as server, Connection(project.settings, url=server.url) as remote:
            yield remote


def append(lake: Connection) -> None:
    """Append the rows once more."""
    lake.lake.catalog("lake").pyiceberg().load_table("db.events").append(ROWS)


def test_a_plan_writes_nothing(lake: Connection) -> None:
    """It tells what a capture would contain, and has no rows to read."""
    change = lake.plan("db.events", consumer="daily", operations="all", ranges=["day"])
    assert (change.changed, change.capture_id, change.tables[0].records) == (True, None, 2)
    assert change.ranges["day"]["lower"] == 10
    assert lake.captures() == []
    with pytest.raises(RequestInvalid, match="has no rows to read"):
        change.to_arrow()
    with pytest.raises(RequestInvalid, match="cannot be committed"):
        change.commit()


def test_a_change_is_committed_when_its_block_ends(lake: Connection) -> None:
    """The next capture holds only what came after it."""
    with lake.capture("db.events", consumer="daily") as change:
        assert sorted(change.to_arrow()["id"].to_pylist()) == [1, 2]
        assert change.to_polars().shape == (2, 2)
    assert lake.captures()[0]["status"] == "committed"
    append(lake)
    with lake.capture(["db.events"], "daily") as change:
        assert change.to_arrow("db.events").num_rows == 2
    assert not lake.plan("db.events", "daily").changed
    assert lake.checkpoints("daily")[0]["consumer"] == "daily"


def test_a_record_holds_plain_values(lake: Connection) -> None:
    """Those of JSON, also without a server."""
    with lake.capture("db.events", consumer="daily"):
        pass
    assert {type(value) for value in lake.captures()[0].values()} <= {str, int, bool, list, type(None)}


def test_a_change_is_abandoned_when_its_block_fails(lake: Connection) -> None:
    """The error is the user's own, and the next capture starts from the same checkpoint."""
    with pytest.raises(ZeroDivisionError), lake.capture("db.events", consumer="daily"):
        _ = 1 / 0
    assert lake.captures()[0]["status"] == "abandoned"
    assert lake.plan("db.events", consumer="daily").tables[0].records == 2


def test_what_was_closed_in_the_block_stays_so(lake: Connection) -> None:
    """A block may commit or abandon by itself."""
    with lake.capture("db.events", consumer="daily") as change:
        change.commit()
    assert change.report.status == "committed"
    append(lake)
    with lake.capture("db.events", consumer="daily") as change:
        assert lake.abandon(change) is change
    assert change.report.status == "abandoned"


def test_an_unknown_table_is_an_error_of_calve(lake: Connection) -> None:
    """The same class from a project and from a server."""
    with pytest.raises(TableMissing):
        lake.capture("db.nothing", consumer="daily")


def test_which_table_is_asked_if_there_are_several(lake: Connection) -> None:
    """One that was not captured is named with those that were."""
    catalog = lake.lake.catalog("lake").pyiceberg()
    catalog.create_table("db.users", schema=ROWS.schema).append(ROWS)
    change = lake.capture(["db.events", "db.users"], consumer="both")
    with pytest.raises(RequestInvalid, match="Which table"):
        _ = change.relation
    with pytest.raises(RequestInvalid, match=r"db\.other is not in this change"):
        change.relation_of("db.other")
    assert change.to_arrow("db.users").num_rows == 2


def test_lag_counts_what_is_not_committed(lake: Connection) -> None:
    """In a notebook it is a table."""
    with lake.capture("db.events", consumer="daily"):
        pass
    append(lake)
    lag = lake.lag("daily")
    assert [one["pending_records"] for one in lag] == [2]
    assert "<td>db.events</td>" in lag._repr_html_()


def test_every_column_of_a_notebook_is_one_of_the_documents(lake: Connection) -> None:
    """A column that no document has would always be empty."""
    with lake.capture("db.events", consumer="daily"):
        pass
    for records in (lake.lag(), lake.captures(), lake.checkpoints()):
        assert [name for name in records.columns if name not in records[0]] == []


@pytest.mark.parametrize(("options", "body"), [(PlanOptions, PlanRequest), (CaptureOptions, CaptureRequest)])
def test_the_options_are_those_of_the_request(options: type, body: type[PlanRequest]) -> None:
    """An editor completes them, with the values of each closed set."""
    fields = {name: one.annotation for name, one in body.model_fields.items()}
    given = get_type_hints(options)
    assert set(given) | {"tables", "consumer", "operations"} == set(fields)
    closed = {name: get_args(one) for name, one in given.items() if get_origin(one) is Literal}
    assert closed == {
        name: tuple(one.__members__.values()) for name, one in fields.items() if isinstance(one, EnumType)
    }


def test_a_change_shows_itself_in_a_notebook(lake: Connection) -> None:
    """Its table, files, rows and ranges."""
    change = lake.plan("db.events", consumer="daily", ranges=["day"])
    assert "day 10 … 11" in change._repr_html_()
    assert repr(change) == "<Change planned of daily: db.events: 1 files, 2 rows>"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Connection]:
    """Give a connection to an empty project."""
    with calve.connect(tmp_path) as project:
        yield project


def test_a_workflow_is_pushed_and_run(project: Connection, tmp_path: Path) -> None:
    """From text, a file, or the DSL; this process is its worker."""
    project.push(PIPELINE)
    instance = project.run("demo")
    assert (instance.succeeded, [step["step_id"] for step in instance.steps]) == (True, ["a", "b"])
    (tmp_path / "demo.yaml").write_text(PIPELINE)
    assert project.push(str(tmp_path / "demo.yaml"))["metadata"]["workflow_version_id"] == 2
    assert project.push(tmp_path / "demo.yaml")["metadata"]["workflow_version_id"] == 3
    with Workflow("described") as workflow:
        noop("only")
    assert project.run(workflow).status == "SUCCEEDED"
    assert project.run(str(tmp_path / "demo.yaml")).succeeded
    assert project.run('{"Workflow": {"id": "line", "jobs": [{"job": {"id": "a", "type": "NoOp"}}]}}').succeeded
    assert [one["workflow_id"] for one in project.instances()] == ["line", "demo", "described", "demo"]
    assert "described" in project.instances("described")._repr_html_()
    assert [name for name in project.instances().columns if name not in project.instances()[0]] == []


def test_instances_are_listed_by_status(project: Connection) -> None:
    """In any case of letters, as the command does; an unknown one is an error of calve."""
    project.run(PIPELINE)
    assert len(project.instances(statuses=["succeeded"])) == len(project.instances(statuses=["SUCCEEDED"])) == 1
    with pytest.raises(RequestInvalid, match="'DONE' is not the status of an instance"):
        project.instances(statuses=["DONE"])


def test_a_file_is_read_as_the_command_reads_it(project: Connection, tmp_path: Path) -> None:
    """With the scripts beside it; and it may be Python."""
    folder = tmp_path / "flows"
    folder.mkdir()
    text = "Workflow: {id: scripted, jobs: [{job: {id: a, type: Shell, shell: {script: '$S3{a.sh}'}}}]}"
    (folder / "scripted.yaml").write_text(text)
    with pytest.raises(DefinitionInvalid, match=r"there is no file a\.sh"):
        project.push(folder / "scripted.yaml")
    (folder / "a.sh").write_text("echo from a script")
    pushed = project.push(folder / "scripted.yaml")
    assert "echo from a script" in str(pushed["workflow"])
    flow = "from calve.dsl import Workflow, noop\nwith Workflow('{0}'):\n    noop('only')\n"
    (folder / "flow.py").write_text(flow.format("python"))
    assert project.run(str(folder / "flow.py")).succeeded
    (folder / "two.py").write_text(flow.format("one") + flow.format("two"))
    with pytest.raises(RequestInvalid, match="defines 2 workflows"):
        project.push(folder / "two.py")


def test_a_run_that_is_not_awaited_is_left_to_a_worker(project: Connection) -> None:
    """It says that it is created."""
    project.push(PIPELINE)
    assert project.run("demo", wait=False).status == "CREATED"


def test_a_run_that_takes_too_long_continues(project: Connection) -> None:
    """The wait ends, not the instance."""
    project.push("Workflow: {id: slow, jobs: [{job: {id: a, type: Sleep, sleep: {sleep_seconds: 60}}}]}")
    with pytest.raises(WaitedTooLong):
        project.run("slow", timeout=0.5)


def test_a_graph_shows_which_step_follows_which(project: Connection) -> None:
    """As text, and as a drawing in a notebook."""
    project.push(PIPELINE)
    graph = project.graph("demo")
    assert (repr(graph), graph.columns) == ("a → b\nb → ·", [["a"], ["b"]])
    drawn = project.run("demo")._repr_html_()
    assert drawn.count("<rect") == 2
    assert "<td>SUCCEEDED</td>" in drawn


def test_the_package_imports_nothing_until_it_is_asked() -> None:
    """``import calve`` is cheap; what it offers is listed."""
    assert {"connect", "merge", "Change", "Connection"} <= set(dir(calve))
    assert issubclass(calve.Change, Change)
    script = "import sys, calve; assert 'calve.dsl' not in sys.modules; print(calve.dsl.Workflow.__name__)"
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "Workflow\n"


def test_a_settings_object_or_nothing_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default it is the project of the current folder."""
    monkeypatch.chdir(tmp_path)
    with calve.connect() as here, calve.connect(here.settings) as same:
        assert repr(here) == repr(same)
    assert repr(calve.connect("http://127.0.0.1:1")) == "<Connection to http://127.0.0.1:1>"
