"""Records the answers of commands with ``--json``, of REST and of GraphQL in one scenario, to compare later versions.

``python -m tests.golden`` writes ``tests/data/golden``: it plays the scenario twice, and masks what differs.
It uses only the command line and HTTP, so that it can record any version.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx

DATA = Path(__file__).parent / "data" / "golden"
ANSWERS = DATA / "answers.json"
WORDING = frozenset(
    {"message", "remedy", "description", "detail", "title", "summary", "help", "hint", "reason", "errors"}
)
"""Keys whose texts are for people: they may be put better."""
MACHINE = frozenset({"boot_id"})
"""Keys whose values are those of the machine: they differ after its next start."""
CLOCK = re.compile(r"RUN_(DATE|HOUR)")
"""Params whose values follow from the time: they differ on another day, also where both recordings are of one day."""
DONE = ("SUCCEEDED", "FAILED", "STOPPED", "TIMED_OUT")

# (name, command line); what they print is recorded under their name.
COMMANDS: tuple[tuple[str, str], ...] = (
    ("validate", "validate pipeline.yaml broken.yaml"),
    ("render", "render pipeline.yaml"),
    ("eval", "eval 1+day -p day=2"),
    ("schema", "schema"),
    ("push", "push pipeline.yaml failing.yaml approval.yaml signalled.yaml"),
    ("push broken", "push broken.yaml"),
    ("run", "run golden.pipeline"),
    ("run with params", "run golden.pipeline day=7"),
    ("run failing", "run golden.failing"),
    ("run of nothing", "run golden.nothing"),
    ("status", "status"),
    ("status of one", "status golden.pipeline 1"),
    ("instances", "instances golden.pipeline"),
    ("logs", "logs golden.pipeline 1 hello"),
    ("logs find", "logs golden.pipeline 1 hello --find hello"),
    ("restart plan", "restart golden.failing 1 --dry-run"),
    ("restart", "restart golden.failing 1"),
    ("start", "run golden.approval --no-wait"),
    ("approvals", "approvals"),
    ("stop", "stop golden.approval 1"),
    ("skip refused", "skip golden.pipeline 1 hello"),
    ("pause", "pause golden.pipeline hello"),
    ("resume", "resume golden.pipeline hello"),
    ("permits set", "permits set fast 3"),
    ("permits", "permits"),
    ("signal announce", "signal announce golden.ready day=3 --request-id one"),
    ("signal again", "signal announce golden.ready day=3 --request-id one"),
    ("signals", "signal list"),
    ("signal lineage", "signal show golden.ready"),
    ("triggers", "triggers"),
    ("alerts", "alerts"),
    ("deactivate", "deactivate golden.failing"),
    ("activate", "activate golden.failing"),
    ("plan", "plan db.events --consumer golden --range day"),
    ("capture", "capture db.events --consumer golden --range day"),
    ("captures", "captures"),
    ("lag", "lag"),
    ("checkpoints", "checkpoint show"),
    ("gc", "gc"),
    ("prune", "prune --dry-run"),
    ("user add", "user add ann --grant editor@sales"),
    ("secrets", "secret list"),
    ("users", "user list"),
    ("tokens", "token list"),
    ("audit", "audit list"),
    ("unknown table", "plan db.nothing --consumer golden"),
)

TYPED = {"user add": "correct-horse-battery\n"}
"""What commands are given on standard input."""
MISSING = frozenset({"rest missing", "rest missing instance", "rest not found"})
"""Requests for what does not exist. That any other is answered with 404 is a mistake in its path."""

# (name, method, path, body); asked of a server after the commands.
_W = "/api/v3/workflows"
REQUESTS: tuple[tuple[str, str, str, Any], ...] = (
    ("rest workflows", "GET", _W, None),
    ("rest overview", "GET", f"{_W}/golden.pipeline/overview", None),
    ("rest version", "GET", f"{_W}/golden.pipeline/versions/latest", None),
    ("rest versions", "GET", f"{_W}/golden.pipeline/versions/pagination", None),
    ("rest timeline", "GET", f"{_W}/golden.pipeline/timeline", None),
    ("rest instances", "GET", "/api/v3/instances", None),
    ("rest instance", "GET", f"{_W}/golden.pipeline/instances/1", None),
    ("rest instances of one", "GET", f"{_W}/golden.pipeline/instances?last=1", None),
    ("rest runs", "GET", f"{_W}/golden.failing/instances/1/runs", None),
    ("rest run", "GET", f"{_W}/golden.failing/instances/1/runs/1", None),
    ("rest steps", "GET", f"{_W}/golden.pipeline/instances/1/steps", None),
    ("rest step", "GET", f"{_W}/golden.pipeline/instances/1/steps/hello", None),
    ("rest loop", "GET", f"{_W}/golden.pipeline/instances/1/steps/each", None),
    ("rest log", "GET", f"{_W}/golden.pipeline/instances/1/steps/hello/logs", None),
    ("rest instance actions", "GET", f"{_W}/instances/action-map", None),
    ("rest step actions", "GET", f"{_W}/steps/instances/action-map", None),
    ("rest missing", "GET", f"{_W}/golden.nothing/overview", None),
    ("rest missing instance", "GET", f"{_W}/golden.pipeline/instances/99", None),
    ("rest start", "POST", f"{_W}/golden.approval/versions/active/actions/start", {"request_id": "golden-1"}),
    ("rest start again", "POST", f"{_W}/golden.approval/versions/active/actions/start", {"request_id": "golden-1"}),
    ("rest bad start", "POST", f"{_W}/golden.approval/versions/active/actions/start", {"run_params": 3}),
    ("rest approvals", "GET", "/api/v3/approvals", None),
    ("rest stop", "PUT", f"{_W}/golden.approval/instances/2/actions/stop", {}),
    ("rest breakpoint", "POST", f"{_W}/steps/breakpoints", {"workflow_id": "golden.pipeline", "step_id": "hello"}),
    ("rest breakpoints", "GET", f"{_W}/steps/breakpoints?workflowId=golden.pipeline&stepId=hello", None),
    ("rest properties", "POST", f"{_W}/golden.pipeline/properties", {"owner": {"name": "me"}}),
    ("rest tag", "POST", f"{_W}/golden.pipeline/properties/tag", {"name": "fast", "namespace": "USER_DEFINED_TAG"}),
    ("rest plan restart", "POST", f"{_W}/golden.failing/instances/1/actions/plan-restart", {}),
    ("rest deactivate", "PUT", f"{_W}/golden.failing/actions/deactivate", {}),
    ("rest activate", "PUT", f"{_W}/golden.failing/versions/latest/actions/activate", {}),
    ("rest signal", "POST", "/api/v3/signals", {"name": "golden.more", "params": {"day": 4}}),
    ("rest signals", "GET", "/api/v3/signals", None),
    ("rest lineage", "GET", "/api/v3/signals/golden.ready/instances/latest/lineage", None),
    ("rest triggers", "GET", "/api/v3/triggers", None),
    ("rest permits", "GET", "/api/v3/tag-permits", None),
    ("rest permit", "POST", "/api/v3/tag-permits", {"tag": "slow", "max_allowed": 1}),
    ("rest templates", "GET", "/api/v3/job-templates", None),
    ("rest captures", "GET", "/api/v3/captures", None),
    ("rest plan", "POST", "/api/v3/captures/plan", {"tables": ["db.events"], "consumer": "golden"}),
    ("rest capture", "POST", "/api/v3/captures", {"tables": ["db.events"], "consumer": "golden.rest"}),
    ("rest checkpoints", "GET", "/api/v3/checkpoints", None),
    ("rest lag", "GET", "/api/v3/lag", None),
    ("rest events", "GET", "/api/v3/events?workflow_id=golden.pipeline", None),
    ("rest me", "GET", "/api/v3/access/me", None),
    ("rest audit", "GET", "/api/v3/access/audit", None),
    ("rest push", "POST", f"{_W}/yaml", "pipeline.yaml"),
    ("rest not found", "GET", "/api/v3/nothing", None),
    ("openapi", "GET", "/api/v3/openapi.json", None),
)

QUERIES: tuple[tuple[str, str], ...] = (
    (
        "graphql workflows",
        '{ workflows { items { id latestVersion activeVersion } next } workflow(id: "golden.pipeline") { id } }',
    ),
    ("graphql instances", '{ instances(workflowId: "golden.pipeline") { items { workflowId instanceId status } } }'),
    ("graphql documents", '{ approvals signals captures checkpoints signalLineage(name: "golden.ready") }'),
    (
        "graphql start",
        'mutation { start(workflowId: "golden.approval", requestId: "golden-2") { status instance { instanceId } } }',
    ),
    (
        "graphql act",
        'mutation { act(action: STOP, workflowId: "golden.approval", instanceId: 3) { workflowId instanceId } }',
    ),
    ("graphql schema", "{ __schema { types { name kind fields { name args { name } } enumValues { name } } } }"),
)


_AS_GOLDEN = {**os.environ, "LOGNAME": "golden"}  # noqa: TID251 - what the commands that it starts see
_CAPTURED: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 120, "env": _AS_GOLDEN}


Command = Callable[[list[str], str], tuple[int, str]]
"""Runs a command with a standard input; returns its exit code and what it printed."""


def play(folder: Path, python: str = sys.executable, *, command: Command | None = None) -> dict[str, Any]:
    """Play the scenario in an empty folder; return the answers by name.

    Without ``command``, each command runs in a process of its own, of any version.
    """
    answers: dict[str, Any] = {}
    perform = command or partial(_process, folder, python)
    for file in DATA.glob("*.yaml"):
        shutil.copy(file, folder)
    _make_table(folder, python)
    for name, line in COMMANDS:
        code, printed = perform([*line.split(), "--json"], TYPED.get(name, ""))
        answers[name] = {"exit": code, "printed": _parsed(printed)}
    with _server(folder, python) as client:
        for name, method, path, body in REQUESTS:
            given = {"content": (DATA / body).read_bytes()} if isinstance(body, str) else {"json": body}
            answer = client.request(method, path, **(given if body is not None else {}))
            answers[name] = {"status": answer.status_code, "body": _parsed(answer.text)}
        for name, query in QUERIES:
            answers[name] = {"body": client.post("/graphql", json={"query": query}).json()}
    return answers


def _process(folder: Path, python: str, words: list[str], typed: str) -> tuple[int, str]:
    done = subprocess.run([python, "-m", "calve", *words], check=False, cwd=folder, input=typed, **_CAPTURED)
    return done.returncode, done.stdout


_TABLE = """
import sys
from pathlib import Path
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
folder = Path(sys.argv[1]) / ".calve" / "lake"
folder.mkdir(parents=True)
catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
catalog.create_namespace("db")
rows = pa.table({"id": pa.array([1, 2], pa.int64()), "day": pa.array([10, 11], pa.int32())})
table = catalog.create_table("db.events", schema=rows.schema)
table.append(rows)
"""


def _make_table(folder: Path, python: str) -> None:
    subprocess.run([python, "-c", _TABLE, str(folder)], check=True, timeout=120)


@contextmanager
def _server(folder: Path, python: str) -> Iterator[httpx.Client]:
    command = [python, "-m", "calve", "-C", str(folder), "server", "--port", "0", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=_AS_GOLDEN
    ) as process:
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            with httpx.Client(base_url=url, timeout=60) as client:
                yield client
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def masked(one: Any, other: Any) -> Any:
    """Return what two answers have in common; what differs is the name of its type."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return {key: masked(one[key], _lasting(key, other[key])) for key in one}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [masked(*pair) for pair in zip(one, other, strict=True)]
    return one if one == other else f"<{type(one).__name__}>"


def _lasting(key: str, answer: Any) -> Any:
    """Return the answer under a key without what belongs to the machine or to the time, so that it is masked."""
    if CLOCK.search(key) and isinstance(answer, dict):
        return {name: None if name in {"value", "evaluated_result"} else value for name, value in answer.items()}
    return None if key in MACHINE or CLOCK.search(key) else answer


def differences(before: Any, now: Any, at: str = "") -> Iterator[str]:
    """Yield where an answer is no longer what it was; what was added is no difference."""
    if isinstance(before, str) and before.startswith("<") and before.endswith(">"):
        if type(now).__name__ != before[1:-1]:
            yield f"{at}: {before} became {now!r}"
    elif isinstance(before, Mapping) and isinstance(now, Mapping):
        for key, value in before.items():
            if key not in now:
                yield f"{at}.{key} is gone"
            elif key not in WORDING:
                yield from differences(value, now[key], f"{at}.{key}")
    elif isinstance(before, list) and isinstance(now, list):
        yield from _of_lists(before, now, at)
    elif before != now:
        yield f"{at}: {before!r} became {now!r}"


def _of_lists(before: list[Any], now: list[Any], at: str) -> Iterator[str]:
    names = {one["name"]: one for one in now if isinstance(one, Mapping) and "name" in one}
    if len(names) == len(now) and all(isinstance(one, Mapping) and "name" in one for one in before):
        for one in before:  # named things may be joined by others: types and fields of GraphQL, parameters of OpenAPI
            yield from differences(one, names.get(one["name"]), f"{at}[{one['name']}]")
        return
    if len(before) != len(now):
        yield f"{at}: {len(before)} elements became {len(now)}"
        return
    for number, pair in enumerate(zip(before, now, strict=True)):
        yield from differences(*pair, f"{at}[{number}]")


def main() -> None:
    """Record."""
    played = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            played.append(play(Path(folder), *sys.argv[1:]))
            time.sleep(1.1)
    ANSWERS.write_text(json.dumps(masked(*played), indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
