"""Docker runs a container once, whoever looks after it, and leaves none behind; told by a daemon that is a fake."""

import json
import socketserver
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.unit.steps.contexts import FakeContext

from calve.engine import Outcome, State
from calve.errors import LeaseLost, StepFailed
from calve.steps.docker import Docker
from calve.steps.docker.containers import reference

NAME = "calve-0195-attempt"


@dataclass
class Container:
    """What the daemon knows of a container."""

    body: dict[str, Any]
    status: str = "created"
    exit_code: int = 0
    output: list[tuple[int, bytes]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    starts: int = 0
    more: dict[str, Any] = field(default_factory=dict)


@dataclass
class FakeDaemon:
    """Speaks as much of the Engine's API as is needed."""

    host: str = ""
    images: set[str] = field(default_factory=lambda: {"python:3.11"})
    registry: set[str] = field(default_factory=lambda: {"python:3.11"})
    containers: dict[str, Container] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    # What the next container does.
    exit_code: int = 0
    output: list[tuple[int, bytes]] = field(default_factory=list)
    ends_by_itself: bool = True
    start_error: tuple[int, str] | None = None
    create_error: tuple[int, str] | None = None
    more: dict[str, Any] = field(default_factory=dict)
    log_error: int = 200

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        """Return the status and the JSON of an answer."""
        self.calls.append(f"{method} {path}")
        match method, path.strip("/").split("/"):
            case "POST", ["containers", "create"]:
                return self._create(query["name"], body)
            case "POST", ["images", "create"]:
                return self._pull(query)
            case "GET", ["containers", name, "json"] if name in self.containers:
                found = self.containers[name]
                return 200, {"State": {"Status": found.status, "ExitCode": found.exit_code, **found.more}}
            case "POST", ["containers", name, "start"] if name in self.containers:
                return self._start(self.containers[name])
            case "POST", ["containers", name, "stop"] if name in self.containers:
                self._end(self.containers[name], 143)
                return 204, None
            case "DELETE", ["containers", name] if name in self.containers:
                self._end(self.containers[name], 137)
                del self.containers[name]
                self.removed.append(name)
                return 204, None
            case _:
                return 404, {"message": f"No such container: {path}"}

    def _create(self, name: str, body: dict[str, Any]) -> tuple[int, Any]:
        if self.create_error:
            return self.create_error[0], {"message": self.create_error[1]}
        if name in self.containers:
            return 409, {"message": f"The container name {name} is already in use"}
        if body["Image"] not in self.images:
            return 404, {"message": f"No such image: {body['Image']}"}
        self.bodies.append(body)
        self.containers[name] = Container(
            body, exit_code=self.exit_code, output=list(self.output), more=dict(self.more)
        )
        return 201, {"Id": "c1", "Warnings": []}

    def _pull(self, query: dict[str, str]) -> tuple[int, Any]:
        image = f"{query['fromImage']}:{query['tag']}"
        if image.startswith("broken"):
            return 200, [{"status": "Pulling"}, {"error": "connection reset"}]
        if image.startswith("throttled"):
            return 500, {"message": "toomanyrequests: You have reached your pull rate limit."}
        if image.startswith("streamed"):
            return 200, [{"error": f"manifest for {image} not found: manifest unknown"}]
        if image not in self.registry:
            return 404, {"message": f"manifest for {image} not found"}
        self.images.add(image)
        return 200, [{"status": "Pulling"}, {"status": "Done"}]

    def _start(self, container: Container) -> tuple[int, Any]:
        if self.start_error:
            return self.start_error[0], {"message": self.start_error[1]}
        container.status = "running"
        container.starts += 1
        if self.ends_by_itself:
            self._end(container, container.exit_code)
        return 204, None

    def _end(self, container: Container, code: int) -> None:
        if not container.over.is_set():
            container.status, container.exit_code = "exited", code
            container.over.set()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        daemon: FakeDaemon = self.server.daemon  # type: ignore[attr-defined]
        split = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(split.query).items()}
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if split.path.endswith("/logs") and daemon.log_error != 200:
            self.send_response(daemon.log_error)
            self.send_header("Content-Length", "7")
            self.end_headers()
            self.wfile.write(b"no JSON")
            return
        if split.path.endswith("/logs"):
            self._logs(daemon.containers[split.path.split("/")[2]])
            return
        status, said = daemon.answer(self.command, split.path, query, json.loads(text) if text else None)
        lines = said if isinstance(said, list) else [] if said is None else [said]
        body = "\r\n".join(json.dumps(line) for line in lines).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _logs(self, container: Container) -> None:
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        for stream, data in container.output:
            frame = bytes([stream, 0, 0, 0]) + len(data).to_bytes(4, "big") + data
            self.wfile.write(frame[:5])  # a frame may come in pieces
            self.wfile.flush()
            self.wfile.write(frame[5:])
            self.wfile.flush()
        container.over.wait(30)
        self.close_connection = True

    do_GET = do_POST = do_DELETE = _answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def address_string(self) -> str:
        """Return a name: a unix socket has no address."""
        return "unix"


class _Listener(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, *_: object) -> None:
        """Bear with clients that go away."""


@pytest.fixture
def daemon() -> Iterator[FakeDaemon]:
    """Serve a fake daemon on a unix socket."""
    with tempfile.TemporaryDirectory() as folder:  # the path of a socket must be short
        path = f"{folder}/docker.sock"
        fake = FakeDaemon(host=f"unix://{path}")
        with _Listener(path, _Handler) as listener:
            listener.daemon = fake  # type: ignore[attr-defined]
            thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            yield fake
            for container in fake.containers.values():
                container.over.set()
            listener.shutdown()
            thread.join()


def _context(tmp_path: Path, **docker: Any) -> FakeContext:
    return FakeContext(tmp_path, {"docker": {"image": "python:3.11", **docker}})


def test_a_container_runs_to_its_end_and_is_removed(daemon: FakeDaemon, tmp_path: Path) -> None:
    """Both of its streams are logged, also where a frame comes in pieces."""
    daemon.output = [(1, b"hello\n"), (2, b"careful\n"), (1, b"by"), (1, b"e")]
    context = _context(tmp_path)
    outcome = Docker(daemon.host, 1).execute(context)
    assert (outcome.state, outcome.outputs) == (State.DONE, {"exit_code": 0})
    assert context.text == "hello\ncareful\nbye\n"
    assert (daemon.removed, daemon.containers) == ([NAME], {})
    assert context.kept[0] == {"docker": {"container": NAME, "host": daemon.host}}


def test_every_field_reaches_the_daemon(daemon: FakeDaemon, tmp_path: Path) -> None:
    """In the shape of the Engine's API."""
    context = _context(
        tmp_path,
        command="python 'my job.py'",
        args=["-n", 3, True],
        entrypoint=["/bin/tini", "--"],
        env={"A": "x", "B": 2, "C": True},
        volumes=["/data:/data:ro"],
        working_dir="/work",
        user=1000,
        network="none",
        cpu="1.5",
        memory="512m",
        gpu="all",
    )
    assert Docker(daemon.host, 1).execute(context).state is State.DONE
    assert daemon.bodies == [
        {
            "Image": "python:3.11",
            "Cmd": ["python", "my job.py", "-n", "3", "true"],
            "Entrypoint": ["/bin/tini", "--"],
            "Env": ["A=x", "B=2", "C=true"],
            "WorkingDir": "/work",
            "User": "1000",
            "Labels": {"calve.attempt": "0195-attempt", "calve.step": "demo.pipeline/3/1/job.1/2"},
            "HostConfig": {
                "Binds": ["/data:/data:ro"],
                "NetworkMode": "none",
                "NanoCpus": 1_500_000_000,
                "Memory": 512 * 1024 * 1024,
                "DeviceRequests": [{"Driver": "", "Count": -1, "Capabilities": [["gpu"]]}],
            },
        }
    ]


def test_what_is_not_given_is_left_to_the_image(daemon: FakeDaemon, tmp_path: Path) -> None:
    """And nothing of the worker's environment goes in."""
    Docker(daemon.host, 1).execute(_context(tmp_path))
    assert set(daemon.bodies[0]) == {"Image", "Env", "Labels", "HostConfig"}
    assert (daemon.bodies[0]["Env"], daemon.bodies[0]["HostConfig"]) == ([], {})


@pytest.mark.parametrize(
    ("docker", "host"),
    [
        ({"memory": 1024}, {"Memory": 1024}),
        ({"memory": "2GiB"}, {"Memory": 2 << 30}),
        ({"memory": "1.5g"}, {"Memory": 3 << 29}),
        ({"cpu": 2}, {"NanoCpus": 2_000_000_000}),
        ({"gpu": 2}, {"DeviceRequests": [{"Driver": "", "Count": 2, "Capabilities": [["gpu"]]}]}),
    ],
)
def test_amounts_are_numbers_or_texts(
    daemon: FakeDaemon, tmp_path: Path, docker: dict[str, Any], host: dict[str, Any]
) -> None:
    """As Docker's own command line takes them."""
    Docker(daemon.host, 1).execute(_context(tmp_path, **docker))
    assert daemon.bodies[0]["HostConfig"] == host


@pytest.mark.parametrize(
    "docker", [{"memory": "much"}, {"cpu": "two"}, {"gpu": "some"}, {"command": "it's"}, {"pull": "often"}]
)
def test_what_makes_no_sense_is_fatal(daemon: FakeDaemon, tmp_path: Path, docker: dict[str, Any]) -> None:
    """Before anything is started."""
    outcome = Docker(daemon.host, 1).execute(_context(tmp_path, **docker))
    assert (outcome.state, daemon.containers) == (State.FATAL_ERROR, {})


def test_an_exit_code_other_than_zero_fails_the_step(daemon: FakeDaemon, tmp_path: Path) -> None:
    """The message has the last words of standard error."""
    daemon.exit_code, daemon.output = 3, [(1, b"fine\n"), (2, b"no such table\n")]
    outcome = Docker(daemon.host, 1).execute(_context(tmp_path))
    assert (outcome.state, outcome.outputs) == (State.USER_ERROR, {"exit_code": 3})
    assert outcome.message == "The container ended with exit code 3.\nno such table"
    assert daemon.removed == [NAME]


def test_running_out_of_memory_is_trouble_of_the_platform(daemon: FakeDaemon, tmp_path: Path) -> None:
    """It may fit elsewhere, or later."""
    daemon.exit_code, daemon.more = 137, {"OOMKilled": True}
    outcome = Docker(daemon.host, 1).execute(_context(tmp_path))
    assert (outcome.state, "memory" in outcome.message) == (State.PLATFORM_ERROR, True)


def test_outputs_are_printed_between_markers(daemon: FakeDaemon, tmp_path: Path) -> None:
    """On either stream."""
    printed = b'a\nMAESTRO_OUTPUT_START\n{"params": {"n": {"value": 5, "type": "LONG"}}, "artifacts": {"x": {}}}\n'
    daemon.output = [(1, printed[:30]), (1, printed[30:] + b"MAESTRO_OUTPUT_END\nb"), (2, b"CALVE_OUTPUT_START\n")]
    daemon.output += [(2, b'{"m": "q"}\nCALVE_OUTPUT_END')]
    outcome = Docker(daemon.host, 1).execute(_context(tmp_path))
    assert outcome.outputs == {"n": 5, "m": "q", "exit_code": 0}
    assert outcome.artifacts == {"x": {}}


@pytest.mark.parametrize("printed", [b"MAESTRO_OUTPUT_START\n{}", b"MAESTRO_OUTPUT_START\nno\nMAESTRO_OUTPUT_END\n"])
def test_outputs_that_cannot_be_read_fail_the_step(daemon: FakeDaemon, tmp_path: Path, printed: bytes) -> None:
    """Though the program succeeded."""
    daemon.output = [(1, printed)]
    assert Docker(daemon.host, 1).execute(_context(tmp_path)).state is State.FATAL_ERROR


def test_outputs_have_a_limit(daemon: FakeDaemon, tmp_path: Path) -> None:
    """A program that prints without end fills no memory."""
    daemon.output = [(1, b"MAESTRO_OUTPUT_START\n" + b"x" * 1_000_000 + b"\n")] + [(1, b"y" * 60_000)] * 5
    outcome = Docker(daemon.host, 1).execute(_context(tmp_path))
    assert (outcome.state, "bytes" in outcome.message) == (State.FATAL_ERROR, True)


def test_a_missing_image_is_fetched(daemon: FakeDaemon, tmp_path: Path) -> None:
    """And then run."""
    daemon.images.clear()
    context = _context(tmp_path)
    assert Docker(daemon.host, 1).execute(context).state is State.DONE
    assert "Fetching the image python:3.11" in context.text
    assert daemon.calls.count("POST /images/create") == 1


@pytest.mark.parametrize(("pull", "fetches"), [("missing", 0), ("always", 1), ("never", 0)])
def test_an_image_that_is_there_is_fetched_as_told(daemon: FakeDaemon, tmp_path: Path, pull: str, fetches: int) -> None:
    """Only if it is to be fetched always."""
    assert Docker(daemon.host, 1).execute(_context(tmp_path, pull=pull)).state is State.DONE
    assert daemon.calls.count("POST /images/create") == fetches


def test_an_image_that_nobody_has_is_fatal(daemon: FakeDaemon, tmp_path: Path) -> None:
    """As is one that may not be fetched; a broken connection and a throttled registry are tried again."""
    unknown = Docker(daemon.host, 1).execute(_context(tmp_path, image="nobody/has:it"))
    assert (unknown.state, "nobody/has:it" in unknown.message) == (State.FATAL_ERROR, True)
    never = Docker(daemon.host, 1).execute(_context(tmp_path, image="nobody/has:it", pull="never"))
    assert (never.state, never.message) == (State.FATAL_ERROR, "Docker does not have the image nobody/has:it.")
    broken = Docker(daemon.host, 1).execute(_context(tmp_path, image="broken"))
    assert (broken.state, "connection reset" in broken.message) == (State.PLATFORM_ERROR, True)
    assert Docker(daemon.host, 1).execute(_context(tmp_path, image="throttled")).state is State.PLATFORM_ERROR
    assert Docker(daemon.host, 1).execute(_context(tmp_path, image="streamed")).state is State.FATAL_ERROR


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("python", ("python", "latest")),
        ("a/b:1", ("a/b", "1")),
        ("host:5000/a/b", ("host:5000/a/b", "latest")),
        ("host:5000/a/b:2", ("host:5000/a/b", "2")),
        ("a/b@sha256:cafe", ("a/b", "sha256:cafe")),
    ],
)
def test_an_image_is_named_by_repository_and_tag(image: str, parts: tuple[str, str]) -> None:
    """The colon of a port is none of a tag."""
    assert reference(image) == parts


class _Losing(FakeContext):
    """The context of a worker that loses its attempt after the first call of keep."""

    def keep(self, artifacts: Mapping[str, Any]) -> None:
        """Keep once."""
        if self.kept:
            raise LeaseLost
        super().keep(artifacts)


def _started(docker: Docker, context: FakeContext, daemon: FakeDaemon) -> tuple[threading.Thread, list[Outcome]]:
    """Run a step in a thread until its container runs."""
    ended: list[Outcome] = []

    def execute() -> None:
        with suppress(LeaseLost):
            ended.append(docker.execute(context))

    thread = threading.Thread(target=execute)
    thread.start()
    while NAME not in daemon.containers or daemon.containers[NAME].status != "running":
        time.sleep(0.01)
    return thread, ended


def test_a_worker_that_takes_over_finds_the_container(daemon: FakeDaemon, tmp_path: Path) -> None:
    """It is started once, and a worker that lost the attempt leaves its end alone."""
    daemon.ends_by_itself, daemon.output = False, [(1, b"working\n")]
    context = _Losing(tmp_path, {"docker": {"image": "python:3.11"}})
    lost, _ = _started(Docker(daemon.host, 1), context, daemon)
    second = context.again()
    taken, ended = _started(Docker(daemon.host, 1), second, daemon)
    while "working" not in second.text:
        time.sleep(0.01)
    container = daemon.containers[NAME]
    daemon._end(container, 0)
    taken.join()
    lost.join()
    assert (container.starts, len(daemon.bodies)) == (1, 1)
    assert ended[0].state is State.DONE
    assert "already exists: running" in second.text


def test_an_end_that_nobody_saw_is_taken(daemon: FakeDaemon, tmp_path: Path) -> None:
    """The container is not started again."""
    container = Container({}, status="exited", exit_code=4, starts=1)
    container.over.set()
    daemon.containers[NAME] = container
    outcome = Docker(daemon.host, 1).execute(_context(tmp_path).again())
    assert (outcome.state, outcome.outputs, container.starts) == (State.USER_ERROR, {"exit_code": 4}, 1)
    assert daemon.removed == [NAME]


def test_an_end_that_was_kept_counts(daemon: FakeDaemon, tmp_path: Path) -> None:
    """Also if the worker died after the container was removed."""
    context = _context(tmp_path)
    first = Docker(daemon.host, 1).execute(context)
    assert Docker(daemon.host, 1).execute(context.again()) == first
    assert len(daemon.bodies) == 1


def test_a_container_of_another_machine_is_not_found(daemon: FakeDaemon, tmp_path: Path) -> None:
    """One is started here, and the log says so."""
    context = _context(tmp_path).again()
    assert Docker(daemon.host, 1).execute(context).state is State.DONE
    assert context.text == f"The container {NAME} does not exist on this machine; starting it.\n"


def test_a_container_that_was_created_only_is_started(daemon: FakeDaemon, tmp_path: Path) -> None:
    """By a worker that died in between."""
    daemon.containers[NAME] = Container({})
    assert Docker(daemon.host, 1).execute(_context(tmp_path).again()).state is State.DONE


@pytest.mark.parametrize(("timeout", "state"), [(None, State.STOPPED), (5.0, State.STOPPED), (0.0, State.TIMED_OUT)])
def test_an_interruption_stops_the_container(
    daemon: FakeDaemon, tmp_path: Path, timeout: float | None, state: State
) -> None:
    """And removes it."""
    daemon.ends_by_itself = False
    context = _context(tmp_path)
    context.timeout = timeout
    thread, ended = _started(Docker(daemon.host, 1), context, daemon)
    context.interruption.set()
    thread.join()
    assert (ended[0].state, daemon.containers) == (state, {})
    assert f"POST /containers/{NAME}/stop" in daemon.calls


def test_terminating_removes_whatever_is_there(daemon: FakeDaemon, tmp_path: Path) -> None:
    """Once, twice, or nothing at all."""
    daemon.containers[NAME] = Container({}, status="running")
    docker = Docker(daemon.host, 1)
    context = _context(tmp_path)
    context.artifacts["docker"] = {"container": NAME, "host": daemon.host}
    docker.terminate(context)
    docker.terminate(context)
    assert (daemon.containers, daemon.removed) == ({}, [NAME])


def test_a_container_that_someone_removed_is_lost(daemon: FakeDaemon, tmp_path: Path) -> None:
    """That is trouble of the platform."""
    daemon.ends_by_itself = False
    thread, ended = _started(Docker(daemon.host, 1), _context(tmp_path), daemon)
    daemon.containers.pop(NAME).over.set()
    thread.join()
    assert ended[0].state is State.PLATFORM_ERROR


@pytest.mark.parametrize("status", [400, 404])
def test_a_program_that_is_not_in_the_image_is_fatal(daemon: FakeDaemon, tmp_path: Path, status: int) -> None:
    """As is anything that the daemon refuses; no container is left."""
    daemon.start_error = status, "exec: nope: not found"
    outcome = Docker(daemon.host, 1).execute(_context(tmp_path, command=["nope"]))
    assert (outcome.state, "exec: nope: not found" in outcome.message) == (State.FATAL_ERROR, True)
    assert daemon.containers == {}


def test_something_else_that_the_daemon_lacks_is_fatal(daemon: FakeDaemon, tmp_path: Path) -> None:
    """It is not taken for the image."""
    daemon.create_error = 404, "network nowhere not found"
    outcome = Docker(daemon.host, 1).execute(_context(tmp_path, network="nowhere"))
    assert (outcome.state, outcome.message) == (State.FATAL_ERROR, "Docker refused: network nowhere not found")


def test_an_interruption_ends_the_fetching_of_an_image(daemon: FakeDaemon, tmp_path: Path) -> None:
    """Nothing is started then."""
    daemon.images.clear()
    context = _context(tmp_path)
    context.interruption.set()
    assert Docker(daemon.host, 1).execute(context).state is State.STOPPED
    assert daemon.containers == {}


def test_a_log_that_breaks_off_is_reported_and_no_failure(daemon: FakeDaemon, tmp_path: Path) -> None:
    """The container ends all the same."""
    daemon.log_error = 500
    context = _context(tmp_path)
    assert Docker(daemon.host, 1).execute(context).state is State.DONE
    assert context.text == "The log was interrupted: Docker failed: 500 no JSON\n"


def test_a_failing_daemon_is_trouble_of_the_platform(daemon: FakeDaemon, tmp_path: Path) -> None:
    """It may recover."""
    daemon.create_error = 500, "disk full"
    outcome = Docker(daemon.host, 1).execute(_context(tmp_path))
    assert (outcome.state, outcome.message) == (State.PLATFORM_ERROR, "Docker failed: disk full")


@pytest.mark.parametrize("host", ["unix:///nowhere/docker.sock", "tcp://127.0.0.1:1", "http://127.0.0.1:1"])
def test_no_daemon_is_fatal_and_says_what_to_set(tmp_path: Path, host: str) -> None:
    """Rather than tried for ever."""
    outcome = Docker(host, 1).execute(_context(tmp_path))
    assert outcome.state is State.FATAL_ERROR
    assert f"There is no Docker daemon at {host}" in outcome.message
    assert "[docker] host" in outcome.message


def test_an_address_of_another_kind_is_refused(tmp_path: Path) -> None:
    """With those that can be used."""
    context = _context(tmp_path)
    assert "unix:///PATH" in Docker("ssh://host", 1).execute(context).message
    Docker("ssh://host", 1).terminate(context)
    context.artifacts["docker"] = {}
    with pytest.raises(StepFailed, match=r"docker\.host is ssh://host"):
        Docker("ssh://host", 1).terminate(context)
