"""Snapshots that PyIceberg has no method for: ``replace``, and an overwrite of files in a single snapshot."""

from collections.abc import Iterable

from pyiceberg.manifest import DataFile, ManifestFile
from pyiceberg.table import Table, Transaction
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import (
    _FastAppendFiles,
    _ManifestMergeManager,
    _OverwriteFiles,
)
from pyiceberg.typedef import EMPTY_DICT

_HUGE = 1 << 40


def replace_files(
    table: Table,
    transaction: Transaction,
    gone: Iterable[DataFile],
    new: Iterable[DataFile],
    operation: Operation,
) -> None:
    """Replace data files by others, in one snapshot of an operation."""
    kind = _Compaction if operation is Operation.REPLACE else _OverwriteFiles
    with kind(operation=operation, transaction=transaction, io=table.io) as snapshot:
        for file in gone:
            snapshot.delete_data_file(file)
        for file in new:
            snapshot.append_data_file(file)


def merge_manifests(table: Table, transaction: Transaction) -> None:
    """Write all manifests of one spec into one, in a ``replace`` snapshot."""
    with _ManifestRewrite(operation=Operation.REPLACE, transaction=transaction, io=table.io):
        pass


def _as_replace(summary: Summary) -> Summary:
    return Summary(Operation.REPLACE, **summary.additional_properties)


class _Compaction(_OverwriteFiles):
    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        self._operation = Operation.OVERWRITE  # PyIceberg cannot update the summary of a replace
        return _as_replace(super()._summary(snapshot_properties))


class _ManifestRewrite(_FastAppendFiles):
    def _process_manifests(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        return _ManifestMergeManager(_HUGE, 1, merge_enabled=True, snapshot_producer=self).merge_manifests(manifests)

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        self._operation = Operation.APPEND  # PyIceberg cannot update the summary of a replace
        return _as_replace(super()._summary(snapshot_properties))
