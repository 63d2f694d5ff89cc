"""Kubernetes runs a job once, looks after it without holding a worker, and tells its end; the cluster is a fake.

The client is the real one: it talks HTTP to a server that speaks as much of the API as is needed.
"""

import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.unit.steps.contexts import FakeContext

from calve.engine import Outcome, State
from calve.settings import KubernetesSettings
from calve.steps.kubernetes import Kubernetes
from calve.steps.kubernetes.job_status import job_status
from calve.steps.kubernetes.manifests import name_of

NAME = "maestro-job-0195-attempt"


@dataclass
class FakeCluster:
    """The jobs and pods of a cluster, by namespace and name."""

    port: int
    jobs: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    pods: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    log: bytes = b""
    created: list[dict[str, Any]] = field(default_factory=list)
    deleted: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    failing: list[int] = field(default_factory=list)
    """The statuses of the next answers."""
    linger: int = 0
    """How often a deleted job is still seen."""
    is_garbled: bool = False
    """What fails is told in no JSON."""

    def finish(self, condition: str, pod: dict[str, Any] | None, name: str = NAME, **more: Any) -> None:
        """Let a job end."""
        self.jobs["default", name]["status"] = {"conditions": [{"type": condition, "status": "True", **more}]}
        self.show(pod, name)

    def show(self, status: dict[str, Any] | None, name: str = NAME) -> None:
        """Let the pod of a job stand like that."""
        if status is not None:
            self.pods["default", name] = {"metadata": {"name": f"{name}-x"}, "status": status}

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        """Return the status of an answer, and its JSON."""
        if self.failing:
            return self.failing.pop(0), b"<html>" if self.is_garbled else {"message": "not now"}
        match method, path.strip("/").split("/"):
            case "POST", ["apis", "batch", "v1", "namespaces", namespace, "jobs"]:
                return self._create(namespace, body)
            case "GET", ["apis", "batch", "v1", "namespaces", namespace, "jobs", name]:
                return self._read(namespace, name)
            case "DELETE", ["apis", "batch", "v1", "namespaces", namespace, "jobs", name]:
                return self._delete(namespace, name, query)
            case "GET", ["api", "v1", "namespaces", namespace, "pods"]:
                name = query["labelSelector"].removeprefix("job-name=")
                pod = self.pods.get((namespace, name))
                return 200, {"kind": "PodList", "items": [pod] if pod else []}
            case "GET", ["api", "v1", "namespaces", _, "pods", _, "log"]:
                return 200, self.log
            case _:
                return 404, {"message": f"nothing at {path}"}

    def _create(self, namespace: str, body: dict[str, Any]) -> tuple[int, Any]:
        name = body["metadata"]["name"]
        if (namespace, name) in self.jobs:
            return 409, {"message": f'jobs.batch "{name}" already exists', "reason": "AlreadyExists"}
        self.created.append(body)
        self.jobs[namespace, name] = body | {"status": {}}
        return 201, self.jobs[namespace, name]

    def _read(self, namespace: str, name: str) -> tuple[int, Any]:
        job = self.jobs.get((namespace, name))
        if job is None:
            return 404, {"message": f'jobs.batch "{name}" not found'}
        if job["metadata"].get("deletionTimestamp"):
            self.linger -= 1
            if self.linger < 0:
                del self.jobs[namespace, name]
        return 200, job

    def _delete(self, namespace: str, name: str, query: dict[str, str]) -> tuple[int, Any]:
        job = self.jobs.get((namespace, name))
        if job is None:
            return 404, {"message": f'jobs.batch "{name}" not found'}
        self.deleted.append((name, query))
        job["metadata"] = job["metadata"] | {"deletionTimestamp": "2026-11-15T00:00:00Z"}
        return 200, job


@pytest.fixture
def api() -> Iterator[FakeCluster]:
    """Serve a fake cluster on this machine."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            split = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(split.query).items()}
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, said = cluster.answer(self.command, split.path, query, json.loads(text) if text else None)
            body = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain" if isinstance(said, bytes) else "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    cluster = FakeCluster(listener.server_address[1])
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield cluster
    listener.shutdown()
    thread.join()
    listener.server_close()


def _config(folder: Path, port: int) -> Path:
    """Write a kubeconfig."""
    path = folder / "kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "wrong",
        "clusters": [{"name": "fake", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "me", "user": {"token": "secret"}}],
        "contexts": [
            {"name": "right", "context": {"cluster": "fake", "user": "me"}},
            {"name": "wrong", "context": {"cluster": "none", "user": "me"}},
        ],
    }
    path.write_text(json.dumps(document))
    return path


@pytest.fixture
def runtime(api: FakeCluster, tmp_path: Path) -> Kubernetes:
    """Return the runtime, on the fake cluster."""
    return Kubernetes(KubernetesSettings(config=_config(tmp_path, api.port), context="right"))


def _context(folder: Path, **kubernetes: Any) -> FakeContext:
    return FakeContext(folder, {"kubernetes": {"image": "python:3.11", **kubernetes}})


def _turn(runtime: Kubernetes, context: FakeContext) -> Outcome:
    """Call the runtime once, and keep what it gives to be kept."""
    outcome = runtime.execute(context)
    context.artifacts.update(outcome.artifacts)
    return outcome


def _ended(code: int, **more: Any) -> dict[str, Any]:
    """Return the status of a pod whose container ended."""
    return {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": code, **more}}}]}


def _waiting(reason: str) -> dict[str, Any]:
    """Return the status of a pod whose container waits."""
    state = {"waiting": {"reason": reason, "message": "about the image"}}
    return {"phase": "Pending", "containerStatuses": [{"state": state}]}


def test_a_job_is_created_looked_after_and_told(api: FakeCluster, runtime: Kubernetes, tmp_path: Path) -> None:
    """Its name is kept before it is created; between the calls no worker is held."""
    context = _context(tmp_path)
    first = _turn(runtime, context)
    assert (first.state, first.poll_after) == (State.CONTINUE, 1.0)
    assert context.kept == [{"kubernetes": {"job": NAME, "namespace": "default"}}]
    second = _turn(runtime, context)
    assert (second.state, second.message) == (State.CONTINUE, "There is no pod yet.")
    api.show({"phase": "Running"})
    third = _turn(runtime, context)
    assert (third.message, third.poll_after > second.poll_after) == ("Running", True)
    api.log = b"working\ndone\n"
    api.finish("Complete", _ended(0))
    last = _turn(runtime, context)
    assert (last.state, last.outputs) == (State.DONE, {"exit_code": 0})
    assert context.text == f"The job {NAME} was created.\nworking\ndone\n"
    assert len(api.created) == 1


def test_every_field_reaches_the_cluster(api: FakeCluster, runtime: Kubernetes, tmp_path: Path) -> None:
    """In the shape of a job."""
    context = _context(
        tmp_path,
        app_name="Nightly Train",
        command=["python", "train.py"],
        args=["-n", 3],
        env={"A": "x", "B": 2, "C": True},
        cpu=2,
        memory="4Gi",
        disk="10Gi",
        gpu="1",
        namespace="ml",
        service_account="trainer",
        owner_email="me@example.com",
        pre_stop="sync; echo bye",
    )
    context.timeout = 3600.0
    assert runtime.execute(context).state is State.CONTINUE
    (job,) = api.created
    name = "nightly-train-0195-attempt"
    assert list(api.jobs) == [("ml", name)]
    labels = {
        "app.kubernetes.io/name": "Nightly-Train",
        "app.kubernetes.io/managed-by": "calve",
        "calve/attempt": "0195-attempt",
    }
    annotations = {"calve/step": "demo.pipeline/3/1/job.1/2", "calve/owner-email": "me@example.com"}
    amounts = {"cpu": "2", "memory": "4Gi", "ephemeral-storage": "10Gi", "nvidia.com/gpu": "1"}
    assert job == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": 86_400,
            "activeDeadlineSeconds": 3660,
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": {
                    "restartPolicy": "Never",
                    "serviceAccountName": "trainer",
                    "containers": [
                        {
                            "name": "main",
                            "image": "python:3.11",
                            "command": ["python", "train.py"],
                            "args": ["-n", "3"],
                            "env": [
                                {"name": "A", "value": "x"},
                                {"name": "B", "value": "2"},
                                {"name": "C", "value": "true"},
                            ],
                            "resources": {"requests": amounts, "limits": amounts},
                            "lifecycle": {"preStop": {"exec": {"command": ["/bin/sh", "-c", "sync; echo bye"]}}},
                        }
                    ],
                },
            },
        },
    }


def test_a_worker_that_takes_over_finds_the_job(api: FakeCluster, runtime: Kubernetes, tmp_path: Path) -> None:
    """Even if the first one died before it could tell that the job was created."""
    context = _context(tmp_path)
    runtime.execute(context)
    second = context.again()
    assert _turn(runtime, second).state is State.CONTINUE
    api.finish("Complete", _ended(0))
    assert _turn(runtime, second).state is State.DONE
    assert len(api.created) == 1
    assert "already exists" in second.text


def test_outputs_are_printed_between_markers(api: FakeCluster, runtime: Kubernetes, tmp_path: Path) -> None:
    """Params and artifacts."""
    context = _context(tmp_path)
    _turn(runtime, context)
    api.log = b'a\nMAESTRO_OUTPUT_START\n{"params": {"n": 5}, "artifacts": {"x": {"y": 1}}}\nMAESTRO_OUTPUT_END\n'
    api.finish("Complete", _ended(0))
    outcome = _turn(runtime, context)
    assert (outcome.outputs, outcome.artifacts) == ({"n": 5, "exit_code": 0}, {"x": {"y": 1}})


def test_outputs_that_cannot_be_read_fail_the_step(api: FakeCluster, runtime: Kubernetes, tmp_path: Path) -> None:
    """Though the program succeeded."""
    context = _context(tmp_path)
    _turn(runtime, context)
    api.log = b"MAESTRO_OUTPUT_START\n{"
    api.finish("Complete", _ended(0))
    outcome = _turn(runtime, context)
    assert (outcome.state, outcome.outputs) == (State.FATAL_ERROR, {"exit_code": 0})


@pytest.mark.parametrize(
    ("pod", "condition", "state", "said"),
    [
        (_ended(3), {}, State.USER_ERROR, "exit code 3"),
        (_ended(137, reason="OOMKilled"), {}, State.PLATFORM_ERROR, "more memory"),
        (_ended(128, reason="StartError", message="no such file"), {}, State.FATAL_ERROR, "no such file"),
        ({"phase": "Failed", "reason": "Evicted", "message": "disk"}, {}, State.PLATFORM_ERROR, "Evicted: disk"),
        (_ended(143), {"reason": "DeadlineExceeded"}, State.TIMED_OUT, "time limit had passed"),
        (None, {"reason": "BackoffLimitExceeded"}, State.PLATFORM_ERROR, "The pod is gone"),
        (
            _ended(143) | {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "Preempted"}]},
            {},
            State.PLATFORM_ERROR,
            "Preempted",
        ),
        ({"phase": "Failed"}, {"reason": "Odd", "message": "who knows"}, State.PLATFORM_ERROR, "Odd: who knows"),
    ],
)
def test_a_failed_job_tells_whose_fault_it_is(
    api: FakeCluster,
    runtime: Kubernetes,
    tmp_path: Path,
    pod: dict[str, Any] | None,
    condition: dict[str, Any],
    state: State,
    said: str,
) -> None:
    """The program's, the cluster's, or that of what was asked for."""
    context = _context(tmp_path)
    _turn(runtime, context)
    api.log = b"MAESTRO_OUTPUT_START\nnot json\n"
    api.finish("Failed", pod, **condition)
    outcome = _turn(runtime, context)
    assert (outcome.state, said in outcome.message) == (state, True)


@pytest.mark.parametrize("reason", ["ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError"])
def test_a_container_that_will_never_start_is_fatal(
    api: FakeCluster, runtime: Kubernetes, tmp_path: Path, reason: str
) -> None:
    """And the job is deleted, or it would wait for ever."""
    context = _context(tmp_path)
    _turn(runtime, context)
    api.show(_waiting(reason))
    outcome = _turn(runtime, context)
    assert outcome.state is State.FATAL_ERROR
    assert outcome.message == f"The container cannot be started: {reason}: about the image."
    assert api.deleted == [(NAME, {"propagationPolicy": "Foreground"})]


def test_a_throttled_registry_is_waited_for(api: FakeCluster, runtime: Kubernetes, tmp_path: Path) -> None:
    """The cluster goes on trying to fetch the image."""
    context = _context(tmp_path)
    _turn(runtime, context)
    waiting = _waiting("ImagePullBackOff")
    state = waiting["containerStatuses"][0]["state"]["waiting"]
    state["message"] = "ErrImagePull: 429 Too Many Requests - toomanyrequests: rate limit"
    api.show(waiting)
    outcome = _turn(runtime, context)
    assert (outcome.state, api.deleted) == (State.CONTINUE, [])


def test_a_pod_that_waits_tells_why(api: FakeCluster, runtime: Kubernetes, tmp_path: Path) -> None:
    """For an image, or for room on the cluster."""
    context = _context(tmp_path)
    _turn(runtime, context)
    api.show(_waiting("ContainerCreating"))
    assert _turn(runtime, context).message == "Pending: ContainerCreating: about the image"
    full = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes."}
    api.show({"phase": "Pending", "conditions": [full]})
    assert _turn(runtime, context).message == "Pending: Unschedulable: 0/3 nodes"


def test_a_cluster_that_is_silent_for_a_while_is_waited_for(
    api: FakeCluster, runtime: Kubernetes, tmp_path: Path
) -> None:
    """To give up at once could mean to run the work twice."""
    context = _context(tmp_path)
    api.failing = [503]
    silent = _turn(runtime, context)
    assert (silent.state, "503" in silent.message) == (State.CONTINUE, True)
    assert _turn(runtime, context).message == "The job was created."
    api.failing = [429, 500]
    assert [_turn(runtime, context).artifacts["kubernetes"]["misses"] for _ in range(3)] == [1, 2, 0]
    api.failing = [503] * 21
    states = [_turn(runtime, context).state for _ in range(21)]
    assert states == [State.CONTINUE] * 20 + [State.PLATFORM_ERROR]


def test_a_cluster_that_is_not_there_is_trouble_of_the_platform(tmp_path: Path) -> None:
    """It is waited for as well."""
    outcome = Kubernetes(KubernetesSettings(config=_config(tmp_path, 1), context="right")).execute(_context(tmp_path))
    assert (outcome.state, "does not answer" in outcome.message) == (State.CONTINUE, True)


@pytest.mark.parametrize("status", [400, 401, 403, 422])
def test_what_the_cluster_refuses_is_fatal(api: FakeCluster, runtime: Kubernetes, tmp_path: Path, status: int) -> None:
    """With what it says."""
    api.failing = [status]
    outcome = runtime.execute(_context(tmp_path))
    assert (outcome.state, f"{status}" in outcome.message, "not now" in outcome.message) == (
        State.FATAL_ERROR,
        True,
        True,
    )


def test_a_job_that_someone_deleted_is_lost(api: FakeCluster, runtime: Kubernetes, tmp_path: Path) -> None:
    """That is trouble of the platform; it is not started again in silence."""
    context = _context(tmp_path)
    _turn(runtime, context)
    api.jobs.clear()
    outcome = _turn(runtime, context)
    assert (outcome.state, "was deleted" in outcome.message) == (State.PLATFORM_ERROR, True)


def test_terminating_deletes_the_job_and_waits(api: FakeCluster, runtime: Kubernetes, tmp_path: Path) -> None:
    """Until it is gone with its pod; once, twice, or where there is nothing."""
    context = _context(tmp_path)
    runtime.terminate(context)
    _turn(runtime, context)
    api.linger = 2
    runtime.terminate(context)
    assert (api.jobs, api.deleted) == ({}, [(NAME, {"propagationPolicy": "Foreground"})])
    runtime.terminate(context)


def _of(context: FakeContext, key: str) -> FakeContext:
    """Return the context of another attempt of the same step."""
    return FakeContext(context.home, context.params, key=key)


def test_a_second_job_of_the_same_key_is_not_started(api: FakeCluster, runtime: Kubernetes, tmp_path: Path) -> None:
    """Another attempt takes the end of the first one's job, and does not delete it."""
    first = _context(tmp_path, job_deduplication_key="day 1")
    second = _of(first, "0196-other")
    _turn(runtime, first)
    _turn(runtime, second)
    runtime.terminate(second)
    assert (len(api.created), api.deleted) == (1, [])
    api.finish("Complete", _ended(0), api.created[0]["metadata"]["name"])
    assert [_turn(runtime, context).state for context in (first, second)] == [State.DONE, State.DONE]


def test_a_job_of_the_same_key_that_failed_is_replaced(api: FakeCluster, runtime: Kubernetes, tmp_path: Path) -> None:
    """Else no retry could ever help; the new one is created when the old one is gone."""
    first = _context(tmp_path, job_deduplication_key="day 1")
    _turn(runtime, first)
    api.finish("Failed", _ended(3), api.created[0]["metadata"]["name"])
    api.linger = 1
    second = _of(first, "0196-other")
    while len(api.created) < 2:
        assert _turn(runtime, second).state is State.CONTINUE
    assert api.created[1]["metadata"]["labels"]["calve/attempt"] == "0196-other"
    assert len(api.deleted) == 1


@pytest.mark.parametrize(
    ("config", "key", "name"),
    [
        ({"app_name": "maestro-job"}, "0195-a", "maestro-job-0195-a"),
        ({"app_name": "My App_1"}, "K", "my-app-1-k"),
        ({"app_name": "☃"}, "k", "job-k"),
        (
            {"app_name": "a" * 80},
            "01956a3e-0000-7000-8000-000000000000",
            "a" * 26 + "-01956a3e-0000-7000-8000-000000000000",
        ),
        ({"app_name": "a"}, "k" * 100, f"a-{sha256(b'k' * 100).hexdigest()[:16]}"),
        ({"app_name": "a", "job_deduplication_key": "day 1"}, "k", f"a-{sha256(b'day 1').hexdigest()[:16]}"),
    ],
)
def test_a_name_fits_the_cluster(config: dict[str, Any], key: str, name: str) -> None:
    """Letters, digits and hyphens, 63 of them at most."""
    found = name_of(config, key)
    assert len(found) <= 63
    assert found == name


def test_a_job_without_a_status_continues() -> None:
    """It has just been created."""
    assert job_status({}, None).state is State.CONTINUE


def test_no_kubeconfig_is_fatal_and_says_what_to_set(tmp_path: Path) -> None:
    """As is one that lacks the context."""
    missing = Kubernetes(KubernetesSettings(config=tmp_path / "none")).execute(_context(tmp_path))
    assert (missing.state, "[kubernetes] config" in missing.message) == (State.FATAL_ERROR, True)
    wrong = Kubernetes(KubernetesSettings(config=_config(tmp_path, 1), context="other")).execute(_context(tmp_path))
    assert (wrong.state, "other" in wrong.message) == (State.FATAL_ERROR, True)


def test_a_pod_of_the_cluster_needs_no_kubeconfig(
    api: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The account of the pod that calve runs in is used; here its certificate is wrong, so it is asked for nothing."""
    (tmp_path / "token").write_text("t")
    monkeypatch.setattr("calve.steps.kubernetes.jobs._ACCOUNT", tmp_path / "token")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    outcome = Kubernetes(KubernetesSettings()).execute(_context(tmp_path))
    assert (outcome.state, "no Kubernetes cluster" in outcome.message, api.created) == (State.FATAL_ERROR, True, [])


def test_an_answer_that_is_not_json_is_reported_as_it_is(api: FakeCluster, runtime: Kubernetes, tmp_path: Path) -> None:
    """A proxy in between may have said it."""
    api.failing, api.is_garbled = [403], True
    assert "403" in runtime.execute(_context(tmp_path)).message


def test_a_missing_client_is_fatal_and_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra."""
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    outcome = Kubernetes(KubernetesSettings()).execute(_context(tmp_path))
    assert outcome.state is State.FATAL_ERROR
    assert outcome.message == "The Kubernetes client is not installed. pip install 'calve[kubernetes]'."
