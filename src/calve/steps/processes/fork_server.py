"""Fork servers: run code of calve itself, such as the SQL step's, in processes apart from the worker.

A database driver opens files and sockets with the rights of its process; in the worker, these would be calve's. A new
Python for each step would need a quarter of a second to import the drivers. So each user that steps run as has one warm
process, which has imported what is needed, knows none of calve's state and secrets, and forks for each step.

For each step, the worker sends it one end of a socket pair. Lines of JSON go over the pair: to the fork the job, then
``"cancel"``; back pieces of the log, then the result. A fork whose socket closes exits at once, so none outlives the
worker.
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

from calve.engine import Outcome, State, StepContext
from calve.environment import close_memory
from calve.errors import StepFailed
from calve.steps.failures import failed, fatal, interrupted, platform_error
from calve.steps.processes.isolation import SystemUser
from calve.steps.processes.workspace import Workspace

_TICK_MS = 100
_CHUNK = 65_536


class ForkContext:
    """The context of an attempt, as code in a fork sees it."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._is_cancelled = threading.Event()

    def log(self, text: str) -> None:
        """Append to the attempt's log."""
        self.send({"log": text})

    def is_interrupted(self) -> bool:
        """Return whether the work must end now."""
        return self._is_cancelled.is_set()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message to the worker."""
        with self._lock:
            self._channel.sendall(json.dumps(message).encode() + b"\n")

    def listen(self, lines: Any) -> None:
        """Wait until the worker cancels the work or ends."""
        for _ in lines:
            self._is_cancelled.set()
        os._exit(1)


Work = Callable[[Mapping[str, Any], ForkContext], Outcome]
"""Runs one job in a fork."""


class ForkServers:
    """The warm processes of a worker for one kind of job, one for each user."""

    def __init__(self, work: str, workspace: Workspace) -> None:
        self._work = work
        self._workspace = workspace
        self._lock = threading.Lock()
        self._servers: dict[SystemUser | None, _Server] = {}

    def run(self, context: StepContext, job: Mapping[str, Any]) -> Outcome:
        """Run a job for an attempt in a process of its own.

        Raises:
            StepFailed: it failed, its process died, or the attempt is interrupted.
        """
        if context.is_interrupted():  # a fork might finish a short job before it reads that it is cancelled
            raise interrupted("The step")
        user = self._workspace.isolation.user_of(context.place.workflow_id)
        with self._channel(user) as channel:
            channel.sendall(json.dumps(job).encode() + b"\n")
            ended = _followed(channel, context, self._workspace.grace_seconds)
        if ended is None:
            if context.is_interrupted():
                raise interrupted("The step")
            raise platform_error("The process that ran the step died.")
        if "crashed" in ended:
            raise RuntimeError(ended["crashed"])
        if "failed" in ended:
            raise failed(State(ended["failed"]), ended["message"], remedy=ended["remedy"])
        return Outcome(State(ended["state"]), ended["outputs"], ended["artifacts"], ended["message"])

    def close(self) -> None:
        """Stop the processes."""
        with self._lock:
            servers, self._servers = list(self._servers.values()), {}
        for server in servers:
            server.close()

    def _channel(self, user: SystemUser | None) -> socket.socket:
        """Return the worker's end of a socket pair whose other end a new fork has."""
        with self._lock:
            server = self._servers.get(user)
            if server is None or not server.is_alive:
                if server is not None:
                    server.close()
                server = self._servers[user] = _Server(self._work, self._workspace, user)
            return server.fork()


class _Server:
    """One warm process, as the worker sees it."""

    def __init__(self, work: str, workspace: Workspace, user: SystemUser | None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="calve-"))
        self._control, theirs = socket.socketpair()
        # -P: do not import modules from the folder that it is started in.
        argv: tuple[str, ...] = (workspace.python, "-P", "-m", __name__, work)
        environment = workspace.allowed_environment
        if user is not None:
            os.chown(self._folder, user.uid, user.gid)
            environment |= user.variables
        if workspace.isolation.sandbox is not None:
            argv = workspace.isolation.sandbox.command(self._folder, self._folder, argv)
        try:
            self._process = self._started(argv, theirs, environment, user)
        except OSError as error:
            self._control.close()
            whose = "" if user is None else f" as {user.name}"
            raise fatal(f"{argv[0]} cannot be run{whose}: {error.strerror}.") from error
        finally:
            theirs.close()

    def _started(
        self, argv: Sequence[str], theirs: socket.socket, environment: Mapping[str, str], user: SystemUser | None
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
        """Make it fork; return our end of the socket pair."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._control, [b"."], [theirs.fileno()])
            except OSError:  # it is gone; reading from our end will show that
                ours.close()
                ours, other = socket.socketpair()
                other.close()
        return ours

    def close(self) -> None:
        self._control.close()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def _followed(channel: socket.socket, context: StepContext, grace_seconds: float) -> dict[str, Any] | None:
    """Log what a fork sends until it sends the result; return None if it never does."""
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
    """Tell a fork to stop."""
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
    """Import the function that the argument names, and fork whenever the worker sends a socket."""
    close_memory()  # jobs hold passwords of databases
    module, _, name = sys.argv[1].partition(":")
    found = importlib.import_module(module)
    work: Work = getattr(found, name)
    getattr(found, "prepare", lambda: None)()
    gc.collect()
    gc.freeze()  # otherwise the garbage collector of each fork copies every page that it visits
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
    """Run one job, send its result, and exit."""
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
    except BaseException:  # noqa: BLE001 - the worker reports it
        context.send({"crashed": traceback.format_exc()})
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
