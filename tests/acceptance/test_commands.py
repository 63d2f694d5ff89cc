"""The commands as a user runs them, on an embedded lake that PyIceberg fills: no JVM."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from calve.lake import Lake
from calve.settings import load


@dataclass(frozen=True, slots=True)
class Result:
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The last line of standard output, parsed."""
        return json.loads(self.out.splitlines()[-1])


@dataclass(frozen=True, slots=True)
class Project:
    """A folder that commands run in, with one table of ids and days."""

    folder: Path
    table: Any

    def calve(self, *arguments: str) -> Result:
        """Run a command in a process of its own."""
        done = subprocess.run(
            [sys.executable, "-m", "calve", *arguments], cwd=self.folder, capture_output=True, text=True, check=False
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def append(self, *ids: int, day: int = 1) -> None:
        """Append one file of rows."""
        import pyarrow as pa

        rows = {"id": pa.array(ids, pa.int64()), "day": pa.array([day] * len(ids), pa.int32())}
        self.table.append(pa.table(rows))

    def rows(self, name: str) -> list[int]:
        """Return the ids that a table of the lake holds, in order."""
        lake = Lake(load(self.folder, {}))
        table = lake.catalog("lake").pyiceberg().load_table(tuple(name.split(".")))
        ids = sorted(table.scan().to_arrow().column("id").to_pylist())
        lake.close()
        return ids


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """Yield an empty project with the table ``db.events``."""
    from pyiceberg.schema import Schema
    from pyiceberg.types import IntegerType, LongType, NestedField

    lake = Lake(load(tmp_path, {}))
    catalog = lake.catalog("lake").pyiceberg()
    catalog.create_namespace("db")
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "day", IntegerType()))
    yield Project(tmp_path, catalog.create_table("db.events", schema))
    lake.close()


CAPTURE = ("capture", "db.events", "--consumer", "daily", "--json")


def test_a_consumer_gets_every_row_once(project: Project) -> None:
    """Capture, read, commit, and again: each capture holds what came since the last commit."""
    project.append(1, 2)
    first = project.calve(*CAPTURE).json
    assert project.rows(first["tables"][0]["icdc_table"]) == [1, 2]
    assert project.calve("commit", first["capture_id"], "--json").json["status"] == "committed"
    project.append(3, day=7)
    project.append(4, day=2)
    second = project.calve(*CAPTURE, "--range", "day").json
    assert project.rows(second["tables"][0]["icdc_table"]) == [3, 4]
    assert second["ranges"]["day"]["lower"] == 2
    assert second["ranges"]["day"]["upper"] == 7
    assert [step["operation"] for step in second["tables"][0]["snapshots"]] == ["append", "append"]


def test_a_plan_tells_the_same_and_writes_nothing(project: Project) -> None:
    """A plan has the numbers of the capture to come, no id, and leaves no trace."""
    project.append(1, 2)
    before = sorted(project.folder.rglob("*.json"))
    plan = project.calve("plan", "db.events", "-c", "daily", "--json").json
    assert (plan["capture_id"], plan["changed"], plan["tables"][0]["records"]) == (None, True, 2)
    assert plan["tables"][0]["icdc_table"] is None
    assert sorted(project.folder.rglob("*.json")) == before
    assert project.calve("captures", "--json").json == []


def test_json_has_every_promised_key(project: Project) -> None:
    """The keys that programs rely on are there, for plans as for captures."""
    project.append(1)
    top = {"capture_id", "consumer", "changed", "ranges", "tables"}
    inner = {
        *("source_table", "table_uuid", "from_snapshot_id", "to_snapshot_id", "from_sequence_number"),
        *("to_sequence_number", "snapshots", "icdc_table", "relation", "deletes_table", "files", "records", "bytes"),
        *("deleted_records", "exactness", "filter", "ranges", "partitions"),
    }
    for arguments in (("plan", *CAPTURE[1:]), CAPTURE):
        document = project.calve(*arguments, "--range", "id").json
        assert top <= document.keys()
        assert inner <= document["tables"][0].keys()
        assert document["tables"][0]["snapshots"][0].keys() == {"snapshot_id", "operation", "included", "reason"}
        assert {"lower", "upper", "exact", "has_nulls"} <= document["tables"][0]["ranges"]["id"].keys()


def test_a_second_capture_names_the_open_one(project: Project) -> None:
    """Whoever forgot to commit is told which capture is open, and what to do."""
    project.append(1)
    first = project.calve(*CAPTURE).json["capture_id"]
    refused = project.calve(*CAPTURE)
    assert refused.code == 1
    assert refused.json["error"]["code"] == "concurrent_capture"
    assert first in refused.json["error"]["remedy"]
    assert project.calve(*CAPTURE, "--supersede").code == 0
    late = project.calve("commit", first, "--json")
    assert late.json["error"]["code"] == "capture_closed"


def test_a_key_gets_the_same_capture_back(project: Project) -> None:
    """A request that is repeated under its key never widens."""
    project.append(1)
    first = project.calve(*CAPTURE, "--key", "run-1").json
    project.append(2)
    again = project.calve(*CAPTURE, "--key", "run-1").json
    assert again == first


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("plan", "db.nothing", "-c", "x"), 1, "db.events"),
        (("plan", "events", "-c", "x"), 1, "Did you mean db.events?"),
        (("plan", "db.events", "-c", "x", "--range", "hour"), 1, "id, day"),
        (("plan", "db.events", "-c", "x", "--to", "yesterday"), 1, "main"),
        (("plan", "db.events", "-c", "x", "--operations", "apend"), 2, "apend"),
        (("plan", "db.events", "db.events", "-c", "x"), 1, "each table once"),
        (("plan", "db.events"), 2, "--consumer"),
        (("commit", "nope"), 1, "nope"),
        (("checkpoint", "reset", "db.events", "-c", "x", "--reason", "why"), 1, "no checkpoint"),
        (("gc", "--grace", "soon"), 2, "duration"),
    ],
)
def test_bad_requests_say_what_is_wrong(project: Project, arguments: tuple[str, ...], code: int, words: str) -> None:
    """Each mistake gets one message that names it and what would be right, and no traceback."""
    project.append(1)
    result = project.calve(*arguments)
    assert result.code == code
    assert words in result.err
    assert "Traceback" not in result.err


def test_an_overwrite_is_refused_until_it_is_asked_for(project: Project) -> None:
    """A change of another kind is an error that names the snapshots and the option."""
    project.append(1, 2, 3)
    project.calve("commit", project.calve(*CAPTURE).json["capture_id"])
    project.table.delete("id == 2")
    refused = project.calve(*CAPTURE).json["error"]
    assert refused["code"] == "change_unsupported"
    assert str(project.table.current_snapshot().snapshot_id) in refused["message"]
    assert "--operations" in refused["remedy"]
    change = project.calve(*CAPTURE, "--operations", "append,overwrite,delete").json["tables"][0]
    assert change["exactness"] == "except-all"
    assert change["deletes_table"] is not None


def test_lag_checkpoints_and_garbage(project: Project) -> None:
    """The rest of the commands tell where consumers stand, mend it, and clean up."""
    project.append(1)
    project.calve("commit", project.calve(*CAPTURE).json["capture_id"])
    project.append(2, 3)
    (lag,) = project.calve("lag", "--json").json
    assert (lag["pending_commits"], lag["pending_files"], lag["pending_records"]) == (1, 1, 2)
    assert lag["expires_in_seconds"] > 4 * 24 * 3600
    arguments = ("checkpoint", "set", "db.events", "-c", "daily", "--to", "latest", "--reason", "loaded by hand")
    assert project.calve(*arguments).code == 0
    moves = project.calve("checkpoint", "show", "--log", "--json").json
    assert [move["reason"] for move in moves][-1] == "loaded by hand"
    assert project.calve("plan", "db.events", "-c", "daily", "--json").json["changed"] is False
    (collected,) = project.calve("gc", "--json").json
    assert (len(collected["tables"]), collected["files"]) == (1, 3)
    assert not list((project.folder / ".calve").rglob("*icdc*/**/*.avro"))
    assert project.calve("show", collected["capture_id"]).code == 0


def test_show_lists_the_files(project: Project) -> None:
    """One capture is shown in full, down to its files, and can be checked."""
    project.append(1)
    capture_id = project.calve(*CAPTURE).json["capture_id"]
    shown = project.calve("show", capture_id, "--check", "--json").json
    ((file,),) = shown["files"].values()
    assert Path(file["path"].removeprefix("file://")).is_file()
    Path(file["path"].removeprefix("file://")).unlink()
    assert project.calve("show", capture_id, "--check", "--json").json["error"]["code"] == "files_lost"


@pytest.fixture
def import_of(tmp_path: Path) -> Callable[[str], set[str]]:
    """Return a function that tells which modules a statement imports in a fresh interpreter."""

    def imported(statement: str) -> set[str]:
        code = f"import sys\n{statement}\nprint(*sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        return set(done.stdout.split())

    return imported


HEAVY = {"pyspark", "pyarrow", "fastapi", "pyiceberg", "sqlalchemy", "pandas", "numpy"}


@pytest.mark.parametrize(
    "statement",
    [
        "import calve",
        "import calve.cli",
        "from calve.cli.entry import run; run(['--help'])",
        "from calve.cli.entry import run; run(['capture', '--help'])",
    ],
)
def test_help_imports_nothing_heavy(import_of: Callable[[str], set[str]], statement: str) -> None:
    """Help and imports stay quick because they load none of the big libraries (bench/startup.py has the figures)."""
    assert not HEAVY & import_of(statement)


def test_a_capture_needs_neither_spark_nor_arrow(project: Project, import_of: Callable[[str], set[str]]) -> None:
    """Capturing appends loads neither pyspark nor pyarrow: it reads metadata only."""
    project.append(1)
    arguments = ["-C", str(project.folder), *CAPTURE]
    assert not {"pyspark", "pyarrow"} & import_of(f"from calve.cli.entry import run; assert run({arguments!r}) == 0")


@pytest.mark.parametrize(("command", "most"), [("lag", 123), ("captures", 122)])
def test_a_short_answer_loads_little_of_calve(
    project: Project, import_of: Callable[[str], set[str]], command: str, most: int
) -> None:
    """A tenth more than when this was written, at most: each module is paid for at every start (bench/startup.py)."""
    project.append(1)
    assert project.calve(*CAPTURE).code == 0
    arguments = ["-C", str(project.folder), command, "--json"]
    loaded = import_of(f"from calve.cli.entry import run; assert run({arguments!r}) == 0")
    ours = sorted(name for name in loaded if name.partition(".")[0] == "calve")
    assert len(ours) <= most, "\n".join(ours)
    assert not {"fastapi", "pyarrow", "pyspark"} & loaded
