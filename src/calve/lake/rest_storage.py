"""The files of tables in a REST catalog: opened with what the catalog gives out for each."""

import re
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING

from calve.errors import LakeError
from calve.lake.commit_outcomes import Outcome
from calve.lake.files import Files
from calve.lake.metadata_checks import decoding
from calve.lake.rest_session import RestSession
from calve.lake.storage_credentials import TableStorage, Vended, has_own_keys, vended
from calve.lake.table_name import TableName

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

_OPEN = 16
"""How many sets of credentials one object keeps connections for."""
_KNOWN = 256
"""How many new tables' credentials are kept."""
_FOLDERS = re.compile(r"/(metadata|data)/[^/]*$")
_COLUMN = {"id": 1, "name": "a", "type": "int", "required": False}


class VendedFiles(Files):
    """Files that each bring their own properties, by their paths."""

    def __init__(
        self,
        properties_for: Callable[[str], Mapping[str, str]],
        max_bytes: int,
        remedy: Callable[[str], str] = lambda _: "",
    ) -> None:
        """Take what knows the properties of a file, the limit of a file, and what to do if one cannot be written."""
        super().__init__(max_bytes=max_bytes)
        self._properties_for = properties_for
        self._remedy = remedy
        self._by_properties: dict[tuple[tuple[str, str], ...], Files] = {}
        self._choosing = Lock()

    def write(self, path: str, content: bytes) -> None:
        """Write a file atomically."""
        try:
            super().write(path, content)
        except LakeError as error:
            error.remedy = self._remedy(path) or error.remedy
            raise

    def _io(self, path: str) -> "FileIO":
        properties = self._properties_for(path)
        key = tuple(sorted(properties.items()))
        with self._choosing:
            if key not in self._by_properties:
                while len(self._by_properties) >= _OPEN:  # those of the oldest credentials, which may have ended
                    del self._by_properties[next(iter(self._by_properties))]
                self._by_properties[key] = Files(properties)
            io = self._by_properties[key]._io(path)  # noqa: SLF001 - of the same class
        self._remote[path.partition(":")[0]] = io  # asked for the reason if the store refuses something
        return io


class NewTableStorage:
    """Where calve's own tables are stored, and with which credentials; safe for several threads.

    The credentials in calve.toml come first. Without any, the catalog is asked to prepare a table at that place
    (``stage-create``, which creates nothing), and gives out credentials as for any table. If it refuses, the machine's
    own credentials are left.
    """

    def __init__(
        self, session: RestSession, namespace: Sequence[str], max_bytes: int, now_ms: Callable[[], int]
    ) -> None:
        self._session = session
        self._namespace = tuple(namespace)
        self._max_bytes = max_bytes
        self._now_ms = now_ms
        self._tables: dict[str, TableName] = {}
        self._storages: dict[str, TableStorage | str] = {}
        """By folder; a text says why the catalog gives out nothing."""
        self._asking = Lock()

    @property
    def grants(self) -> str:
        """What to do if the catalog refuses calve's tables."""
        namespace = ".".join(self._namespace)
        return (
            f"Grant calve's principal the right to create, register and drop tables in the namespace {namespace} of "
            f"the catalog {self._session.name}, or name another one in capture.namespace."
        )

    def files(self) -> Files:
        """Return the files of new tables."""
        return VendedFiles(self.properties_for, self._max_bytes, self._remedy)

    def propose(self, table: TableName) -> str | None:
        """Ask the catalog where it would put a new table; None if it does not tell."""
        if not self._stages():
            return None
        try:
            location, given = self._staged(table, None)
        except LakeError:
            return None
        if location:
            self._keep(location, self._storage(table, location, given))
        return location

    def expect(self, table: TableName, location: str) -> None:
        """Remember which table a folder is meant for."""
        while len(self._tables) >= _KNOWN:
            del self._tables[next(iter(self._tables))]
        self._tables[location.rstrip("/")] = table

    def keep(self, location: str, storage: TableStorage) -> None:
        """Remember the credentials of a table, for files that are deleted after it."""
        if not has_own_keys(self._session.properties):
            self._keep(location, storage)

    def properties_for(self, path: str) -> Mapping[str, str]:
        """Return the properties for a file of calve's own."""
        own = self._session.properties
        if has_own_keys(own) or not self._stages():
            return own
        storage = self._storage_at(_folder(path))
        return own if isinstance(storage, str) else storage.properties_for(path)

    def _storage_at(self, folder: str) -> TableStorage | str:
        with self._asking:
            if folder not in self._storages:
                table = self._tables.get(folder) or TableName(
                    self._session.name, self._namespace, folder.rpartition("/")[2]
                )
                try:
                    _, given = self._staged(table, folder)
                    self._keep(folder, self._storage(table, folder, given))
                # Catalogs that cannot prepare tables answer with any status: the store decides whether keys are needed.
                except LakeError as error:
                    self._keep(folder, f"{error.message.rstrip('.')}.")
            return self._storages[folder]

    def _keep(self, folder: str, storage: TableStorage | str) -> None:
        while len(self._storages) >= _KNOWN:
            del self._storages[next(iter(self._storages))]
        self._storages[folder.rstrip("/")] = storage

    def _storage(self, table: TableName, folder: str, given: Vended) -> TableStorage:
        return TableStorage(
            str(table), lambda: self._session.properties, given, lambda: self._staged(table, folder)[1], self._now_ms
        )

    def _stages(self) -> bool:
        return self._session.offers("POST namespaces/{namespace}/tables")

    def _staged(self, table: TableName, location: str | None) -> tuple[str | None, Vended]:
        """Let the catalog prepare a table, without creating it; return its location and credentials.

        Raises:
            CatalogRefused: it does not.
            LakeUnavailable: it does not answer.
        """
        path = self._session.path("namespaces/{namespace}/tables", table.namespace)
        body = {"name": table.name, "stage-create": True, "schema": {"type": "struct", "fields": [_COLUMN]}}
        body |= {} if location is None else {"location": location}
        answer = self._session.repeat("POST", path, body=body)
        if answer.outcome is Outcome.MISSING:
            self.create_namespace(table.namespace)
            answer = self._session.repeat("POST", path, body=body)
        if answer.outcome is not Outcome.DONE:
            raise self._session.refusal(answer, self.grants)
        with decoding(str(table)):
            response = self._session.parse(answer, str(table))
            found = response["metadata"].get("location")
            return (found if isinstance(found, str) else None), vended(response, str(table))

    def create_namespace(self, namespace: Sequence[str]) -> None:
        """Create a namespace and those above it; existing ones are fine.

        Raises:
            CatalogRefused: the caller may not.
        """
        for depth in range(1, len(namespace) + 1):
            body = {"namespace": list(namespace[:depth]), "properties": {}}
            answer = self._session.repeat("POST", "namespaces", body=body)
            if answer.outcome in {Outcome.REFUSED, Outcome.MISSING}:
                raise self._session.refusal(answer, self.grants)

    def _remedy(self, path: str) -> str:
        """Say what to do if a file of calve's own cannot be written."""
        storage = self._storages.get(_folder(path))
        if not isinstance(storage, str):
            return ""
        return (
            f"calve.toml has no credentials for this place, and the catalog gives out none: {storage} {self.grants} "
            f"Or set the store's keys for the catalog {self._session.name}, and capture.location to a folder that they "
            "may write to."
        )


def _folder(path: str) -> str:
    """Return the folder of the table that a file belongs to."""
    found = _FOLDERS.search(path)
    return path[: found.start()] if found else path.rpartition("/")[0]
