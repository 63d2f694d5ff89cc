"""The lake on a real S3 server: what works there, what it costs, and what happens when it fails."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.engines import DONE, Playground
from tests.faults.s3_proxy import Fault, Request, S3Proxy
from tests.scope import in_ci
from tests.services.adls import ACCOUNT, throwaway_adls
from tests.services.gcs import throwaway_gcs
from tests.services.s3 import S3Server, throwaway_s3

from calve.app import log_uploads, open_captures
from calve.app.log_uploads import uploads_on
from calve.capture import Captures
from calve.cli import entry
from calve.engine import LogLimits, Outcome, StepContext
from calve.errors import FilesLost, LakeRefused, LakeUnavailable
from calve.lake import Files, Lake
from calve.settings import FILE, Settings, StepLogSettings, load

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

A_FILE = "s3://lake/kept"
CONTENT = b"0123456789" * 10_000
DEAD = {"s3.endpoint": "http://127.0.0.1:9"}


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    """Yield an S3 server with a bucket, a file in it, and a user who may not read it."""
    with throwaway_s3() as server:
        server.make_bucket("lake")
        server.add_user("stranger", "stranger-secret")
        Files(server.properties).write(A_FILE, CONTENT)
        yield server


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[S3Proxy]:
    """Yield a network in front of the server."""
    with S3Proxy(s3.port) as proxy:
        yield proxy


@dataclass(frozen=True, slots=True)
class Place:
    """Where a lake can be."""

    location: str
    properties: dict[str, str]


@pytest.fixture(scope="module", params=in_ci(["s3"], otherwise=["s3", "s3a", "gcs", "adls"]))
def place(s3: S3Server, request: pytest.FixtureRequest) -> Iterator[Place]:
    """Yield a bucket of each kind of store."""
    match request.param:
        case "gcs":
            with throwaway_gcs("lake") as properties:
                yield Place("gs://lake", properties)
        case "adls":
            with throwaway_adls("lake") as properties:
                yield Place(f"abfss://lake@{ACCOUNT}.dfs.core.windows.net", properties)
        case scheme:
            yield Place(f"{scheme}://lake", s3.properties)


# Files.


def test_a_file_is_written_read_and_deleted(place: Place) -> None:
    """What is written to an object store can be read whole and in part, and is deleted once."""
    files = Files(place.properties)
    path = f"{place.location}/some/a b"
    for content in (b"0123456789", b""):
        files.write(path, content)
        assert files.read(path) == content
    files.write(path, CONTENT)
    assert files.read_range(path, 13, 4) == b"3456"
    assert [files.delete(path), files.exists(path), files.delete(path)] == [True, False, False]
    for read in (files.read, lambda lost: files.read_range(lost, 0, 1)):
        with pytest.raises(FilesLost):
            read(path)


@pytest.mark.parametrize("style", [{"s3.force-virtual-addressing": "true"}, {"s3.path-style-access": "false"}])
def test_a_bucket_may_be_a_host(s3: S3Server, proxy: S3Proxy, style: dict[str, str]) -> None:
    """Virtual-host style is on by PyIceberg's property, and by Spark's."""
    files = Files(s3.properties_at(proxy.port) | {"s3.endpoint": f"http://{s3.domain}:{proxy.port}"} | style)
    assert files.read(A_FILE) == CONTENT
    assert {request.headers["host"] for request in proxy.requests} == {f"lake.{s3.domain}:{proxy.port}"}


def test_a_session_token_is_sent(s3: S3Server, proxy: S3Proxy) -> None:
    """The server sees the token; this one does not know it, and the error names the setting."""
    files = Files(s3.properties_at(proxy.port) | {"s3.session-token": "temporary"})
    with pytest.raises(LakeRefused) as raised:
        files.read(A_FILE)
    assert {request.headers["x-amz-security-token"] for request in proxy.requests} == {"temporary"}
    assert "s3.session-token" in raised.value.remedy


def test_a_store_needs_no_region(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Amazon is not asked for the region of a bucket that is not there."""
    asked: list[object] = []
    monkeypatch.setattr("pyarrow.fs.resolve_s3_region", lambda **question: asked.append(question))
    properties = {name: text for name, text in s3.properties.items() if name != "s3.region"}
    assert Files(properties).read(A_FILE) == CONTENT
    assert not asked


# Refusals.


@pytest.mark.parametrize(
    ("wrong", "setting"),
    [
        ({"s3.access-key-id": "nobody"}, "s3.access-key-id"),
        ({"s3.secret-access-key": "wrong"}, "s3.secret-access-key"),
        ({"s3.access-key-id": "stranger", "s3.secret-access-key": "stranger-secret"}, "permission"),
        ({"s3.region": "eu-west-1"}, "s3.region"),
    ],
)
def test_a_refusal_names_the_setting(s3: S3Server, wrong: dict[str, str], setting: str) -> None:
    """Of reading, too, where a store does not say why; it is permanent, so nothing is retried."""
    files = Files(s3.properties | wrong)
    for attempt in (
        lambda: files.read(A_FILE),
        lambda: files.exists(A_FILE),
        lambda: files.write("s3://lake/new", b""),
        lambda: files.delete(A_FILE),
    ):
        with pytest.raises(LakeRefused) as raised:
            attempt()
        assert setting in raised.value.remedy
        assert not raised.value.is_passing


def test_a_missing_bucket_is_told_from_a_missing_file(s3: S3Server) -> None:
    """A typing error in a location does not look like lost data."""
    files = Files(s3.properties)
    for attempt in (lambda: files.read("s3://leak/kept"), lambda: files.write("s3://leak/kept", b"")):
        with pytest.raises(LakeRefused, match="no such bucket"):
            attempt()


# Faults.


def first(fault: Fault, method: str) -> Callable[[Request], Fault | None]:
    """Return the fate of the first request of a method."""
    left = [fault]
    return lambda request: left.pop() if left and request.method == method else None


@pytest.mark.parametrize("fault", [Fault.THROTTLE, Fault.CUT, Fault.LOSE_ANSWER, Fault.SLOW])
def test_a_passing_fault_is_retried(s3: S3Server, proxy: S3Proxy, fault: Fault) -> None:
    """Whatever request it strikes, the content is right."""
    files = Files(s3.properties_at(proxy.port))
    for method in ("HEAD", "GET"):
        proxy.fate = first(fault, method)
        assert files.read(A_FILE) == CONTENT
    proxy.fate = first(fault, "PUT")
    files.write("s3://lake/written", CONTENT)
    assert Files(s3.properties).read("s3://lake/written") == CONTENT


def test_a_store_that_is_overloaded_is_left_alone_for_a_while(s3: S3Server, proxy: S3Proxy) -> None:
    """More requests are throttled than the AWS SDK sends before it gives up."""
    files = Files(s3.properties_at(proxy.port))
    proxy.fate = lambda request: Fault.THROTTLE if request.number < 4 else None
    assert files.read(A_FILE) == CONTENT
    assert proxy.counted() == {"GET": 1, "HEAD": 5}


@pytest.mark.parametrize(
    ("fault", "remedy"), [(Fault.HANG, "s3.request-timeout"), (Fault.CUT, "s3.endpoint"), (None, "s3.endpoint")]
)
def test_a_lasting_fault_is_reported(s3: S3Server, proxy: S3Proxy, fault: Fault | None, remedy: str) -> None:
    """Within a finite time, as something that may pass."""
    proxy.fate = lambda request: fault if request.method == "GET" else None
    where = s3.properties_at(proxy.port) | {"s3.request-timeout": "1"} | ({} if fault else DEAD)
    with pytest.raises(LakeUnavailable) as raised:
        Files(where).read(A_FILE)
    assert remedy in raised.value.remedy


# Captures.


class Project:
    """A project whose warehouse is on an object store, with a table."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.place = place
        self.folder = folder
        self.lake = Lake(self.configure())
        catalog = self.lake.catalog("lake").pyiceberg()
        catalog.create_namespace("db")
        self.table = self._partitioned(catalog)

    def configure(self, **changed: str) -> Settings:
        """Write the settings, with other properties of the store."""
        location = f"{self.place.location}/{self.folder.name}"
        properties = self.place.properties | {f"s3.{name.replace('_', '-')}": text for name, text in changed.items()}
        lines = [
            f"[capture]\nlocation = '{location}/icdc'",
            f"[catalogs.lake]\nuri = 'sqlite:///catalog.db'\nwarehouse = '{location}/warehouse'",
            *(f"{json.dumps(name)} = {json.dumps(text)}" for name, text in properties.items()),
        ]
        (self.folder / FILE).write_text("\n".join(lines))
        return load(self.folder, {})

    def _partitioned(self, catalog: "Catalog") -> "Table":
        import pyarrow as pa

        table = catalog.create_table("db.events", pa.schema([("id", pa.int64()), ("part", pa.int64())]))
        with table.update_spec() as spec:
            spec.add_identity("part")
        return table.refresh()

    def append(self, files: int) -> None:
        """Append a row to each of some partitions, in one commit."""
        import pyarrow as pa

        self.table.append(pa.table({"id": list(range(files)), "part": list(range(files))}))

    def ids(self, relation: str | None) -> list[int]:
        """Return the ids of the rows of a captured table."""
        assert relation is not None
        found = self.lake.catalog("lake").pyiceberg().load_table(relation.removeprefix("lake."))
        return sorted(found.scan().to_arrow()["id"].to_pylist())


@pytest.fixture
def project(s3: S3Server, proxy: S3Proxy, tmp_path: Path) -> Iterator[Project]:
    """Yield a project on S3, behind the proxy."""
    made = Project(Place("s3://lake", s3.properties_at(proxy.port)), tmp_path)
    yield made
    made.lake.close()


@pytest.fixture
def captures(project: Project) -> Iterator[Captures]:
    """Yield its captures."""
    with open_captures(project.configure()) as opened:
        yield opened


def test_a_capture_lives_on_an_object_store(place: Place, tmp_path: Path) -> None:
    """From the plan to its removal, with a lease: all that it made goes, and the table is as before."""
    project, files = Project(place, tmp_path), Files(place.properties)
    with open_captures(project.configure()) as captures:
        project.append(5)
        assert captures.plan(["db.events"], "me").tables[0].files == 5
        made = captures.capture(["db.events"], "me", lease=True)
        assert made.capture_id is not None
        assert project.ids(made.tables[0].relation) == [0, 1, 2, 3, 4]
        assert [len(found) for found in captures.files(made.capture_id, check=True).values()] == [5]
        captures.commit(made.capture_id)
        project.append(1)
        assert captures.lag("me")[0].pending_commits == 1
        paths = [path for _, path in captures.stored(made.capture_id)[0].artifacts.files]
        assert [files.exists(path) for path in paths] == [True, True, True]
        captures.collect_garbage(timedelta(0))
        assert [files.exists(path) for path in paths] == [False, False, False]
    assert project.table.refresh().refs().keys() == {"main"}
    project.lake.close()


@pytest.mark.parametrize(("lease", "most"), [(False, 9), (True, 12)])
def test_a_capture_needs_few_requests(
    project: Project, captures: Captures, proxy: S3Proxy, *, lease: bool, most: int
) -> None:
    """As many in a table of ten manifests as in a small one; one request writes a file."""
    for size in (1, 9):
        for _ in range(size):
            project.append(1)
        captures.commit(captures.capture(["db.events"], "me", supersede=True).capture_id or "")
        project.append(5)
        proxy.requests.clear()
        captures.capture(["db.events"], "me", lease=lease)
        assert len(proxy.requests) <= most, proxy.counted()


@pytest.mark.parametrize(
    ("changed", "code", "setting"),
    [
        ({"secret_access_key": "wrong"}, "lake_refused", "s3.secret-access-key"),
        ({"endpoint": DEAD["s3.endpoint"]}, "lake_unavailable", "s3.endpoint"),
    ],
)
def test_a_plan_says_what_is_wrong_with_the_store(
    project: Project, changed: dict[str, str], code: str, setting: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Within seconds, and not as a bug."""
    project.configure(**changed)
    started = time.monotonic()
    assert entry.run(["-C", str(project.folder), "plan", "db.events", "--consumer", "me", "--json"])
    assert time.monotonic() - started < 15
    problem = json.loads(capsys.readouterr().out)["error"]
    assert problem["code"] == code
    assert setting in problem["remedy"]


# Logs.


def test_whole_logs_are_kept_on_an_object_store(
    playground: Playground, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are written in parts, and read back in full."""
    monkeypatch.setattr(log_uploads, "PART", 3_000)
    playground.executor.limits = LogLimits(head=2_000, tail=1_000, part=3_000)
    playground.tools = replace(playground.tools, log_files=Files(s3.properties))
    playground.engine = replace(playground.engine, tools=playground.tools)
    settings = StepLogSettings(location="s3://lake/logs", properties=s3.properties)
    uploads = uploads_on(playground.folder, settings, tmp_path, playground.state)
    assert uploads is not None
    lines = [f"line {number:04}\n" for number in range(1_000)]

    def write(context: StepContext) -> Outcome:
        for line in lines:
            context.log(line)
        return DONE

    playground.push("Workflow: {id: w, jobs: [{job: {id: job, type: Sleep}}]}")
    playground.script.parts["job"] = write
    started = playground.start()
    uploads.turn()
    reader = playground.engine.log_reader(playground.attempt(started, "job").uuid)
    assert "".join(page.shown() for page in reader.pages()) == "".join(lines)
    assert len(list((s3.folder / "lake" / "logs").rglob("*.log"))) == 4
