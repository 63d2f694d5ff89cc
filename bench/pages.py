"""How long do the pages of the web UI take, and how large are they, at 10,000 workflows and a million runs?

The state database is filled by SQL: a few instances really run, and are copied. The server and the client are in this
process, so that the CPU seconds are those of both. The aims are those of the issue: p95 at most 200 ms, 150 kB a page,
and no task of the browser's main thread above 100 ms. ``first`` is the first request after the start, whose caches are
empty. Where Prefect is installed (``bench/engine.py --install-peers``), its API is asked for the same lists.
"""

import html
import math
import random
import re
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click
import httpx

from browsing import costs
from calve.api import serve
from calve.app import Project, open_project, web_on
from calve.capture import Wanted
from calve.definition import installed, load
from calve.engine import Outcome, State, StepContext
from calve.settings import load as load_settings
from calve.web.graph import Edge, Node, lay_out
from commits import write_table
from peers.environments import PeerMissing
from peers.prefect_pages import REQUESTS, filled

MOST_MS, MOST_KB, MOST_TASK_MS = 200, 150, 100
TABLE, CONSUMER, DAILY, PENDING = "bench.events", "bench.seed/step_1", "bench.daily/step_1", 100
NEEDLE = "java.lang.OutOfMemoryError"
PIECE = 64 * 1024
MANY, SOME = 10_000, 500
"""How much there is of what is not said otherwise: triggers, signals, captures; approvals."""
COPY = "bench.seed"
JOBS = "".join(f"\n    - job: {{id: step_{n}, type: Shell, shell: {{command: reads db.table_{n}}}}}" for n in range(12))
TRIGGER = "Trigger: {cron: '0 6 * * *', timezone: UTC}"
SEED = f"{TRIGGER}\nWorkflow:\n  id: {COPY}\n  owner: ann\n  tags: [gold]\n  jobs:{JOBS}\n"
WIDE = "Workflow:\n  id: bench.wide\n  jobs:" + "".join(f"\n    - job: {{id: s{n}, type: NoOp}}" for n in range(300))
ASK = "Workflow: {id: bench.ask, jobs: [{job: {id: ok, type: Approval, approval: {message: Publish the numbers?}}}]}"
LOOP = """
Workflow:
  id: bench.loop
  jobs:
    - foreach:
        id: each
        ranges: {n: {from: 0, to: 2}}
        jobs: [{job: {id: load, type: NoOp}}]
"""


class Fails:
    """Carries out steps: all but one of the second instance succeed."""

    def execute(self, context: StepContext) -> Outcome:
        """Do nothing, or fail."""
        is_bad = "/2/" in context.title and context.title.split("/")[3] == "step_3"
        return (
            Outcome(State.FATAL_ERROR, message="Column watched_s cannot be resolved.")
            if is_bad
            else Outcome(State.DONE)
        )

    def terminate(self, context: StepContext) -> None:
        """Have nothing to end."""


def run_some(place: Project) -> None:
    """Run the instances that are copied."""
    for text in (SEED, WIDE, LOOP, ASK):
        place.engine.push(load(text, name="bench", vocabulary=installed()).required())
    started = [place.engine.start(name) for name in (COPY, COPY, "bench.wide", "bench.loop")]
    worker = place.worker(runtimes={"Shell": Fails})
    thread = threading.Thread(target=worker.run)
    thread.start()
    state = place.engine.state
    for one in started:
        while not (run := state.run(one.run.workflow_id, one.run.instance_id)) or not run.status.is_terminal:
            time.sleep(0.05)
    asked = place.engine.start("bench.ask").run
    while not state.attempts(asked.uuid, "ok"):
        time.sleep(0.05)
    worker.end()
    thread.join()
    for scheduler in place.schedulers():
        scheduler.turn()
    place.signals.announce("bench.closed", {"month": 1})


def copy(database: sqlite3.Connection, table: str, count: int, which: str, changed: Mapping[str, str]) -> None:
    """Copy a row of a table many times; ``changed`` has the expression of each column that differs, by name."""
    columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
    values = ", ".join(changed.get(column, f"s.{column}") for column in columns)
    database.execute(
        f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) "
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM n, {table} s WHERE {which}"
    )


def fill(path: Path, workflows: int, runs: int, iterations: int) -> None:
    """Fill the state database."""
    database = sqlite3.connect(path)
    database.execute("PRAGMA synchronous = OFF")
    name = "'ns' || (n.i % 50) || '.wf_' || n.i"
    seed = f"s.workflow_id = '{COPY}'"
    copy(database, "workflow", workflows, seed, {"workflow_id": name, "last_instance": str(runs // workflows)})
    definition = f"replace(s.definition, '{COPY}', {name})"
    copy(database, "version", workflows, seed, {"workflow_id": name, "definition": definition})
    number = f"(n.i % {workflows} + 1)"
    whose = f"'ns' || ({number} % 50) || '.wf_' || {number}"
    at = "s.created_at - n.i * 500"
    copied = {
        "uuid": "randomblob(16)",
        "root_uuid": "zeroblob(16)",
        "workflow_id": whose,
        "owner_workflow": whose,
        "instance_id": f"n.i / {workflows} + 1",
        "request_id": "NULL",
        "created_at": at,
        "started_at": at,
        "ended_at": f"{at} + 60000",
        "status": "CASE WHEN n.i % 500 = 0 THEN 'FAILED' ELSE 'SUCCEEDED' END",
    }
    copy(database, "run", runs, f"{seed} AND s.instance_id = 1", copied)
    inside = database.execute("SELECT workflow_id FROM run WHERE inline_step IS NOT NULL LIMIT 1").fetchone()[0]
    states = "CASE WHEN n.i % 100 = 0 THEN 'FAILED' ELSE 'SUCCEEDED' END"
    more = {"uuid": "randomblob(16)", "instance_id": "n.i + 2", "status": states}
    copy(database, "run", iterations - 2, f"s.workflow_id = '{inside}' AND s.instance_id = 1", more)
    database.execute(f"UPDATE attempt SET artifacts = replace(artifacts, '\"total\":2', '\"total\":{iterations}')")
    database.commit()
    database.close()


def fill_more(path: Path, size: int) -> None:
    """Add what else there is much of: triggers, signals, approvals, lineage, captures, and a long log."""
    database = sqlite3.connect(path)
    of_workflow = {"workflow_id": "'ns' || (n.i % 50) || '.wf_' || n.i"}
    copy(database, "trigger", MANY, f"s.workflow_id = '{COPY}'", of_workflow)
    signal = {"seq": "n.i + 1", "instance_id": "'bench-' || n.i", "announced_at": "s.announced_at - n.i * 1000"}
    copy(database, "signal", MANY, "s.seq = 1", signal)
    run = {
        "uuid": "CAST(printf('A%015d', n.i) AS BLOB)",
        "root_uuid": "CAST(printf('A%015d', n.i) AS BLOB)",
        "instance_id": "n.i + 1",
        "created_at": "s.created_at - n.i * 60000",
    }
    copy(database, "run", SOME, "s.workflow_id = 'bench.ask' AND s.instance_id = 1", run)
    attempt = {"uuid": "CAST(printf('B%015d', n.i) AS BLOB)", "run_uuid": run["uuid"], "root_uuid": run["uuid"]}
    copy(database, "attempt", SOME, "s.step_id = 'ok' AND s.type = 'Approval'", attempt)
    number = {"id": "'bench' || n.i", "number": "n.i + 10", "key": "NULL"}
    copy(database, "capture", MANY, f"s.consumer = '{DAILY}' AND s.status = 'committed'", number)
    _add_lineage(database)
    _add_log(database, size)
    database.commit()
    database.close()


def _add_lineage(database: sqlite3.Connection) -> None:
    """Let each workflow read one table and write the next, in chains of ten, all of which begin at one table."""
    now = int(time.time() * 1_000)
    rows = []
    for number in range(1, MANY + 1):
        source = TABLE if number % 10 == 1 else f"db.table_{number - 1}"
        for direction, table in (("read", source), ("write", f"db.table_{number}")):
            name = f"ns{number % 50}.wf_{number}"
            rows.append((name, "step_1", direction, "lake", table, now, 1, random.randbytes(16), 1_000, 31_000, None))
    database.executemany(f"INSERT INTO lineage_edge VALUES ({', '.join('?' * 11)})", rows)


def _add_log(database: sqlite3.Connection, size: int) -> None:
    """Let the failed step have a log of so many bytes, with one line to be found in its middle."""
    place = (
        "SELECT a.uuid FROM attempt a JOIN run r ON r.uuid = a.run_uuid WHERE r.workflow_id = ? AND r.instance_id = 2"
    )
    (attempt,) = database.execute(f"{place} AND a.step_id = 'step_3'", (COPY,)).fetchone()
    database.execute("DELETE FROM log_chunk WHERE attempt_uuid = ?", (attempt,))
    start, line, pieces = 0, 0, []
    for number in range(size // PIECE):
        lines = [
            f"2026-03-26 06:{n // 60 % 60:02d}:{n % 60:02d} INFO task {n} read 41000 rows"
            for n in range(line, line + 1_170)
        ]
        if number == size // PIECE // 2:
            lines[500] = f"{NEEDLE}: Java heap space"
        text = "\n".join(lines) + "\n"
        pieces.append((attempt, number + 1, text, start, len(text), line))
        start, line = start + len(text), line + len(lines)
    database.executemany("INSERT INTO log_chunk VALUES (?, ?, ?, ?, ?, ?)", pieces)


def write_lake(place: Project, commits: int, partitions: int) -> None:
    """Write the table of many commits, of which a consumer has processed all but some."""
    catalog = place.lake.catalog("lake").pyiceberg()
    done = commits - PENDING
    now = int(time.time() * 1_000)
    snapshots = write_table(catalog, TABLE, commits, partitions, now, [done])
    taken = place.captures.capture([TABLE], CONSUMER, Wanted(end=str(snapshots[done - 1])))
    place.captures.commit(taken.capture_id or "")
    place.captures.set_checkpoint(TABLE, DAILY, str(snapshots[done - 6]), "a usual capture has few commits")
    taken = place.captures.capture([TABLE], DAILY, Wanted(end=str(snapshots[done - 1])))
    place.captures.commit(taken.capture_id or "")
    place.tables.take_samples()


@contextmanager
def site(workflows: int, runs: int, iterations: int, commits: int, partitions: int, log: int) -> Iterator[str]:
    """Serve a project with so much in it; yield its address."""
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings(Path(folder), {})
        with open_project(settings) as place:
            run_some(place)
            began = time.perf_counter()
            write_lake(place, commits, partitions)
            click.echo(f"{commits:,} commits x {partitions:,} partitions: {time.perf_counter() - began:.0f} s to write")
        began = time.perf_counter()
        fill(settings.home / "state.db", workflows, runs, iterations)
        fill_more(settings.home / "state.db", log)
        size = (settings.home / "state.db").stat().st_size / 2**20
        click.echo(
            f"{workflows:,} workflows, {runs:,} runs, {size:,.0f} MiB: {time.perf_counter() - began:.0f} s to fill"
        )
        with open_project(settings) as place, serve(web_on(place, "127.0.0.1"), drain=1) as server:
            yield server.url


PAGES = (
    "/",
    "/workflows",
    "/workflows?sort=last_run",
    "/workflows?search=wf_77",
    "/search?q=wf_77",
    "/workflows/ns1.wf_1",
    "/workflows/ns1.wf_1?tab=runs",
    "/workflows/ns1.wf_1?tab=definition",
    "/workflows/bench.wide",
    f"/workflows/{COPY}/instances/2",
    f"/workflows/{COPY}/instances/2?step=step_3&tab=log",
    f"/workflows/{COPY}/instances/2?step=step_3&tab=log&find={NEEDLE}",
    "/workflows/bench.wide/instances/1",
    "/workflows/bench.loop/instances/1/iterations/each",
    "/tables",
    f"/tables/{TABLE}",
    f"/tables/{TABLE}?consumer={CONSUMER}",
    f"/tables/{TABLE}/lateness",
    f"/tables/{TABLE}/lag",
    f"/tables/{TABLE}/snapshots",
    f"/tables/{TABLE}/about",
    "/captures",
    f"/lineage?table={TABLE}",
    f"/lineage?table={TABLE}&depth=3",
    "/signals",
    "/triggers",
    "/approvals",
    "/workers",
)
LOG = f"/api/v3/workflows/{COPY}/instances/2/steps/step_3/logs"
DOCUMENTS = (f"{LOG}?tail=400", f"{LOG}?offset=50000000&limit=65536", f"{LOG}?find={NEEDLE}&ignore_case=true")
"""What the pages ask for by script."""


def measure(path: str, ask: Callable[[], httpx.Response], rounds: int) -> None:
    """Ask for something some times, and say how long it took and how large it is."""
    began = time.perf_counter()
    answer = ask()
    first = (time.perf_counter() - began) * 1_000
    took, cpu = [], []
    for _ in range(rounds):
        began, used = time.perf_counter(), time.process_time()
        answer = ask()
        took.append((time.perf_counter() - began) * 1_000)
        cpu.append((time.process_time() - used) * 1_000)
    p95 = sorted(took)[math.ceil(len(took) * 0.95) - 1]
    size = answer.num_bytes_downloaded / 1_000
    is_met = answer.status_code == httpx.codes.OK and p95 <= MOST_MS and size <= MOST_KB
    click.echo(
        f"{path:<68}{answer.status_code:>4}{first:>8.0f}{statistics.median(took):>8.0f}{p95:>8.0f}{min(cpu):>8.0f}{size:>8.0f}"
        f"{len(answer.content) / 1_000:>8.0f}  {'' if is_met else 'above the aim'}"
    )


def sources(client: httpx.Client, paths: Iterable[str]) -> list[str]:
    """Return where the pictures of pages come from that are not in the pages themselves."""
    found = [re.findall(r'<grid-map[^>]* src="([^"]+)"', client.get(path).text) for path in paths]
    return list(dict.fromkeys(html.unescape(address) for addresses in found for address in addresses))


def measure_layout(steps: int) -> None:
    """Say how long a graph of so many steps takes to lay out, each of which waits for up to three before it."""
    choice = random.Random(1)
    nodes = [Node(f"s{number}") for number in range(steps)]
    pairs = {(choice.randrange(max(0, n - 30), n), n) for n in range(1, steps) for _ in range(choice.randint(1, 3))}
    began = time.process_time()
    lay_out(nodes, [Edge(f"s{first}", f"s{second}") for first, second in sorted(pairs)])
    click.echo(
        f"to lay out {steps:,} steps and {len(pairs):,} edges: {(time.process_time() - began) * 1_000:.0f} ms CPU"
    )


def measure_browser(url: str) -> None:
    """Say what each page costs a browser."""
    click.echo(f"{'page in chromium':<72}{'longest task ms':>16}{'first visit kB':>16}")
    for one in costs(url, PAGES):
        is_met = one.longest_ms <= MOST_TASK_MS
        click.echo(f"{one.path:<72}{one.longest_ms:>16.0f}{one.kilobytes:>16.0f}  {'' if is_met else 'above the aim'}")


def measure_prefect(workflows: int, runs: int, rounds: int) -> None:
    """Say how long Prefect takes for the same lists."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with filled(Path(folder), copy, workflows, runs) as url, httpx.Client(base_url=url, timeout=120) as client:
                client.headers.update({"accept-encoding": "gzip"})
                for name, (path, body) in REQUESTS.items():
                    measure(f"Prefect: {name}", partial(client.post, path, json=body), rounds)
        except PeerMissing as missing:
            click.echo(str(missing))


@click.command()
@click.option("--workflows", default=10_000, show_default=True)
@click.option("--runs", default=1_000_000, show_default=True)
@click.option("--iterations", default=40_000, show_default=True)
@click.option("--commits", default=5_000, show_default=True)
@click.option("--partitions", default=2_000, show_default=True)
@click.option("--log", default=100_000_000, show_default=True, help="Bytes of a log.")
@click.option("--rounds", default=40, show_default=True)
@click.option("--browser/--no-browser", default=True, help="Also in chromium.")
@click.option("--peer/--no-peer", default=True, help="Also Prefect's server.")
def main(**given: Any) -> None:
    """Measure the pages."""
    rounds, browser, peer = given.pop("rounds"), given.pop("browser"), given.pop("peer")
    measure_layout(300)
    measure_layout(1_000)
    with site(**given) as url, httpx.Client(base_url=url, timeout=120) as client:
        client.headers.update({"accept": "text/html", "accept-encoding": "gzip"})
        click.echo(
            f"{'page':<68}{'':>4}{'first':>8}{'p50 ms':>8}{'p95 ms':>8}{'CPU ms':>8}{'sent kB':>8}{'HTML kB':>8}"
        )
        for path in (*PAGES, *DOCUMENTS, *sources(client, PAGES)):
            measure(path, partial(client.get, path), rounds)
        if browser:
            measure_browser(url)
    if peer:
        measure_prefect(given["workflows"], given["runs"], rounds)


if __name__ == "__main__":
    main()
