"""Secrets are nowhere but where a step runs: planted, printed, failed with and passed on, then looked for everywhere.

reliability.md B.4: 44.
"""

import json
import logging
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from tests.access_setup import LOCAL

from calve.app import Project, now_ms, open_project, secret_table_on
from calve.cli import entry
from calve.definition import installed, load as load_definition
from calve.engine import RunStatus, WorkerOptions
from calve.engine.views import attempt_json, instance_json, overview_json, overview_of
from calve.settings import Settings, load
from calve.store.tables import metadata

pytestmark = pytest.mark.each_store

MARK = "cAnArY"
ENV, FILE, TABLE = f'{MARK}-env "q" /ü+', f"{MARK}-file\n{MARK}-line-2", f"{MARK}-table-77"
RETRY = "retry_policy: {error_retry_limit: 0, platform_retry_limit: 0}\n        failure_mode: IGNORE_FAILURE"
WORKFLOW = """
Workflow:
  id: canary
  jobs:
    - job:
        id: prints
        type: Shell
        %(retry)s
        p<secret>: one
        q<secret>: two
        seen: ''
        shell:
          script: |
            echo "$$P"; echo "$$Q" >&2; echo 'in the script: ${p}'
            printf '%%s' "$$P" | base64 -w0; echo
            python3 -c 'import json, os; print(json.dumps(os.environ["P"]), repr(os.environ["Q"]))'
            python3 -c 'import os, urllib.parse; print(urllib.parse.quote(os.environ["P"]))'
            python3 -c 'import json, os; print(json.dumps({"seen": os.environ["P"]}))' > "$$CALVE_OUTPUT"
          env: {P: "${p}", Q: "${q}"}
    - job:
        id: fails
        type: Shell
        %(retry)s
        p<secret>: two
        shell: {script: 'echo "$$P" >&2; exit 3', env: {P: "${p}"}}
    - job:
        id: waits
        type: Shell
        %(retry)s
        p<secret>: three
        shell:
          script: |
            : ${p}
            touch %(folder)s/waiting
            while [ ! -e %(folder)s/go ]; do sleep 0.05; done
    - job:
        id: shows
        type: Shell
        %(retry)s
        p<secret>: three
        shell: {script: 'echo "$$1"', args: ["${p}"]}
    - job:
        id: raises
        type: Python
        %(retry)s
        p<secret>: one
        python: {source: 'import os; raise ValueError(os.environ["P"])', env: {P: "${p}"}}
    - job:
        id: asks
        type: Http
        %(retry)s
        p<secret>: three
        http: {url: "%(url)s/x?key=${p}", method: POST, auth: {token: "${p}"}, body: {text: "${p}"}}
    - job:
        id: selects
        type: SQL
        %(retry)s
        p<secret>: one
        sql: {url: "sqlite:///%(folder)s/other.db", query: "SELECT :p", parameters: {p: "${p}"}, fetch: value}
    - job:
        id: misses
        type: SQL
        %(retry)s
        p<secret>: three
        sql: {url: "sqlite:///%(folder)s/other.db", query: "SELECT * FROM \\"${p}\\""}
    - job:
        id: opens
        type: SQL
        %(retry)s
        p<secret>: three
        sql: {url: "postgresql+psycopg://ann:${p}@127.0.0.1:1/none?connect_timeout=2", query: "SELECT 1"}
"""


@contextmanager
def echoing() -> Iterator[str]:
    """Serve responses with an error that contains everything that was sent."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers["content-length"]))
            body = json.dumps({"path": self.path, "headers": dict(self.headers), "body": sent.decode()}).encode()
            self.send_response(418)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def settings(store_url: str, tmp_path: Path) -> Settings:
    """Give a project with a secret in each of the three places."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "two").write_text(FILE)
    (folder / "two").chmod(0o600)
    return load(
        tmp_path,
        {
            "CALVE_STORE__URL": store_url,
            "CALVE_SECRETS__ONE": ENV,
            "CALVE_SECRET_STORE__BACKENDS": "env file table",
            "CALVE_SECRET_STORE__FOLDER": str(folder),
            "CALVE_HTTP__ALLOW": "127.0.0.0/8",
        },
    )


def _until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def _leaks(text: str | bytes) -> bool:
    found = text if isinstance(text, bytes) else text.encode()
    return MARK.encode() in found or b64encode(MARK.encode()) in found


def _processes() -> Iterator[str]:
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield file.read_text("utf-8", "replace")
        except OSError:
            continue


def _rows(project: Project) -> Iterator[str]:
    with project.store._database.read() as connection:
        for table in metadata.tables.values():
            yield from (repr(row) for row in connection.execute(select(table)))


def _seen(project: Project) -> Iterator[str]:
    """Yield all that the engine tells: views, events, logs."""
    state = project.engine.state
    (run,) = state.runs("canary", 1)
    overview = overview_of(project.engine.tools, run)
    yield json.dumps([overview_json(overview), instance_json(run)], default=str)
    yield repr([overview, run, state.events()])
    for attempt in state.attempts(run.uuid):
        yield json.dumps(attempt_json(run, attempt), default=str)
        yield "".join(piece.text for piece in state.log(attempt.uuid))


def test_no_secret_leaks(
    settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """44: neither into the database, logs, views and messages, nor arguments of programs, nor files for others."""
    caplog.set_level(logging.DEBUG)
    with open_project(settings) as project, echoing() as url:
        secret_table_on(project.store, settings, makes_key=True).put(
            "three", TABLE, LOCAL, now_ms(), lambda size: b"n" * size
        )
        text = WORKFLOW % {"folder": tmp_path, "url": url, "retry": RETRY}
        project.engine.push(load_definition(text, name="test", vocabulary=installed()).required())
        project.engine.start("canary")
        worker = project.worker(options=WorkerOptions(slots=4))
        thread = threading.Thread(target=worker.run, daemon=True)
        thread.start()
        try:
            _until((tmp_path / "waiting").exists)
            assert not [one for one in _processes() if _leaks(one)]
            (tmp_path / "go").touch()
            _until(lambda: project.engine.state.runs("canary", 1)[0].status not in _GOING)
        finally:
            worker.end()
            thread.join()
        told = list(_seen(project))
        assert not [one for one in told if _leaks(one)]
        assert not [row for row in _rows(project) if _leaks(row)]
        everything = "\n".join(told)
        for expected in ("in the script: ***", "ValueError: ***", "cannot be an argument", '"seen"', "418"):
            assert expected in everything, expected
    kept = [file for file in tmp_path.rglob("*") if file.is_file() and file.parent.name != "secrets"]
    leaking = [file for file in kept if _leaks(file.read_bytes())]
    assert not leaking  # what programs themselves wrote is gone with the folders of their attempts
    assert entry.run(["-C", str(tmp_path), "secret", "list", "--json"]) == 0
    assert not _leaks(caplog.text)
    assert not _leaks("".join(capfd.readouterr()))


_GOING = {RunStatus.CREATED, RunStatus.IN_PROGRESS, RunStatus.PAUSED}


def test_settings_do_not_show_secrets(settings: Settings) -> None:
    """Neither printed nor as JSON."""
    assert not _leaks(repr(settings))
    assert not _leaks(settings.model_dump_json())
