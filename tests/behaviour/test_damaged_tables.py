"""Tables whose metadata is damaged, as users and services meet them: a named error, at once, and nothing else stops."""

import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.engines import Playground
from tests.servers import Site, services_on, site_on

from calve.app import captures_on
from calve.capture import avro
from calve.cli import entry
from calve.errors import LakeCorrupt
from calve.lake import Lake, LoadedTable
from calve.settings import load
from calve.testing import PyIcebergWriter

CONSUMER = "demo.daily"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give a project whose table has been captured once, and has changed since."""
    configured = load(tmp_path, {})
    writer = PyIcebergWriter(configured)
    writer.create("db.events", {"id": "long", "day": "int", "n": "long"}, days=True)
    writer.append([{"id": 1, "day": 1, "n": 0}])
    assert (
        entry.run(
            [
                "-C",
                str(tmp_path),
                "checkpoint",
                "set",
                "db.events",
                "--consumer",
                CONSUMER,
                "--to",
                "latest",
                "--reason",
                "test",
            ]
        )
        == 0
    )
    writer.append([{"id": 2, "day": 1, "n": 0}])
    writer.append([{"id": 3, "day": 2, "n": 0}])
    writer.close()
    return tmp_path


def _loaded(project: Path) -> tuple[Path, dict[str, Any]]:
    lake = Lake(load(project, {}))
    loaded = lake.catalog("lake").load(lake.parse("db.events"))
    lake.close()
    return Path(loaded.metadata_location), loaded.metadata


def _metadata(change: Callable[[bytes], bytes]) -> Callable[[Path], Path]:
    def damage(project: Path) -> Path:
        path, _ = _loaded(project)
        path.write_bytes(change(path.read_bytes()))
        return path

    return damage


def _with(**fields: Any) -> Callable[[Path], Path]:
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    return _metadata(lambda raw: json.dumps(json.loads(raw) | named).encode())


def _own_parent(raw: bytes) -> bytes:
    document = json.loads(raw)
    for snapshot in document["snapshots"]:
        snapshot["parent-snapshot-id"] = document["current-snapshot-id"]
    return json.dumps(document).encode()


def _pipe(project: Path) -> Path:
    path, _ = _loaded(project)
    path.unlink()
    os.mkfifo(path)
    return path


def _list(change: Callable[[bytes], bytes]) -> Callable[[Path], Path]:
    def damage(project: Path) -> Path:
        _, metadata = _loaded(project)
        path = Path(metadata["snapshots"][-1]["manifest-list"])
        path.write_bytes(change(path.read_bytes()))
        return path

    return damage


def _manifests(change: Callable[[bytes], bytes]) -> Callable[[Path], Path]:
    def damage(project: Path) -> Path:
        found = sorted(_loaded(project)[0].parent.glob("*-m*.avro"))
        for path in found:
            path.write_bytes(change(path.read_bytes()))
        return found[0].parent

    return damage


def _block_of_a_gibibyte(raw: bytes) -> bytes:
    header, at = avro.read_header(raw)
    assert header
    return raw[: at + 16] + avro.encode_long(1) + avro.encode_long(1 << 30) + raw[-40:]


def _path_of_a_gibibyte(raw: bytes) -> bytes:
    """Return a manifest list or manifest whose first text says that it has a gibibyte."""
    container = avro.read_container(raw)
    count, block = container.blocks[0]
    at = bytes(block).index(b"/")  # the first path, behind its length
    payload = block[: at - 2] + avro.encode_long(1 << 30) + block[at:]
    return avro.write_container(container.header, payload, count)


def _empty_records(raw: bytes) -> bytes:
    return avro.write_container(avro.read_container(raw).header, b"", 10**9)


DAMAGES: dict[str, Callable[[Path], Path]] = {
    "metadata that is cut": _metadata(lambda raw: raw[:-20]),
    "metadata that is empty": _metadata(lambda _: b""),
    "metadata that is a bomb": _metadata(lambda _: gzip.compress(bytes(100 << 20), 1)),
    "metadata in brackets": _metadata(lambda _: b"[" * 1_000_000),
    "metadata of other types": _with(snapshots="none", refs=[]),
    "properties that are none": _with(properties=[1]),
    "a snapshot that is its own ancestor": _metadata(_own_parent),
    "a pipe for metadata": _pipe,
    "a list that is cut": _list(lambda raw: raw[:-30]),
    "a list that is none": _list(lambda _: b"PAR1"),
    "a list with a block of 1 GiB": _list(_block_of_a_gibibyte),
    "a list with a path of 1 GiB": _list(_path_of_a_gibibyte),
    "a list of empty records": _list(_empty_records),
    "manifests that are cut": _manifests(lambda raw: raw[:-30]),
    "manifests that are empty": _manifests(lambda _: b""),
    "manifests with a block of 1 GiB": _manifests(_block_of_a_gibibyte),
    "manifests with a path of 1 GiB": _manifests(_path_of_a_gibibyte),
    "manifests of empty records": _manifests(_empty_records),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_commands_name_the_file_that_is_damaged(case: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Plan and capture end in lake_corrupt; lag tells it beside what else there is."""
    path = DAMAGES[case](project)
    for command in ("plan", "capture"):
        capsys.readouterr()
        options = ["db.events", "--consumer", CONSUMER, "--range", "id", "--json"]
        assert entry.run(["-C", str(project), command, *options]) == 1
        error = json.loads(capsys.readouterr().out)["error"]
        assert error["code"] == "lake_corrupt"
        assert str(path) in error["context"]["path"]
        assert "Traceback" not in error["message"]
    assert entry.run(["-C", str(project), "lag", "--json"]) == 0


@pytest.fixture
def site(playground: Playground, project: Path) -> Iterator[Site]:
    """Give a server on that lake."""
    lake = Lake(load(project, {}))
    with site_on(playground, services_on(playground, captures=captures_on(lake, playground.store))) as site:
        yield site
    lake.close()


@pytest.mark.parametrize("case", ["a snapshot that is its own ancestor", "manifests with a path of 1 GiB"])
def test_a_server_names_the_file_and_continues(case: str, site: Site, project: Path) -> None:
    """A problem document, and the next request is answered."""
    DAMAGES[case](project)
    wanted = {"tables": ["db.events"], "consumer": CONSUMER, "ranges": ["id"]}
    for _ in range(2):
        assert site.post("/captures/plan", wanted, 422)["code"] == "lake_corrupt"
    assert site.get("/checkpoints")["elements"] == []


def test_a_table_that_is_damaged_does_not_hold_up_others(tmp_path: Path) -> None:
    """Where many tables are loaded, the error is that of the one that cannot be read."""
    import pyarrow as pa

    lake = Lake(load(tmp_path, {}))
    catalog = lake.catalog("lake")
    catalog.pyiceberg().create_namespace("db")
    for name in ("db.good", "db.bad"):
        catalog.pyiceberg().create_table(name, pa.schema([("a", pa.int64())]))
    good, bad = lake.parse("db.good"), lake.parse("db.bad")
    path = Path(catalog.load(bad).metadata_location.removeprefix("file://"))
    lake.close()
    path.write_bytes(gzip.compress(bytes(100 << 20), 1))
    lake = Lake(load(tmp_path, {}))  # one that has not read the file yet
    found = dict(lake.load_all([good, bad]))
    assert isinstance(found[good], LoadedTable)
    assert isinstance(found[bad], LakeCorrupt)
    lake.close()
