"""Reads Spark's event log while it grows, and adds up the usage of each session.

- ``rows_read``: the rows that tasks read from tables, files and ranges.
- ``bytes_read``: the size of the files in the scan plans of Iceberg tables, because Spark does not report how much of
  each file was read; or the bytes that tasks read from other sources, if that is more.
- ``rows_written``, ``bytes_written``: the rows and bytes that tasks wrote to tables and files.
- ``shuffle_bytes``: the bytes that tasks wrote for shuffles.

Only a few kinds of events are read, with regular expressions: a busy server writes thousands of others.
"""

import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_SESSION = re.compile(r"SparkConnect_OperationTag_User_.*?_Session_([0-9a-f-]{36})_Operation_([0-9a-f-]{36})")
_PORT = re.compile(r'"bindingPort":(\d+)')
_JOB_STAGES = re.compile(r'"Stage IDs":\[([\d,]*)\]')
_JOB = re.compile(r'"Job ID":(\d+)')
_STAGE = re.compile(r'"Stage ID":(\d+)')
_EXECUTION = re.compile(r'"executionId":(\d+)')
_COUNTER = re.compile(r'"Name":"internal\.metrics\.([\w.]+)","Value":(\d+)')
_PLANNED = re.compile(
    r'"accumulatorId":(\d+),"metricType":"v2Custom_org\.apache\.iceberg\.spark\.source\.metrics\.'
    r'Total(?:Data|Delete)FileSize"'
)
_WRITTEN = re.compile(r"Iceberg\w*Write\(table=([^,)\\]+)")
_READ = re.compile(r'"nodeName":"BatchScan ([^"\\ ]+\.[^"\\ ]+)"')
_UPDATES = re.compile(r"\[(\d+),(\d+)\]")
_COUNTED = {
    "input.recordsRead": "rows_read",
    "input.bytesRead": "bytes_read",
    "output.recordsWritten": "rows_written",
    "output.bytesWritten": "bytes_written",
    "shuffle.write.bytesWritten": "shuffle_bytes",
}
_PREFIX = '{"Event":"'
_SQL = "org.apache.spark.sql.execution.ui.SparkListener"
_CONNECT = "org.apache.spark.sql.connect.service.SparkListenerConnect"
_LOOK_SECONDS = 0.01


Tables = tuple[frozenset[str], frozenset[str]]
"""The names of tables that were read, and of those that were written."""


@dataclass(slots=True)
class Usage:
    """What a session read, wrote and shuffled."""

    rows_read: int = 0
    bytes_read: int = 0
    rows_written: int = 0
    bytes_written: int = 0
    shuffle_bytes: int = 0

    def minus(self, earlier: "Usage") -> "Usage":
        """Return what came after ``earlier``."""
        return Usage(*(now - then for now, then in zip(self.values(), earlier.values(), strict=True)))

    def values(self) -> tuple[int, ...]:
        """Return the numbers, in the order of their names."""
        return (self.rows_read, self.bytes_read, self.rows_written, self.bytes_written, self.shuffle_bytes)

    def as_artifact(self) -> dict[str, int]:
        """Return the numbers by name."""
        names = ("rows_read", "bytes_read", "rows_written", "bytes_written", "shuffle_bytes")
        return dict(zip(names, self.values(), strict=True))


@dataclass(slots=True)
class _Session:
    """What is known about one session."""

    counted: dict[str, int] = field(default_factory=dict)
    planned: dict[int, int] = field(default_factory=dict)
    """The size of the files of each scan of an Iceberg table, by its accumulator."""

    read: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    jobs: dict[str, list[str]] = field(default_factory=dict)
    """The stages of each job."""
    over: set[str] = field(default_factory=set)
    """The stages that have ended, and those that an ended job skipped."""

    def usage(self) -> Usage:
        found = Usage(**self.counted)
        found.bytes_read = max(found.bytes_read, sum(self.planned.values()))
        return found


class EventTotals:
    """Adds up events for each session of a Connect server; an application has one session with an empty name."""

    def __init__(self, *, is_application: bool = False) -> None:
        self._is_application = is_application
        self._sessions: dict[str, _Session] = {}
        self._stages: dict[str, str] = {}
        self._executions: dict[str, str] = {}
        self._accumulators: dict[int, str] = {}
        self._started: dict[str, str] = {}
        self.finished: dict[str, str] = {}
        """The operations that have ended, with their sessions."""
        self.port: int | None = None

    def usage(self, session: str = "") -> Usage:
        """Return what a session has used so far."""
        found = self._sessions.get(session)
        return Usage() if found is None else found.usage()

    def tables(self, session: str = "") -> Tables:
        """Return the tables that a session has read and the Iceberg tables that it has written, with catalogs."""
        found = self._sessions.get(session) or _Session()
        return frozenset(found.read), frozenset(found.written)

    def stages(self, session: str = "") -> tuple[int, int]:
        """Return how many stages of a session have ended, and how many are known."""
        found = self._sessions.get(session)
        return (0, 0) if found is None else (len(found.over), len({one for job in found.jobs.values() for one in job}))

    def is_quiet(self, session: str) -> bool:
        """Return whether every started operation of a session has ended."""
        return all(operation in self.finished for operation, owner in self._started.items() if owner == session)

    def forget(self, session: str) -> None:
        """Delete what is known about a session that has ended."""
        self._sessions.pop(session, None)
        for known in (self._stages, self._executions, self._accumulators, self._started, self.finished):
            _drop(known, session)

    def take(self, line: str) -> None:
        """Read the next event."""
        kind = line[len(_PREFIX) : line.find('"', len(_PREFIX))]
        match kind.removeprefix(_SQL).removeprefix(_CONNECT):
            case "SparkListenerJobStart":
                self._job(line)
            case "SparkListenerStageCompleted":
                self._stage(line)
            case "SparkListenerJobEnd":
                self._job_end(line)
            case "SQLExecutionStart":
                self._execution(line)
            case "SQLAdaptiveExecutionUpdate":
                self._plan(line)
            case "DriverAccumUpdates":
                self._updates(line)
            case "OperationStarted":
                self._started |= {operation: session for session, operation in _SESSION.findall(line)}
            case "OperationFinished" | "OperationFailed" | "OperationCanceled":
                self.finished |= {operation: session for session, operation in _SESSION.findall(line)}
            case "ServiceStarted":
                self.port = int(_found(_PORT, line) or 0)
            case _:
                pass

    def _owner(self, line: str) -> str | None:
        if self._is_application:
            return ""
        return _found(_SESSION, line)

    def _job(self, line: str) -> None:
        owner = self._owner(line[line.rfind('"Properties"') :])
        if owner is not None:
            stages = [stage for stage in (_found(_JOB_STAGES, line) or "").split(",") if stage]
            self._stages |= dict.fromkeys(stages, owner)
            self._sessions.setdefault(owner, _Session()).jobs[_found(_JOB, line) or ""] = stages

    def _job_end(self, line: str) -> None:
        job = _found(_JOB, line) or ""
        for session in self._sessions.values():
            session.over.update(session.jobs.get(job, ()))

    def _stage(self, line: str) -> None:
        owner = self._stages.get(_found(_STAGE, line) or "")
        if owner is None:
            return
        session = self._sessions.setdefault(owner, _Session())
        session.over.add(_found(_STAGE, line) or "")
        counted = session.counted
        for name, value in _COUNTER.findall(line):
            if name in _COUNTED:
                counted[_COUNTED[name]] = counted.get(_COUNTED[name], 0) + int(value)

    def _execution(self, line: str) -> None:
        owner = self._owner(line)
        if owner is not None:
            self._executions[_found(_EXECUTION, line) or ""] = owner
            self._plan(line)

    def _plan(self, line: str) -> None:
        owner = self._executions.get(_found(_EXECUTION, line) or "")
        if owner is not None:
            session = self._sessions.setdefault(owner, _Session())
            session.written.update(_WRITTEN.findall(line))
            session.read.update(_READ.findall(line))
            self._accumulators |= {int(number): owner for number in _PLANNED.findall(line)}

    def _updates(self, line: str) -> None:
        for number, value in _UPDATES.findall(line):
            owner = self._accumulators.get(int(number))
            if owner is not None:
                self._sessions.setdefault(owner, _Session()).planned[int(number)] = int(value)


def _found(pattern: re.Pattern[str], line: str) -> str | None:
    match = pattern.search(line)
    return None if match is None else match[1]


def _drop(known: dict[Any, str], session: str) -> None:
    for key in [key for key, owner in known.items() if owner == session]:
        del known[key]


class EventLog:
    """Reads an event log while it grows; deletes files that were read and that Spark has closed."""

    def __init__(self, folder: Path, *, is_application: bool = False) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._totals = EventTotals(is_application=is_application)
        self._file: Path | None = None
        self._at = 0

    @property
    def has_begun(self) -> bool:
        """Whether Spark wrote any event."""
        return any(self._folder.glob("*/events_*"))

    def port(self) -> int | None:
        """Return the port that the server listens on; None until it does."""
        with self._lock:
            self._read()
            return self._totals.port

    def usage(self, session: str = "", *, after: str = "", seconds: float = 0.0) -> Usage:
        """Return what a session has used; wait up to some seconds for its operations, and ``after``, to end."""
        deadline = time.monotonic() + seconds
        while True:
            with self._lock:
                self._read()
                is_over = self._totals.is_quiet(session) and (not after or after in self._totals.finished)
                if is_over or time.monotonic() >= deadline:
                    return self._totals.usage(session)
            time.sleep(_LOOK_SECONDS)

    def usage_if_any(self) -> Usage | None:
        """Return what an application has used; None if it wrote no event log."""
        return self.usage() if self.has_begun else None

    def stages(self, session: str = "") -> tuple[int, int]:
        """Return how many stages of a session have ended, and how many are known."""
        with self._lock:
            self._read()
            return self._totals.stages(session)

    def tables(self, session: str = "") -> Tables:
        """Return the tables that a session has read and written, according to what was read of the log so far."""
        with self._lock:
            return self._totals.tables(session)

    def forget(self, session: str) -> None:
        """Delete what is known about a session."""
        with self._lock:
            self._totals.forget(session)

    def _read(self) -> None:
        for line in self._lines():
            self._totals.take(line)

    def _lines(self) -> Iterator[str]:
        while True:
            files = sorted(self._folder.glob("*/events_*"), key=_index)
            if self._file is None:
                if not files:
                    return
                self._file = files[0]
            yield from self._new_lines(self._file)
            later = [file for file in files if _index(file) > _index(self._file)]
            if not later:
                return
            self._file.unlink(missing_ok=True)
            self._file, self._at = later[0], 0

    def _new_lines(self, path: Path) -> Iterator[str]:
        with path.open("rb") as file:
            file.seek(self._at)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._at += len(line)
                yield line.decode("utf-8", "replace")


def _index(path: Path) -> int:
    return int(path.name.split("_")[1])
