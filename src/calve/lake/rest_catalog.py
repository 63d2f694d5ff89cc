"""REST catalogs: the table's metadata as the server sends it, and commits as JSON of our own."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from calve.errors import (
    FormatVersionUnknown,
    LakeCorrupt,
    LakeError,
    LakeUnavailable,
    SettingsInvalid,
    SourceBusy,
    TableMissing,
)
from calve.lake import metadata as raw
from calve.lake.catalogs import LOADERS, Catalog, Decide, LoadedTable, wall_clock_ms
from calve.lake.commit_outcomes import Outcome
from calve.lake.metadata_checks import MAX_METADATA_BYTES, checked, decoding
from calve.lake.rest_commits import RestCommit, change_commit, tag_commit, untag_commit
from calve.lake.rest_session import Answer, RestSession, pause
from calve.lake.rest_storage import NewTableStorage, VendedFiles
from calve.lake.storage_credentials import TableStorage, Vended, has_own_keys, vended
from calve.lake.table_name import TableName

if TYPE_CHECKING:
    from pyiceberg.catalog.rest import RestCatalog as PyIcebergRestCatalog

_ATTEMPTS = 8
_TABLE = "namespaces/{namespace}/tables/{table}"
_VIEW = "namespaces/{namespace}/views/{view}"
_CREDENTIALS = "namespaces/{namespace}/tables/{table}/credentials"


class RestCatalog(Catalog):
    """A catalog that speaks Iceberg's REST protocol."""

    def __init__(
        self,
        name: str,
        properties: Mapping[str, str],
        *,
        location: str | None = None,
        namespace: str = "icdc",
        max_bytes: int = MAX_METADATA_BYTES,
        now_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        """Take PyIceberg's properties, and the namespace of new tables."""
        super().__init__(name, properties, location=location, max_bytes=max_bytes, now_ms=now_ms)
        self._session = RestSession(name, self._opened, max_bytes)
        self._new = NewTableStorage(self._session, (namespace,), max_bytes, self._now_ms)
        self.files = self._new.files()
        self._seen: dict[TableName, tuple[str, str]] = {}

    def load(self, table: TableName) -> LoadedTable:
        """Return a table's current metadata, with the credentials that the catalog gives out for it: one request."""
        return self._loaded(table, self._session.read(self._path(table), {"snapshots": "all"}))

    def exists(self, table: TableName) -> bool:
        """Tell whether a table exists."""
        if self._session.offers(f"HEAD {_TABLE}"):
            answer = self._session.read(self._path(table), method="HEAD")
        else:
            answer = self._session.read(self._path(table), {"snapshots": "refs"})
        return answer.outcome is Outcome.DONE

    def locations(self, tables: Sequence[TableName]) -> dict[TableName, str]:
        """Return the location of each table's current metadata: one request each, a few at a time.

        A catalog that numbers its answers (``ETag``) sends the metadata only of those that have changed.
        """
        self._session.catalog()  # opened once, and not by each thread
        with ThreadPoolExecutor(LOADERS) as pool:
            found = dict(zip(tables, pool.map(self._location_of, tables), strict=True))
        return {table: location for table, location in found.items() if location is not None}

    def _location_of(self, table: TableName) -> str | None:
        tag, location = self._seen.get(table, ("", ""))
        headers = {"If-None-Match": tag} if tag else {}
        try:
            answer = self._session.read(self._path(table), {"snapshots": "refs"}, headers=headers)
            if answer.status == _UNCHANGED:
                return location
            if answer.outcome is Outcome.MISSING:
                return None
            location = self._loaded(table, answer).metadata_location
        except (FormatVersionUnknown, LakeCorrupt):
            return None
        if tag := answer.headers.get("ETag", ""):
            # Jetty marks the tag of a compressed answer, and then does not know it again.
            self._seen[table] = tag.replace("--gzip", ""), location
        return location

    def register(self, table: TableName, metadata_location: str) -> None:
        """Register a table with existing metadata, and create its namespace if needed."""
        body = {"name": table.name, "metadata-location": metadata_location}
        path = self._session.path("namespaces/{namespace}/register", table.namespace)
        is_unknown = is_created = False
        for attempt in range(_ATTEMPTS):
            answer = self._session.send("POST", path, body=body)
            match answer.outcome:
                case Outcome.DONE:
                    return
                case Outcome.MISSING if not is_created:
                    self._new.create_namespace(table.namespace)
                    is_created = True
                    continue
                case Outcome.CONFLICT if is_unknown and self._is_at(table, metadata_location):
                    return
                case Outcome.CONFLICT:
                    raise LakeError(f"{table} already exists.", table=str(table), reason="exists")
                case Outcome.REFUSED | Outcome.MISSING:
                    raise self._session.refusal(answer, f"{self._new.grants} Mode path registers nothing.")
            is_unknown |= answer.outcome is Outcome.UNKNOWN
            pause(attempt, answer)
        raise self._session.unavailable(answer)

    def _is_at(self, table: TableName, metadata_location: str) -> bool:
        return self.load(table).metadata_location == metadata_location

    def drop(self, table: TableName) -> bool:
        """Remove a table from the catalog, keeping all its files."""
        self._keep_storage(table)  # its files are deleted afterwards, when nobody gives out credentials for them
        answer = self._session.repeat("DELETE", self._path(table), params={"purgeRequested": "false"})
        if answer.outcome in {Outcome.REFUSED, Outcome.CONFLICT}:
            raise self._session.refusal(answer)
        return answer.outcome is Outcome.DONE

    def _keep_storage(self, table: TableName) -> None:
        """Remember the credentials of a table of calve's own before it is dropped: its files are deleted after it."""
        if has_own_keys(self._session.properties):
            return
        with suppress(LakeError):  # nothing to remember, and the catalog's answer to the drop says more
            answer = self._session.read(self._path(table), {"snapshots": "refs"})
            if answer.outcome is Outcome.DONE:
                _, metadata, given = self._decoded(table, answer)
                self._new.keep(metadata["location"], self._storage(table, given))

    def create_tag(self, table: TableName, tag: str, snapshot_id: int, max_age_ms: int) -> None:
        """Tag a snapshot, whatever the table's format version."""
        self._commit(table, lambda metadata: tag_commit(metadata, tag, snapshot_id, max_age_ms))

    def drop_tag(self, table: TableName, tag: str) -> bool:
        """Remove a tag."""
        return self._commit(table, lambda metadata: untag_commit(metadata, tag))

    def change(self, table: TableName, decide: Decide) -> bool:
        """Change snapshots, branches and properties, whatever the table's format version."""

        def plan(metadata: raw.Metadata) -> RestCommit | None:
            change = decide(metadata)
            return None if change is None else change_commit(metadata, change)

        return self._commit(table, plan)

    def _commit(self, table: TableName, plan: Callable[[raw.Metadata], RestCommit | None]) -> bool:
        """Commit what is planned from the current metadata; tell whether there was anything to do.

        After a lost answer exactly the same commit is sent again, and not planned again: the first one may still be
        carried out, and a new plan would delete the files that it needs. Its requirements let only one of them pass.
        """
        metadata: raw.Metadata | None = self.load(table).metadata
        commit: RestCommit | None = None
        is_unknown = False
        for attempt in range(_ATTEMPTS):
            if metadata is not None and commit is None:
                commit = plan(metadata)
            if commit is None:
                return False
            answer = self._session.send("POST", self._path(table), body=commit.as_json(table.namespace, table.name))
            if answer.outcome is Outcome.DONE:
                return True
            if answer.outcome in {Outcome.MISSING, Outcome.REFUSED} and not is_unknown:
                raise self._not_committed(table, answer)
            is_unknown |= answer.outcome is Outcome.UNKNOWN
            pause(attempt, answer)
            metadata = self._looked_at(table, answer)
            if metadata is not None and commit.happened(metadata):
                return True
            if answer.outcome is Outcome.REFUSED:
                raise self._not_committed(table, answer)
            if metadata is not None and answer.outcome is Outcome.CONFLICT:
                commit = None if not is_unknown or commit.is_late(metadata) else commit
        raise self._not_committed(table, answer)

    def _looked_at(self, table: TableName, answer: Answer) -> raw.Metadata | None:
        """Load a table after a commit; None if the catalog gave no answer to that, and now gives none to this."""
        try:
            return self.load(table).metadata
        except LakeUnavailable:
            if answer.outcome is Outcome.CONFLICT:
                raise
            return None

    def _not_committed(self, table: TableName, answer: Answer) -> LakeError:
        match answer.outcome:
            case Outcome.MISSING:
                return self._absent(table)
            case Outcome.REFUSED:
                return self._session.refusal(answer, _MAY_COMMIT)
            case Outcome.CONFLICT:
                return SourceBusy(f"{table} was changed by other writers {_ATTEMPTS} times in a row.", table=str(table))
            case _:
                return self._session.unavailable(answer)

    def namespace_location(self, namespace: tuple[str, ...]) -> str | None:
        """Return the ``location`` property of a namespace."""
        answer = self._session.read(self._session.path("namespaces/{namespace}", namespace))
        if answer.outcome is Outcome.MISSING:
            return None
        properties = self._session.parse(answer, ".".join(namespace)).get("properties") or {}
        return properties.get("location")

    def location_for(self, table: TableName) -> str:
        """Return the folder for a new table: if nothing names one, the catalog itself does."""
        try:
            location = super().location_for(table)
        except SettingsInvalid:
            proposed = self._new.propose(table)
            if proposed is None:
                raise
            location = proposed
        self._new.expect(table, location)
        return location

    def namespaces(self) -> list[tuple[str, ...]]:
        """Return the namespaces at the top."""
        return [tuple(namespace) for namespace in self._listed("namespaces", "namespaces")]

    def tables(self, namespace: tuple[str, ...]) -> list[str]:
        """Return the names of a namespace's tables."""
        path = self._session.path("namespaces/{namespace}/tables", namespace)
        return [".".join((*found["namespace"], found["name"])) for found in self._listed(path, "identifiers")]

    def _listed(self, path: str, what: str) -> list[Any]:
        """Return a list, which may come in pages."""
        size = self._session.properties.get("rest-page-size")
        params = {"pageSize": size} if size else {}
        found: list[Any] = []
        while True:
            answer = self._session.read(path, params)
            if answer.outcome is Outcome.MISSING:
                return []
            document = self._session.parse(answer, path)
            found += document.get(what) or []
            token = document.get("next-page-token")
            if not token or token == params.get("pageToken"):
                return found
            params["pageToken"] = token

    def close(self) -> None:
        """Close connections."""
        if self._pyiceberg is not None:
            self._opened()._session.close()  # noqa: SLF001 - PyIceberg leaves its connections open
        super().close()

    def _opened(self) -> "PyIcebergRestCatalog":
        if not self.properties.get("uri"):
            raise SettingsInvalid(
                f"The REST catalog {self.name} has no address.",
                remedy=f"Set uri in [catalogs.{self.name}].",
                catalog=self.name,
            )
        return cast("PyIcebergRestCatalog", self.pyiceberg())

    def _path(self, table: TableName) -> str:
        return self._session.path(_TABLE, table.namespace, table=table.name)

    def _loaded(self, table: TableName, answer: Answer) -> LoadedTable:
        location, metadata, given = self._decoded(table, answer)
        storage = self._storage(table, given)
        return LoadedTable(table, metadata, location, VendedFiles(storage.properties_for, self.files.max_bytes))

    def _decoded(self, table: TableName, answer: Answer) -> tuple[str, raw.Metadata, Vended]:
        """Return the location of a table's metadata, the metadata, and what the catalog gives out for its files."""
        if answer.outcome is Outcome.MISSING:
            raise self._absent(table)
        with decoding(str(table)):
            response = self._session.parse(answer, str(table))
            metadata, given = checked(response.get("metadata")), vended(response, str(table))
            location = response.get("metadata-location")
            if not isinstance(location, str):
                raise TypeError("the catalog reports no metadata-location")
        self._check_version(table, metadata)
        return location, metadata, given

    def _storage(self, table: TableName, given: Vended) -> TableStorage:
        return TableStorage(
            str(table), lambda: self._session.properties, given, lambda: self._renewed(table), self._now_ms
        )

    def _renewed(self, table: TableName) -> Vended:
        """Ask for new credentials for a table's files."""
        if self._session.offers(f"GET {_CREDENTIALS}"):
            path = self._session.path(_CREDENTIALS, table.namespace, table=table.name)
            answer = self._session.read(path)
        else:
            answer = self._session.read(self._path(table), {"snapshots": "refs"})
        if answer.outcome is Outcome.MISSING:
            raise self._absent(table)
        with decoding(str(table)):
            return vended(self._session.parse(answer, str(table)), str(table))

    def _absent(self, table: TableName) -> TableMissing:
        """Return the error for a view where a table was expected, or for a missing table."""
        if self._session.offers(f"GET {_VIEW}"):
            answer = self._session.read(self._session.path(_VIEW, table.namespace, view=table.name))
            if answer.outcome is Outcome.DONE:
                return self._is_view(table, _sql(self._session.parse(answer, str(table))))
        return self._missing(table)


_UNCHANGED = 304
_MAY_COMMIT = "Grant calve's principal the right to write the table's metadata (tags, branches, snapshots, properties)."


def _sql(view: Mapping[str, Any]) -> str:
    """Return the SQL of a view, in any dialect; empty if the catalog does not tell it."""
    try:
        return str(view["metadata"]["versions"][-1]["representations"][-1]["sql"])
    except (LookupError, TypeError):
        return ""
