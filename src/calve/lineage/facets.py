"""Our own facet: which part of an input's history a step works on."""

from typing import Any

import attr
from openlineage.client.generated.base import InputDatasetFacet

NAME = "calve_capturedRange"
SCHEMA = "urn:calve:lineage:CapturedRangeInputDatasetFacet:1-0-0"
"""Names the schema, which lies beside this module and in the documentation."""


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
