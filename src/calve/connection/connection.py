"""A connection to a project on this machine, or to a server."""

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from calve.access import local_principal
from calve.capture import CHANGES, CaptureReport
from calve.connection.change import Change
from calve.connection.definition_files import SUFFIXES, load_file, vocabulary_of
from calve.connection.notebook import Document, Graph, Instance, Records
from calve.connection.options import CaptureOptions, PlanOptions
from calve.errors import RequestInvalid
from calve.settings import Settings, load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from calve.app import Project
    from calve.dsl import Workflow
    from calve.lake import Lake
    from calve.operations import Operations

Definition = str | Path | Mapping[str, Any]
"""The path of a YAML, JSON or Python file, the text of YAML or JSON, or the parsed document."""
_OFTEN = 0.1
_LAG = ("consumer", "table", "pending_commits", "pending_files", "pending_records", "age_seconds", "expires_in_seconds")
_CAPTURES = ("capture_id", "consumer", "number", "status", "created_at", "closed_at")
_CHECKPOINTS = ("consumer", "table", "snapshot_id", "moved_at")
_INSTANCES = ("workflow_id", "workflow_instance_id", "workflow_run_id", "status", "create_time", "end_time")


def connect(where: str | Path | Settings | None = None, *, token: str | None = None) -> "Connection":
    """Connect to a project on this machine, or to a server.

    Args:
        where: the folder of a project, its settings, or the URL of a server. Default: the server that ``CALVE_URL`` or
            the settings name, or else the project in the current folder.
        token: the token for a server. Default: that of the settings.
    """
    if isinstance(where, str) and where.startswith(("http://", "https://")):
        settings = load()
        return Connection(settings, url=where, token=token or settings.client.token)
    settings = where if isinstance(where, Settings) else load(None if where is None else Path(where))
    url = settings.client.url if where is None else None
    return Connection(settings, url=url, token=token or settings.client.token)


class Connection(AbstractContextManager["Connection"]):
    """The same operations for a project on this machine and for a server. Close it, or use it in a ``with`` block."""

    def __init__(self, settings: Settings, *, url: str | None = None, token: str | None = None) -> None:
        self.settings = settings
        self._url, self._token = url, token
        self._stack = ExitStack()

    @cached_property
    def operations(self) -> "Operations":
        """All operations of the REST API; the other methods of this class are shorter forms of some."""
        if self._url is not None:
            from calve.client import Client

            return self._stack.enter_context(Client(self._url, self._token))
        from calve.operations import Caller, Operations

        return Operations(Caller(self._project, local_principal()))

    @cached_property
    def _project(self) -> "Project":
        from calve.app import open_project

        return self._stack.enter_context(open_project(self.settings))

    @cached_property
    def lake(self) -> "Lake":
        """The catalogs that the settings of this machine name."""
        if self._url is None:
            return self._project.lake
        from calve.app import open_lake

        return self._stack.enter_context(open_lake(self.settings))

    @cached_property
    def spark(self) -> "SparkSession":
        """A Spark session with the catalogs of the settings: local, or on ``spark.remote``."""
        from calve.lake import session

        return session(self.settings, "calve")

    def plan(
        self,
        tables: str | Sequence[str],
        consumer: str,
        *,
        operations: str | Sequence[str] = "append",
        **options: Unpack[PlanOptions],
    ) -> Change:
        """Return what the next capture of a consumer would contain; nothing is written.

        Args:
            tables: one or several tables.
            consumer: the consumer, whose checkpoint is the start of the change.
            operations: ``append``, ``overwrite``, ``delete``, a list of them, or ``all``.
            options: those of ``PlanOptions``: ``ranges``, ``mode``, ``start``, ``end``, limits, and how to handle gaps
                and changes of the schema.
        """
        wanted = _operations(operations)
        return self._change(self.operations.plan(_listed(tables), consumer, operations=wanted, **options))

    def capture(
        self,
        tables: str | Sequence[str],
        consumer: str,
        *,
        operations: str | Sequence[str] = "append",
        **options: Unpack[CaptureOptions],
    ) -> Change:
        """Capture the changes since the consumer's last commit.

        In a ``with`` block, the change is committed when the block ends, or abandoned if it raises an error.

        Args:
            tables: one or several tables.
            consumer: the consumer, whose checkpoint is the start of the change.
            operations: ``append``, ``overwrite``, ``delete``, a list of them, or ``all``.
            options: those of ``CaptureOptions``: those of ``plan``, and ``key``, ``lease`` and ``supersede``.
        """
        wanted = _operations(operations)
        return self._change(self.operations.create_capture(_listed(tables), consumer, operations=wanted, **options))

    def commit(self, change: Change | str) -> Change:
        """Move the checkpoint past a change that has been processed."""
        return self._closed(change, self.operations.commit_capture(_id_of(change)))

    def abandon(self, change: Change | str) -> Change:
        """Abandon a change: the next capture starts from the same checkpoint."""
        return self._closed(change, self.operations.abandon_capture(_id_of(change)))

    def captures(self, consumer: str | None = None) -> Records:
        """Return captures, newest first."""
        return Records(self.operations.captures(consumer=consumer), _CAPTURES)

    def checkpoints(self, consumer: str | None = None) -> Records:
        """Return the checkpoints of consumers, or of one of them."""
        return Records(self.operations.checkpoints(consumer=consumer), _CHECKPOINTS)

    def lag(self, consumer: str | None = None) -> Records:
        """Return how far consumers are behind their tables, and when the history that they need expires."""
        return Records(self.operations.lag(consumer=consumer), _LAG)

    def sql(self, statement: str) -> "DataFrame":
        """Run a Spark SQL statement on the lake, with the session ``spark``."""
        return self.spark.sql(statement)

    def push(self, definition: "Definition | Workflow") -> Document:
        """Push a definition: it becomes the next version of its workflow.

        Args:
            definition: the path of a YAML, JSON or Python file, which is read as ``calve push`` reads it; the text of
                YAML or JSON; the parsed document; or a workflow of ``calve.dsl``.
        """
        match definition:
            case Path():
                return self._push_file(definition)
            case str() if _is_file(definition):
                return self._push_file(Path(definition))
            case str() | Mapping():
                return self.operations.push(definition)
            case _:
                return self.operations.push(definition.to_json())

    def run(
        self,
        workflow: "Definition | Workflow",
        params: Mapping[str, Any] | None = None,
        *,
        version: str | int = "active",
        wait: bool = True,
        timeout: float | None = None,
    ) -> Instance:
        """Start an instance, and wait until it has ended.

        Without a server, this process is the worker that runs it, unless another worker runs on the project.

        Args:
            workflow: the id of a workflow; or a definition as for ``push``, which is pushed first.
            params: run params.
            version: ``active``, ``latest``, ``default`` or a number.
            wait: whether to wait for the end; otherwise a worker runs the instance, now or later.
            timeout: the maximum number of seconds to wait.

        Raises:
            WaitedTooLong: it has not ended after ``timeout`` seconds; it continues.
        """
        if isinstance(workflow, str) and not _is_definition(workflow):
            started = self.operations.start(workflow, params, version=version)
        else:
            pushed = self.push(workflow)["metadata"]
            started = self.operations.start(pushed["workflow_id"], params, version=pushed["workflow_version_id"])
        which = started["workflow_id"], int(started["workflow_instance_id"])
        if not wait:
            return self.instance(*which)
        if self._url is not None:
            return Instance(self.operations.wait(*which, timeout=timeout))
        from calve.app import WorkerThread
        from calve.operations import OVER

        end = time.monotonic() + (timeout or math.inf)
        with WorkerThread(self._project) as worker:
            while (found := self.instance(*which))["status"] not in OVER and time.monotonic() < end:
                worker.look()
                worker.changed.wait(_OFTEN)
                worker.changed.clear()
        return found if found["status"] in OVER else Instance(self.operations.wait(*which, timeout=0))

    def instance(self, workflow_id: str, instance_id: int) -> Instance:
        """Return an instance with its params and steps."""
        return Instance(self.operations.instance(workflow_id, instance_id))

    def instances(
        self, workflow_id: str | None = None, *, statuses: Sequence[str] = (), limit: int | None = 100
    ) -> Records:
        """Return instances, newest first: of a workflow, or of all of them."""
        return Records(self.operations.instances(workflow_id, statuses=statuses, limit=limit), _INSTANCES)

    def graph(self, workflow_id: str, version: str | int = "latest") -> Graph:
        """Return the graph of a workflow's steps."""
        steps = self.operations.version(workflow_id, version)["workflow"]["steps"]
        found = [next(iter(step.values())) for step in steps]
        return Graph({step["id"]: tuple(step.get("transition", {}).get("successors", {})) for step in found})

    def close(self) -> None:
        """Close the project or the HTTP connections; the Spark session stays open, because others may use it, too."""
        self._stack.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def __repr__(self) -> str:
        return f"<Connection to {self._url or self.settings.project}>"

    def _push_file(self, file: Path) -> Document:
        found = load_file(file, self.settings.project, vocabulary_of(self.operations.templates))
        if len(found) > 1:
            raise RequestInvalid(
                f"{file} defines {len(found)} workflows.", remedy="Push each of calve.dsl.workflows_in(file)."
            )
        return self.operations.push(found[0].to_push().required().as_json())

    def _closed(self, change: Change | str, document: Document) -> Change:
        found = self._change(document)
        if isinstance(change, str):
            return found
        change.report = found.report
        return change

    def _change(self, document: Document) -> Change:
        return Change(CaptureReport.from_json(document), self)


def _listed(tables: str | Sequence[str]) -> list[str]:
    return [tables] if isinstance(tables, str) else list(tables)


def _operations(wanted: str | Sequence[str]) -> list[str]:
    if wanted == "all":
        return [operation.value for operation in CHANGES]
    return _listed(wanted)


def _id_of(change: Change | str) -> str:
    found = change if isinstance(change, str) else change.capture_id
    if found is None:
        raise RequestInvalid("A plan cannot be committed or abandoned.", remedy="Capture the change first: capture(…).")
    return found


def _is_definition(text: str) -> bool:
    """Tell whether a text is a definition or the path of its file, rather than the id of a workflow."""
    return ":" in text or _is_file(text)


def _is_file(text: str) -> bool:
    """Tell whether a text is the path of a definition's file, rather than a definition."""
    return "\n" not in text and Path(text).suffix in SUFFIXES
