"""How fast does the server answer under a steady load of reads and starts, and what would a bare route cost?

Requests are sent at a fixed rate whether or not the earlier ones were answered, over connections that are kept open,
by a client that does as little as it can; a latency counts from the moment when the request was due. The same load goes
to a FastAPI application with a single route that does nothing, served in the same way: what is above that is ours.
Where Prefect is installed (``bench/engine.py --install-peers``), its server gets the same mix: flow runs that are made,
and read.
"""

import asyncio
import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from calve.app import open_project, web_on
from calve.definition import installed, load
from calve.settings import load as load_settings
from calve.testing.postgres import throwaway_postgres
from peers.environments import PeerMissing
from peers.prefect_server import mix_on, prefect_server

WORKFLOW = "Workflow:\n  id: bench.w{number}\n  run_strategy: parallel\n  jobs:\n    - job: {{id: job, type: NoOp}}\n"
WORKFLOWS = 20
CONNECTIONS = 32
API = "/api/v3"


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent."""

    kind: str
    method: str
    path: str
    body: bytes = b""

    def written(self) -> bytes:
        """Return it as bytes."""
        head = f"{self.method} {self.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(self.body)}\r\n"
        return f"{head}Content-Type: application/json\r\n\r\n".encode() + self.body


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request."""

    kind: str
    status: int
    seconds: float


def request_of(number: int) -> Request:
    """Return one of the mix: four reads for each start."""
    workflow = f"bench.w{number % WORKFLOWS}"
    match number % 5:
        case 0:
            path = f"{API}/workflows/{workflow}/versions/active/actions/start"
            return Request("start", "POST", path, json.dumps({"request_id": f"r{number}"}).encode())
        case 1:
            return Request("instance", "GET", f"{API}/workflows/{workflow}/instances/1")
        case 2:
            return Request("instances", "GET", f"{API}/instances?limit=20")
        case 3:
            return Request("workflow", "GET", f"{API}/workflows/{workflow}/overview")
        case _:
            return Request("steps", "GET", f"{API}/workflows/{workflow}/instances/1/steps")


def bare_request(_: int) -> Request:
    """Return the request for the route that does nothing."""
    return Request("bare", "GET", "/")


async def ask(connection: tuple[asyncio.StreamReader, asyncio.StreamWriter], request: Request) -> int:
    """Send a request, and read its answer; return the status."""
    reader, writer = connection
    writer.write(request.written())
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").lower().split("\r\n")
    length = next(int(line.partition(":")[2]) for line in lines if line.startswith("content-length:"))
    await reader.readexactly(length)
    return int(lines[0].split()[1])


async def load_on(port: int, rate: int, seconds: float, make: Any) -> list[Answer]:
    """Send requests at a rate, and return what came of them."""
    free: asyncio.Queue[Any] = asyncio.Queue()
    for _ in range(CONNECTIONS):
        free.put_nowait(await asyncio.open_connection("127.0.0.1", port))
    answers: list[Answer] = []

    async def one(number: int, due: float) -> None:
        request, connection = make(number), await free.get()
        try:
            status = await ask(connection, request)
        except (OSError, asyncio.IncompleteReadError):  # a server may end a connection between two requests
            connection = await asyncio.open_connection("127.0.0.1", port)
            status = await ask(connection, request)
        free.put_nowait(connection)
        answers.append(Answer(request.kind, status, time.perf_counter() - due))

    begun, tasks = time.perf_counter(), []
    for number in range(int(rate * seconds)):
        due = begun + number / rate
        if (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        tasks.append(asyncio.create_task(one(number, due)))
    await asyncio.gather(*tasks)
    while not free.empty():
        free.get_nowait()[1].close()
    return answers


def serve_calve(folder: Path, processes: int, ports: "multiprocessing.Queue[int]", stop: Any) -> None:
    """Be a server on a project with some workflows, each with an instance, as ``calve server --processes`` is."""
    from calve.api import listen, reserve, serve
    from calve.cli.processes import server_processes

    settings = load_settings(folder, {})
    listener = listen("127.0.0.1", 0) if processes == 1 else reserve("127.0.0.1", 0)
    port = int(listener.getsockname()[1])
    with open_project(settings) as project:
        for number in range(WORKFLOWS):
            text = WORKFLOW.format(number=number)
            project.engine.push(load(text, name="bench", vocabulary=installed()).required())
            project.engine.start(f"bench.w{number}")
        if processes == 1:
            with serve(web_on(project, "127.0.0.1"), listener, threads=settings.server.threads):
                ports.put(port)
                stop.wait()
            return
    with server_processes(settings, "127.0.0.1", listener, processes):
        ports.put(port)
        stop.wait()


def serve_bare(_folder: Path, _processes: int, ports: "multiprocessing.Queue[int]", stop: Any) -> None:
    """Be a server with one route that does nothing."""
    import threading

    from fastapi import FastAPI

    from calve.api import serve

    app = FastAPI()
    app.state.services = SimpleNamespace(ending=threading.Event())

    @app.get("/")
    def nothing() -> dict[str, str]:
        return {"status": "ok"}

    with serve(app) as serving:
        ports.put(int(serving.url.rpartition(":")[2]))
        stop.wait()


@contextmanager
def server(target: Any, folder: Path, processes: int = 1) -> Iterator[int]:
    """Run a server in a process of its own; give its port."""
    context = multiprocessing.get_context("spawn")
    ports: multiprocessing.Queue[int] = context.Queue()
    stop = context.Event()
    process = context.Process(target=target, args=(folder, processes, ports, stop))
    process.start()
    try:
        yield ports.get(timeout=120)
    finally:
        stop.set()
        process.join(60)


def show(name: str, answers: list[Answer]) -> float:
    """Print the figures of some answers; return the 99th percentile."""
    times = sorted(answer.seconds * 1_000 for answer in answers)
    failed = sum(answer.status not in {200, 201} for answer in answers)
    p50, p99 = statistics.median(times), times[int(len(times) * 0.99) - 1]
    print(f"{name:<16}{len(times):>8}{failed:>8}{p50:>10.1f}{p99:>10.1f}{times[-1]:>10.1f}")
    return p99


def measured(name: str, port: int, make: Any, rate: int, seconds: float) -> float:
    """Load a server, and print what it took; return the 99th percentile."""
    asyncio.run(load_on(port, rate, min(2.0, seconds), make))  # to warm up
    answers = asyncio.run(load_on(port, rate, seconds, lambda number: make(number + 10 * rate)))
    p99 = show(name, answers)
    kinds = {answer.kind for answer in answers}
    for kind in sorted(kinds) if len(kinds) > 1 else ():
        show(f"  {kind}", [answer for answer in answers if answer.kind == kind])
    return p99


def measured_prefect(folder: Path, rate: int, seconds: float) -> float | None:
    """Load Prefect's server, if it is there; return the 99th percentile."""
    try:
        with prefect_server(folder) as port:
            mix = mix_on(port)
            return measured("Prefect", port, lambda number: Request(*mix(number)), rate, seconds)
    except PeerMissing as missing:
        print(missing)
        return None


@click.command()
@click.option("--rate", default=500, show_default=True, help="Requests a second.")
@click.option("--seconds", default=20.0, show_default=True)
@click.option("--postgres/--no-postgres", default=True, help="Also on a PostgreSQL that is thrown away afterwards.")
@click.option("--processes", type=click.IntRange(1), default=2, show_default=True, help="Of the server, besides one.")
@click.option("--peer/--no-peer", default=True, help="Also Prefect's server.")
def main(rate: int, seconds: float, processes: int, *, postgres: bool, peer: bool) -> None:
    """Print latencies in milliseconds, and the ratios of their 99th percentiles."""
    ours: dict[str, float] = {}
    print(f"{rate} requests/s for {seconds:g} s; four reads for each start. Milliseconds from when a request was due.")
    print(f"{'':<16}{'asked':>8}{'failed':>8}{'p50':>10}{'p99':>10}{'max':>10}")
    with ExitStack() as stack:
        folders = {"SQLite": Path(stack.enter_context(tempfile.TemporaryDirectory()))}
        if postgres:
            folders["PostgreSQL"] = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            url = stack.enter_context(throwaway_postgres()).url
            (folders["PostgreSQL"] / "calve.toml").write_text(f'[store]\nurl = "{url}"\n')
        with server(serve_bare, folders["SQLite"]) as port:
            theirs = {"a bare route": measured("bare", port, bare_request, rate, seconds)}
        for name, folder in folders.items():
            for number in sorted({1, processes}):
                with server(serve_calve, folder, number) as port:
                    first = number * 1_000_000  # no request was sent before
                    ours[f"{name}, {number}"] = measured(
                        f"{name}, {number}", port, lambda each, first=first: request_of(each + first), rate, seconds
                    )
        if peer and (p99 := measured_prefect(Path(stack.enter_context(tempfile.TemporaryDirectory())), rate, seconds)):
            theirs["Prefect"] = p99
    for name, own in ours.items():
        print(f"{name}: p99 " + ", ".join(f"{own / other:.3f} of {what}'s" for what, other in theirs.items()))


if __name__ == "__main__":
    main()
