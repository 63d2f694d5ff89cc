"""Runs work that is calve's own code on somebody's behalf, such as SQL, in processes beside the worker.

What a driver of a database opens, it opens with the rights of its process: in the worker, those would be calve's. A new
Python for each step would take a quarter of a second to import the drivers. So there is one warm process for each user
that steps run as: it has imported what is needed, knows nothing of calve's state and secrets, and forks for each step.

The worker hands it one end of a pair of sockets for each step. Over that pair go lines of JSON: the job, then
``"cancel"``, to the fork; pieces of the log, then how the work ended, back. A fork whose socket closes ends at once, so
nothing outlives the worker.
"""

import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from calve.engine.ports import Outcome, State, StepContext
from calve.environment import close_memory
from calve.errors import StepFailed
from calve.steps.failures import failed, fatal, of_platform
from calve.steps.isolation import User
from calve.steps.surroundings import Surroundings

_TICK_MS = 100
_CHUNK = 65_536


class ForkContext:
    """What the work knows of the attempt that it is done for, in a fork."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._is_cancelled = threading.Event()

    def log(self, text: str) -> None:
        """Append to the attempt's log."""
        self.send({"log": text})

    def is_interrupted(self) -> bool:
        """Tell whether the work is to end now."""
        return self._is_cancelled.is_set()

    def send(self, message: Mapping[str, Any]) -> None:
        """Tell the worker something."""
        with self._lock:
            self._channel.sendall(json.dumps(message).encode() + b"\n")

    def listen(self, lines: Any) -> None:
        """Wait for the worker: to cancel the work, or to be gone."""
        for _ in lines:
            self._is_cancelled.set()
        os._exit(1)


Work = Callable[[Mapping[str, Any], ForkContext], Outcome]
"""Does a job in a fork."""


class Forks:
    """The warm processes of a worker for one kind of work."""

    def __init__(self, work: str, surroundings: Surroundings) -> None:
        self._work = work
        self._surroundings = surroundings
        self._lock = threading.Lock()
        self._servers: dict[User | None, _Server] = {}

    def run(self, context: StepContext, job: Mapping[str, Any]) -> Outcome:
        """Have a job done for an attempt, in a process of its own.

        Raises:
            StepFailed: it failed, or its process died.
        """
        user = self._surroundings.isolation.user_of(context.place.workflow_id)
        with self._channel(user) as channel:
            channel.sendall(json.dumps(job).encode() + b"\n")
            ended = _followed(channel, context, self._surroundings.grace_seconds)
        if ended is None:
            if context.is_interrupted():
                raise failed(State.STOPPED, "The step was interrupted.")
            raise of_platform("The process that did the work of the step ended before the work did.")
        if "crashed" in ended:
            raise RuntimeError(ended["crashed"])
        if "failed" in ended:
            raise failed(State(ended["failed"]), ended["message"], remedy=ended["remedy"])
        return Outcome(State(ended["state"]), ended["outputs"], ended["artifacts"], ended["message"])

    def close(self) -> None:
        """End the processes."""
        with self._lock:
            servers, self._servers = list(self._servers.values()), {}
        for server in servers:
            server.close()

    def _channel(self, user: User | None) -> socket.socket:
        """Return the worker's end of a pair of sockets, of which a new fork has the other one."""
        with self._lock:
            server = self._servers.get(user)
            if server is None or not server.is_alive:
                if server is not None:
                    server.close()
                server = self._servers[user] = _Server(self._work, self._surroundings, user)
            return server.fork()


class _Server:
    """One warm process, as the worker sees it."""

    def __init__(self, work: str, surroundings: Surroundings, user: User | None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="calve-"))
        self._control, theirs = socket.socketpair()
        # -P: a file of the folder that it is started in is not to pass for a module.
        argv: tuple[str, ...] = (surroundings.python, "-P", "-m", __name__, work)
        environment = surroundings.allowed_environment
        if user is not None:
            os.chown(self._folder, user.uid, user.gid)
            environment |= user.variables
        if surroundings.isolation.sandbox is not None:
            argv = surroundings.isolation.sandbox.command(self._folder, self._folder, argv)
        try:
            self._process = self._started(argv, theirs, environment, user)
        except OSError as error:
            self._control.close()
            whose = "" if user is None else f" as {user.name}"
            raise fatal(f"{argv[0]} cannot be run{whose}: {error.strerror}.") from error
        finally:
            theirs.close()

    def _started(
        self, argv: Sequence[str], theirs: socket.socket, environment: Mapping[str, str], user: User | None
    ) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(  # noqa: S603 - our own
            argv,
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            cwd=self._folder,
            env=environment,
            start_new_session=True,
            user=None if user is None else user.uid,
            group=None if user is None else user.gid,
            extra_groups=None if user is None else user.groups,
        )

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def fork(self) -> socket.socket:
        """Have it fork; return our end of the pair of sockets between."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._control, [b"."], [theirs.fileno()])
            except OSError:  # it is gone; whoever reads from our end will see
                ours.close()
                ours, other = socket.socketpair()
                other.close()
        return ours

    def close(self) -> None:
        self._control.close()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def _followed(channel: socket.socket, context: StepContext, grace_seconds: float) -> dict[str, Any] | None:
    """Log what a fork says, until it says how the work ended; None if it never does."""
    poller = select.poll()
    poller.register(channel, select.POLLIN)
    rest = b""
    deadline: float | None = None
    while True:
        if deadline is None and context.is_interrupted():
            deadline = time.monotonic() + grace_seconds
            _cancel(channel)
        if deadline is not None and time.monotonic() > deadline:
            return None  # the caller closes the channel, which ends the fork
        if not poller.poll(_TICK_MS):
            continue
        piece = _received(channel)
        if not piece:
            return None
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            message: dict[str, Any] = json.loads(line)
            if "log" not in message:
                return message
            context.log(message["log"])


def _cancel(channel: socket.socket) -> None:
    """Ask a fork to end its work."""
    try:
        channel.sendall(b'"cancel"\n')
    except OSError:
        return  # it has ended already


def _received(channel: socket.socket) -> bytes:
    try:
        return channel.recv(_CHUNK)
    except ConnectionError:
        return b""


def main() -> None:
    """Import the work that the argument names, and fork whenever the worker sends a socket."""
    close_memory()  # passwords of databases go through here
    module, _, name = sys.argv[1].partition(":")
    found = importlib.import_module(module)
    work: Work = getattr(found, name)
    getattr(found, "prepare", lambda: None)()
    gc.collect()
    gc.freeze()  # the collector of a fork would copy all pages that it looks at
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for forks
    control = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    while True:
        said, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not said:
            return
        if os.fork() == 0:
            control.close()
            _work(work, socket.socket(fileno=descriptors[0]))
        os.close(descriptors[0])


def _work(work: Work, channel: socket.socket) -> None:
    """Do one job, tell how it ended, and end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    lines = channel.makefile("rb")
    context = ForkContext(channel)
    try:
        job = json.loads(lines.readline())
        threading.Thread(target=context.listen, args=(lines,), daemon=True).start()
        outcome = work(job, context)
        ended = {
            "state": outcome.state,
            "outputs": outcome.outputs,
            "artifacts": outcome.artifacts,
            "message": outcome.message,
        }
        context.send(ended)
    except StepFailed as failure:
        context.send({"failed": failure.context["state"], "message": failure.message, "remedy": failure.remedy})
    except BaseException:  # noqa: BLE001 - whatever it is, the worker is to know
        context.send({"crashed": traceback.format_exc()})
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
