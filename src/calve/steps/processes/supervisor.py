"""The process supervisor: runs one program for a worker, and makes sure that none of it outlives the worker.

A worker cannot do this by itself: a killed worker (``kill -9``) can do nothing, and the signal that Linux sends to the
children of a dead parent (PR_SET_PDEATHSIG) is sent when the *thread* that started them ends, and not to grandchildren.
So each program has a supervisor, a small process in between:

- Its standard input is a pipe from the worker. When the pipe closes, the worker is gone, and the supervisor kills the
  whole process tree. It does the same when the worker ends but a fork of it still holds the pipe.
- It is the only thread of its process, so PR_SET_PDEATHSIG is safe here: if it is killed itself, so is the program.
- Orphans in the tree become its children (PR_SET_CHILD_SUBREAPER), even those that left the process group and the
  session. When it has no children, nothing is left.
- It forwards output as frames on its standard output: a letter, the length in four bytes, and that many bytes. So a
  process that keeps a pipe open cannot block the worker.
- It writes what the program printed between output markers, and then its exit code, to files; a worker that takes over
  reads them instead of running the program again.
- It inherits the lock of the process's folder, which is therefore held as long as it lives.

It is started for each step, so it must start fast: it imports no slow modules (``json``, ``subprocess``, ``signal``
with its enums), and Python runs it without ``site``.
"""

import _signal as signal  # type: ignore[import-not-found]  # the same without enums, which take 5 ms to import
import ctypes
import os
import select
import sys
import time

PRINTED_LIMIT = 1_048_576
"""How many bytes between markers are kept; one more byte shows that there were more."""
LEFTOVER_SECONDS = 1.0
"""How long processes that a program leaves behind may run on."""
START_MARKERS = {b"MAESTRO_OUTPUT_START", b"CALVE_OUTPUT_START"}
END_MARKERS = {b"MAESTRO_OUTPUT_END", b"CALVE_OUTPUT_END"}
_SIGN = b"_OUTPUT_START"
LONGEST_MARKER = 64
_SET_PDEATHSIG = 1
_SET_DUMPABLE = 4
_SET_CHILD_SUBREAPER = 36
_CHUNK = 65_536
_IN, _OUT = 0, 1


class Job:
    """What to run, as the worker sends it: fields separated by NUL characters."""

    def __init__(self, message: bytes) -> None:
        folder, machine, worker, cwd, grace, lock, user, sandboxed, count, *words = message.split(b"\0")
        self.folder = os.fsdecode(folder)
        self.machine = machine
        self.worker = int(worker)
        self.cwd = cwd
        self.grace = float(grace)
        self.lock = int(lock)
        self.user = [int(number) for number in user.split()]
        """The user that the program runs as: the uid, then the gids, the primary group first."""
        self.is_sandboxed = sandboxed == b"1"
        self.argv = words[: int(count)]
        self.environment = dict(word.split(b"=", 1) for word in words[int(count) :])

    def path(self, name: str) -> str:
        """Return the path of a file in the process's folder."""
        return f"{self.folder}/{name}"


class MarkedLines:
    """Writes the lines from a start marker to the next end marker to a file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = -1
        self._room = PRINTED_LIMIT + 1
        self._rest = b""
        self._is_inside = False

    def feed(self, chunk: bytes) -> None:
        """Read the next piece of output."""
        data = self._rest + chunk
        if self._is_inside or _SIGN in data:
            *lines, rest = data.split(b"\n")
            for line in lines:
                self._take(line)
        else:
            rest = data[data.rfind(b"\n") + 1 :]
        is_needed = self._is_inside and len(rest) <= self._room
        self._rest = rest if is_needed else rest[-LONGEST_MARKER:]
        if self._is_inside and not is_needed:
            self._write(rest)

    def close(self) -> None:
        """Read the rest: a last line without a newline."""
        self._take(self._rest)
        if self._file >= 0:
            os.close(self._file)

    def _take(self, line: bytes) -> None:
        mark = line.strip()
        self._is_inside = self._is_inside or mark in START_MARKERS
        if self._is_inside:
            self._write(line + b"\n")
        self._is_inside = self._is_inside and mark not in END_MARKERS

    def _write(self, data: bytes) -> None:
        if self._file < 0:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(self._file, data[: self._room])
        self._room -= min(self._room, len(data))


class Supervisor:
    """Watches a program, its output and the worker."""

    def __init__(
        self, job: Job, pid: int, streams: dict[int, tuple[bytes, MarkedLines]], wake: int, worker: int
    ) -> None:
        self._job = job
        self._worker = worker
        self._pid = pid
        self._streams = streams
        self._wake = wake
        self._pending = bytearray()
        self._code: int | None = None
        self._has_children = True
        self._is_stopping = False
        self._deadline: float | None = None

    def watch(self) -> None:
        """Return when the program and all processes that it started have ended, and everything was sent."""
        while not self._is_over():
            self._turn(can_read=not self._pending)
        for fd in list(self._streams):
            self._drain(fd)
        self._tell_end()
        while self._pending:
            self._turn(can_read=False)

    def _is_over(self) -> bool:
        return self._code is not None and not self._has_children and not _signal_group(self._pid, 0)

    def _turn(self, *, can_read: bool) -> None:
        poller = select.poll()
        poller.register(_IN, select.POLLIN)
        poller.register(self._wake, select.POLLIN)
        if self._worker >= 0:
            poller.register(self._worker, select.POLLIN)
        if self._pending:
            poller.register(_OUT, select.POLLOUT)
        for fd in self._streams if can_read else ():
            poller.register(fd, select.POLLIN)
        for fd, _ in poller.poll(self._patience()):
            self._react(fd)
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self._deadline = time.monotonic() + 0.05  # again: a process that was just forked may have been missed
            _kill_tree(self._pid)

    def _patience(self) -> float | None:
        if self._code is not None:
            return 20  # without a subreaper, the end of the group is not signalled
        if self._deadline is None:
            return None
        return max(0.0, self._deadline - time.monotonic()) * 1000 + 1

    def _react(self, fd: int) -> None:
        if fd == _IN:
            self._listen()
        elif fd == self._worker:
            self._die_with_worker()
        elif fd == self._wake:
            if signal.SIGTERM in os.read(self._wake, 512):
                self._stop()
            self._reap()
        elif fd == _OUT:
            self._send()
        else:
            self._receive(fd)

    def _listen(self) -> None:
        if not os.read(_IN, 512):
            self._die_with_worker()

    def _die_with_worker(self) -> None:
        while True:
            _kill_tree(self._pid)
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                os._exit(0)

    def _stop(self) -> None:
        if not self._is_stopping:
            self._is_stopping = True
            self._limit(self._job.grace)
            for number in (signal.SIGTERM, signal.SIGCONT):
                if self._job.is_sandboxed:
                    _signal_inside(self._pid, number)
                else:
                    _signal_group(self._pid, number)

    def _limit(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        self._deadline = deadline if self._deadline is None else min(deadline, self._deadline)

    def _reap(self) -> None:
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self._pid:
                    self._code = os.waitstatus_to_exitcode(ended[1])
                    self._limit(LEFTOVER_SECONDS)
        except ChildProcessError:
            self._has_children = False

    def _receive(self, fd: int) -> bool:
        letter, printed = self._streams[fd]
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return False
        if chunk:
            printed.feed(chunk)
            self._frame(letter, chunk)
        else:
            printed.close()
            os.close(fd)
            del self._streams[fd]
        return bool(chunk)

    def _drain(self, fd: int) -> None:
        os.set_blocking(fd, False)
        while self._receive(fd):
            pass
        if fd in self._streams:
            self._streams[fd][1].close()

    def _frame(self, letter: bytes, content: bytes) -> None:
        self._pending += letter + len(content).to_bytes(4, "big") + content
        self._send()

    def _send(self) -> None:
        try:
            del self._pending[: os.write(_OUT, self._pending)]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._die_with_worker()

    def _tell_end(self) -> None:
        code = b"%d" % (self._code or 0)
        if not self._is_stopping:
            _write_whole(self._job.path("exit"), code)
        self._frame(b"K" if self._is_stopping else b"X", code)


def main() -> None:
    """Read a job from standard input, and run it."""
    _prctl(_SET_DUMPABLE, 0)  # other processes of the user must not read the secrets in this one
    job = Job(_exactly(int.from_bytes(_exactly(8), "big")))
    worker = _watched(job.worker)
    os.set_inheritable(job.lock, False)
    os.set_blocking(_OUT, False)
    _prctl(_SET_CHILD_SUBREAPER, 1)
    wake = _wake_on(signal.SIGTERM, signal.SIGCHLD)
    launched = _launch(job)
    if isinstance(launched, bytes):
        os.write(_OUT, b"F" + len(launched).to_bytes(4, "big") + launched)
        return
    pid, out, err = launched
    streams = {out: (b"O", MarkedLines(job.path("printed.out"))), err: (b"E", MarkedLines(job.path("printed.err")))}
    Supervisor(job, pid, streams, wake, worker).watch()


def _exactly(count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = os.read(_IN, count - len(data))
        if not piece:
            os._exit(0)  # the worker died before it sent the job
        data += piece
    return data


def _watched(worker: int) -> int:
    """Return a descriptor that becomes readable when the worker ends; -1 where pidfds are not supported."""
    try:
        watched = os.pidfd_open(worker)
    except (AttributeError, OSError):
        watched = -1
    if os.getppid() != worker:
        os._exit(0)  # it ended before it could be watched
    return watched


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _wake_on(*signals: int) -> int:
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in signals:
        signal.signal(number, lambda *_: None)
    return read


def _launch(job: Job) -> tuple[int, int, int] | bytes:
    """Start the program; return its pid and the pipes of its output, or why it could not be started."""
    supervisor = os.getpid()
    (out, out_end), (err, err_end), (failure, failure_end) = os.pipe(), os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(job, supervisor, out_end, err_end, failure_end)
    for fd in (out_end, err_end, failure_end):
        os.close(fd)
    why = os.read(failure, 512)  # closed when the program starts; otherwise it holds the error
    if why:
        os.waitpid(pid, 0)
        return why
    return pid, out, err


def _become(job: Job, supervisor: int, out: int, err: int, failure: int) -> None:
    where = b"start"
    try:
        os.setsid()
        _write_identity(job, supervisor)
        if job.user:
            where = b"user"
            os.setgroups(job.user[1:])
            os.setgid(job.user[1])
            os.setuid(job.user[0])
        _prctl(_SET_PDEATHSIG, signal.SIGKILL)  # after the change of the user, which would undo it
        if os.getppid() != supervisor:
            os._exit(1)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        where = b"cwd"
        os.chdir(job.cwd)
        where = b"program"
        _execute(job)
    except OSError as error:
        os.write(failure, b"%s %d" % (where, error.errno or 0))
    finally:
        os._exit(1)


def _execute(job: Job) -> None:
    """Become the program, like ``os.execvpe``, which imports modules that another user may not be able to read."""
    name = job.argv[0]
    folders = job.environment.get(b"PATH", os.fsencode(os.defpath)).split(b":")
    refused: OSError | None = None
    for path in [name] if b"/" in name else [b"%s/%s" % (folder or b".", name) for folder in folders]:
        try:
            os.execve(path, job.argv, job.environment)  # noqa: S606 - to run what the user wrote is the point
        except (FileNotFoundError, NotADirectoryError) as error:
            refused = refused or error
        except OSError as error:
            refused = error if refused is None or isinstance(refused, FileNotFoundError) else refused
    raise refused or FileNotFoundError


def _write_identity(job: Job, supervisor: int) -> None:
    """Record the program and its supervisor before it starts, so that a worker that takes over finds them."""
    me = os.getpid()
    lines = [b"%d %s" % (pid, start_of(pid).encode()) for pid in (me, supervisor)]
    _write_whole(job.path("process"), b"\n".join([*lines, job.machine]))


def start_of(pid: int) -> str:
    """Return the start time of a process in ticks since boot; empty if it has ended or is unknown."""
    fields = stat_of(pid)
    return fields[19] if fields and fields[0] not in {"Z", "X"} else ""


def stat_of(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on; an empty list if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib takes long to import
            return file.read().rpartition(b")")[2].decode().split()
    except OSError:
        return []


def _write_whole(path: str, content: bytes) -> None:
    file = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(file, content)
    os.close(file)
    os.rename(f"{path}.new", path)  # noqa: PTH104 - as above


def _signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group; return whether the group exists."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # it runs as another user now, so all we can do is wait
    return True


def _signal_inside(sandbox: int, number: int) -> None:
    """Send a signal to the programs in a sandbox.

    Bubblewrap's own two processes do not get it: the outer one would end at once, and all programs with it.
    """
    for pid in _processes():
        fields = stat_of(pid)
        if fields and fields[2] == str(sandbox) and str(sandbox) not in (str(pid), fields[1]):
            try:
                os.kill(pid, number)
            except (ProcessLookupError, PermissionError):
                continue


def _kill_tree(group: int) -> None:
    """Kill the group and every child, adopted ones included; their orphans become our children next."""
    _signal_group(group, signal.SIGKILL)
    me = str(os.getpid())
    for pid in _processes():
        fields = stat_of(pid)
        if fields and fields[1] == me:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - as above
    except OSError:
        return []
