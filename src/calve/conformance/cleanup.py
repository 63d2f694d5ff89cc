"""Removes everything that a proof made, as far as the catalog lets it, and says how to remove the rest by hand."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from calve.capture import Status
from calve.conformance.failures import message_of
from calve.conformance.model import Leftover, Skipped
from calve.conformance.scratch_table import ScratchTable
from calve.conformance.table_checks import list_tables
from calve.conformance.workspace import Workspace
from calve.errors import LakeError, ProofFailed, SettingsInvalid, TableMissing
from calve.lake import TableName, local_path
from calve.texts import quoted

if TYPE_CHECKING:
    from pyiceberg.io import FileIO


@dataclass(frozen=True, slots=True)
class _Removal:
    """Something to remove."""

    what: str
    by_hand: str
    action: Callable[[], object]


def clean_up(workspace: Workspace) -> str | Skipped:
    """Remove everything that was made; what cannot be removed is listed in the workspace.

    Ctrl-C ends it.

    Raises:
        ProofFailed: something is left; the remedy says how to remove it by hand.
    """
    if workspace.keeps:
        return Skipped(f"--keep: everything is in the namespace {workspace.namespace}")
    removals = list(_removals(workspace)) if workspace.owns_namespace else []
    for number, removal in enumerate(removals):
        try:
            removal.action()
        except Exception as error:  # noqa: BLE001 - whatever it is, the rest is removed
            by_hand = getattr(error, "remedy", "") or removal.by_hand
            workspace.leftovers.append(Leftover(removal.what, message_of(error), by_hand))
        except KeyboardInterrupt:
            workspace.leftovers += [Leftover(one.what, "stopped", one.by_hand) for one in removals[number:]]
            break
    if workspace.leftovers:
        raise ProofFailed(
            f"These are left: {', '.join(f'{one.what} ({one.why})' for one in workspace.leftovers)}.",
            remedy=" ".join(f"{one.what}: {one.by_hand}" for one in workspace.leftovers),
        )
    return "nothing is left"


def _removals(workspace: Workspace) -> Iterator[_Removal]:
    """Yield what to remove, captures before the tables whose files they use, and the namespace last."""
    namespace = quoted(workspace.catalog_name, workspace.namespace)
    yield _Removal(
        "the tables of captures",
        f"In Spark: SHOW TABLES IN {namespace}; DROP TABLE each of them, without PURGE.",
        partial(_collect, workspace),
    )
    for table in workspace.tables.values():
        by_hand = f"In Spark: DROP TABLE {table.name.sql()} PURGE. Then delete its folder, if it is still there."
        yield _Removal(f"the table {table.name}", by_hand, partial(_drop, workspace, table))
    by_hand = f"Drop the tables in it, then, in Spark: DROP NAMESPACE {namespace}."
    yield _Removal(f"the namespace {workspace.namespace}", by_hand, partial(_drop_namespace, workspace))


def _collect(workspace: Workspace) -> None:
    for stored in workspace.captures.captures():
        if stored.status is Status.OPEN:
            workspace.captures.abandon(stored.capture_id)
    # One hour from now: also what was interrupted this moment.
    problems = [each for one in workspace.captures.collect_garbage(-timedelta(hours=1)) for each in one.problems]
    if problems:
        raise LakeError("; ".join(problems))


def _drop(workspace: Workspace, table: ScratchTable) -> None:
    """Drop a table and delete its folder, which is its own if the table's name is part of the path."""
    try:
        location = str(workspace.catalog.load(table.name).metadata["location"])
    except TableMissing:
        _delete_remains(workspace, table.name)
        return
    io = table.load().io
    workspace.catalog.drop(table.name)
    by_hand = f"It is dropped. Delete its files in {location}."
    if table.name.name not in location:
        raise LakeError(f"{location} is not a folder of its own, so its files are left.", remedy=by_hand, path=location)
    workspace.folders.add(location.rstrip("/").rpartition("/")[0])
    try:
        _delete_folder(io, location)
    except OSError as error:
        raise LakeError(message_of(error), remedy=by_hand, path=location) from error


def _delete_remains(workspace: Workspace, name: TableName) -> None:
    """Delete the files of a table that was not created after all."""
    from pyiceberg.io import load_file_io

    with suppress(SettingsInvalid):  # the catalog alone knows where its tables would be
        location = workspace.catalog.location_for(name)
        _delete_folder(load_file_io(workspace.catalog.properties, location), location)


def _delete_folder(io: "FileIO", location: str) -> None:
    """Delete a folder with all that is in it: files of commits that lost a race are in no metadata."""
    from pyarrow.fs import FileSelector
    from pyiceberg.io.pyarrow import PyArrowFileIO

    if not isinstance(io, PyArrowFileIO):
        raise OSError(f"{type(io).__name__} cannot delete a folder.")
    scheme, netloc, path = PyArrowFileIO.parse_location(location, io.properties)
    store = io.fs_by_scheme(scheme, netloc)
    try:
        store.delete_dir(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError:
        # Some object stores refuse to delete the marks of folders, which disappear with the files in them.
        if any(
            found.is_file for found in store.get_file_info(FileSelector(path, allow_not_found=True, recursive=True))
        ):
            raise


def _drop_namespace(workspace: Workspace) -> None:
    from pyiceberg.exceptions import NoSuchNamespaceError

    catalog, namespace = workspace.catalog.pyiceberg(), (workspace.namespace,)
    try:
        catalog.load_namespace_properties(namespace)
    except NoSuchNamespaceError:  # it was not created after all
        return
    if left := list_tables(workspace):
        raise LakeError(f"It still has the tables {', '.join(left)}.")
    with suppress(SettingsInvalid):
        any_table = TableName(workspace.catalog_name, namespace, "any")
        workspace.folders.add(workspace.catalog.location_for(any_table).rpartition("/")[0])
    catalog.drop_namespace(namespace)
    for location in workspace.folders:
        folder = local_path(location)
        if folder is not None and workspace.namespace in folder.name:
            with suppress(OSError):  # not empty, or gone with its last table
                folder.rmdir()
