"""The page about the architecture names the functions that are really called."""

from pathlib import Path

from tests.call_traces import called, way

import calve
from calve.cli.entry import run

SHELL = """
Workflow:
  id: w
  jobs:
    - job: {id: a, type: Shell, shell: {script: "true"}}
    - job: {id: b, type: Shell, shell: {script: "true"}}
    - job: {id: c, type: Shell, shell: {script: "true"}}
  dag: sequential
"""


def test_the_way_of_a_capture(tmp_path: Path) -> None:
    """Each function of the page is called, in the order of the page."""
    import pyarrow as pa

    with calve.connect(tmp_path) as lake:
        catalog = lake.lake.catalog("lake").pyiceberg()
        catalog.create_namespace("db")
        rows = pa.table({"id": [1]})
        catalog.create_table("db.events", schema=rows.schema).append(rows)
    command = ["-C", str(tmp_path), "capture", "db.events", "--consumer", "daily", "--range", "id"]
    seen = called(lambda: run(command))
    assert [one for one in seen if one in set(way("A capture"))] == way("A capture")


def test_the_way_of_a_run(tmp_path: Path) -> None:
    """Each function of the page is called, in the order of the page."""
    (tmp_path / "w.yaml").write_text(SHELL)
    assert run(["-C", str(tmp_path), "push", str(tmp_path / "w.yaml")]) == 0
    seen = called(lambda: run(["-C", str(tmp_path), "run", "w"]))
    assert [one for one in seen if one in set(way("A run"))] == way("A run")
