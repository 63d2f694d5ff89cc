"""Attempts as OpenLineage events. Pure."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import attr
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    DatasetFacet,
    RunFacet,
    dataset_version_dataset,
    error_message_run,
    input_statistics_input_dataset,
    job_type_job,
    output_statistics_output_dataset,
    parent_run,
)
from openlineage.client.generated.base import InputDatasetFacet

from calve import __version__
from calve.capture import CaptureReport, TableReport
from calve.engine import Attempt, Event, StepStatus, model
from calve.lake import TableName

PRODUCER = f"urn:calve:{__version__}"
TYPES = frozenset({"Spark", "IpCapture", "IpCommit", "ICDC"})
"""The step types that are reported."""
_BEGUN = frozenset({StepStatus.STARTING, StepStatus.RUNNING})
_CAPTURING = frozenset({"IpCapture", "ICDC"})

Parse = Callable[[str], TableName]
"""Parses the name of a table."""


@dataclass(frozen=True, slots=True)
class Told:
    """Everything that is known about an attempt when it begins or ends."""

    event: Event
    state: RunState
    run: model.Run
    attempt: Attempt
    capture: CaptureReport | None = None


def state_of(event: Event) -> RunState | None:
    """Return the OpenLineage state of an event; None if it has none."""
    if event.kind != model.STEP_EVENT or event.after is None:
        return None
    before, after = StepStatus(event.before or StepStatus.NOT_CREATED), StepStatus(event.after)
    if after in _BEGUN:
        return None if before in _BEGUN else RunState.START
    match after:
        case StepStatus.SUCCEEDED:
            return RunState.COMPLETE
        case StepStatus.STOPPED:
            return RunState.ABORT
        case _ if after.is_terminal and (not after.is_complete or after is StepStatus.COMPLETED_WITH_ERROR):
            return RunState.FAIL
        case _:
            return None


def built(told: Told, namespace: str, parse: Parse) -> RunEvent:
    """Return the OpenLineage event."""
    attempt, run = told.attempt, told.run
    name = f"{run.owner_workflow}.{attempt.step_id}"
    kind = job_type_job.JobTypeJobFacet("BATCH", "CALVE", attempt.type.upper(), producer=PRODUCER)
    return RunEvent(
        eventType=told.state,
        eventTime=datetime.fromtimestamp(told.event.at / 1_000, UTC).isoformat(),
        run=Run(attempt.uuid, facets=dict(_run_facets(told, namespace))),
        job=Job(namespace, name, facets={"jobType": kind}),
        inputs=_inputs(told, parse),
        outputs=_outputs(told, parse),
        producer=PRODUCER,
    )


def _run_facets(told: Told, namespace: str) -> Iterator[tuple[str, RunFacet]]:
    run = told.run
    parent = parent_run.Run(run.uuid)
    yield "parent", parent_run.ParentRunFacet(parent, parent_run.Job(namespace, run.owner_workflow), producer=PRODUCER)
    if told.state is RunState.FAIL:
        said = [str(entry.get("message", "")) for entry in told.attempt.timeline[-1:]]
        text = said[0] if said else told.attempt.status.value
        yield "errorMessage", error_message_run.ErrorMessageRunFacet(text, "PYTHON", producer=PRODUCER)


def _inputs(told: Told, parse: Parse) -> list[InputDataset]:
    """Return what was read: the sources of the capture that a step takes or processes, and other tables."""
    capture = told.capture
    sources = [] if capture is None else [_source(capture, table, parse) for table in capture.tables]
    if told.attempt.type in _CAPTURING or told.attempt.type == "IpCommit":
        return sources
    known = {(source.namespace, source.name) for source in sources} | _made(capture, parse)
    others = (_named(table, parse) for table in told.attempt.artifacts.get("tables_read", ()))
    return [*sources, *(InputDataset(*other) for other in dict.fromkeys(others) if other not in known)]


def _source(capture: CaptureReport, table: TableReport, parse: Parse) -> InputDataset:
    snapshots = [
        {"snapshotId": str(step["snapshot_id"]), "operation": step["operation"], "included": step["included"]}
        for step in table.snapshots
    ]
    captured = CapturedRange(
        captureId=capture.capture_id or "",
        consumer=capture.consumer,
        fromSnapshotId=_text(table.from_snapshot_id),
        toSnapshotId=_text(table.to_snapshot_id),
        fromSequenceNumber=table.from_sequence_number,
        toSequenceNumber=table.to_sequence_number,
        snapshots=snapshots,
        ranges=table.ranges,
        exactness=table.exactness,
        records=table.records,
        deletedRecords=table.deleted_records,
        files=table.files,
        bytes=table.bytes,
        producer=PRODUCER,
    )
    counted = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
        table.records, table.bytes, table.files, producer=PRODUCER
    )
    return InputDataset(
        *_named(table.source_table, parse),
        facets=_version(table.to_snapshot_id),
        inputFacets={"inputStatistics": counted, NAME: captured},
    )


def _outputs(told: Told, parse: Parse) -> list[OutputDataset]:
    """Return what was written: the tables of a change, or what Spark wrote, with the published snapshots."""
    attempt = told.attempt
    if attempt.type in _CAPTURING:
        return [OutputDataset(*name) for name in sorted(_made(told.capture, parse))]
    # An IpCommit publishes what other steps held back for it.
    published = {_named(each["table"], parse): each["snapshot_id"] for each in attempt.artifacts.get("published", ())}
    written = [_named(table, parse) for table in attempt.artifacts.get("tables_written", ())]
    names = dict.fromkeys((*published, *written))
    counts = attempt.artifacts.get("spark", {})
    # Spark counts rows of a job, not of a table.
    is_one = len(names) == 1 and "rows_written" in counts
    counted = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        counts.get("rows_written"), counts.get("bytes_written"), producer=PRODUCER
    )
    facets = {"outputStatistics": counted} if is_one else {}
    return [OutputDataset(*name, facets=_version(published.get(name)), outputFacets=dict(facets)) for name in names]


def _made(capture: CaptureReport | None, parse: Parse) -> set[tuple[str, str]]:
    """Return the tables that a capture made; paths and views do not count."""
    tables: Iterable[TableReport] = () if capture is None or capture.mode != "table" else capture.tables
    return {_named(name, parse) for table in tables for name in (table.icdc_table, table.deletes_table) if name}


def _named(table: str, parse: Parse) -> tuple[str, str]:
    """Return the namespace and the name of a dataset."""
    name = parse(table)
    return f"iceberg://{name.catalog}", ".".join(name.identifier)


def _version(snapshot_id: int | None) -> dict[str, DatasetFacet]:
    if snapshot_id is None:
        return {}
    facet = dataset_version_dataset.DatasetVersionDatasetFacet(str(snapshot_id), producer=PRODUCER)
    return {"version": facet}


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


NAME = "calve_capturedRange"
SCHEMA = "urn:calve:lineage:CapturedRangeInputDatasetFacet:1-0-0"
"""The id of the schema, which is beside this module and in the documentation."""


@attr.define
class CapturedRange(InputDatasetFacet):
    """The snapshots of an Iceberg table that were captured: those after ``fromSnapshotId``, up to ``toSnapshotId``."""

    captureId: str  # noqa: N815 - OpenLineage writes names so
    consumer: str
    fromSnapshotId: str | None  # noqa: N815 - the same
    toSnapshotId: str | None  # noqa: N815 - the same
    fromSequenceNumber: int | None  # noqa: N815 - the same
    toSequenceNumber: int  # noqa: N815 - the same
    snapshots: list[dict[str, Any]]
    ranges: dict[str, dict[str, Any]]
    exactness: str
    records: int
    deletedRecords: int | None  # noqa: N815 - the same
    files: int
    bytes: int

    @staticmethod
    def _get_schema() -> str:
        return SCHEMA
