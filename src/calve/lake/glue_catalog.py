"""AWS Glue: the pointer to a table's metadata is a parameter of the table, and each update names a version."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from calve.errors import CatalogRefused, LakeError, LakeUnavailable, SettingsInvalid, TableMissing
from calve.lake import hive_types, metadata as raw
from calve.lake.catalogs import LOADERS, LoadedTable
from calve.lake.pointer_catalog import PointerCatalog, not_iceberg, taken
from calve.lake.table_name import TableName

_POINTER, _PREVIOUS, _TYPE = "metadata_location", "previous_metadata_location", "table_type"
_INPUT = (
    *("Name", "Description", "Owner", "LastAccessTime", "LastAnalyzedTime", "Retention", "StorageDescriptor"),
    *("PartitionKeys", "ViewOriginalText", "ViewExpandedText", "TableType", "Parameters", "TargetTable"),
)
"""What an update of a table replaces: the rest is Glue's own."""
_REFUSED = ("AccessDenied", "UnrecognizedClient", "InvalidSignature", "ExpiredToken", "InvalidClientToken", "AuthFail")
_PASSING = ("Throttling", "TooManyRequests", "InternalService", "InternalFailure", "OperationTimeout", "ServiceUnavail")


class GlueCatalog(PointerCatalog):
    """A catalog in AWS Glue."""

    @cached_property
    def _glue(self) -> Any:
        """A client, from PyIceberg's properties or, as all of AWS, from the environment."""
        return _client(self.properties)

    def pointer(self, table: TableName) -> str:
        """Return the location of a table's current metadata: one request."""
        found = self._found(table)
        if found is None:
            raise self._missing(table)
        if found.get("TableType") == "VIRTUAL_VIEW":
            raise self._is_view(table, found.get("ViewOriginalText", ""))
        if (location := _location(found)) is None:
            raise not_iceberg(table, "Glue")
        return location

    def exists(self, table: TableName) -> bool:
        """Tell whether an Iceberg table exists."""
        found = self._found(table)
        return found is not None and _location(found) is not None

    def locations(self, tables: Sequence[TableName]) -> dict[TableName, str]:
        """Return the location of each table's current metadata: one request each, a few at a time."""
        with ThreadPoolExecutor(LOADERS) as pool:
            found = zip(tables, pool.map(self._found, tables), strict=True)
            located = {table: _location(each) for table, each in found if each is not None}
        return {table: location for table, location in located.items() if location is not None}

    def register(self, table: TableName, metadata_location: str) -> None:
        """Register a table with existing metadata, and create its database if needed."""
        metadata = self._read(table, metadata_location, self.files).metadata
        with self._errors():
            database = _database(table)
            self._create_database(database)
            try:
                self._glue.create_table(DatabaseName=database, TableInput=_external(table, metadata, metadata_location))
            except self._glue.exceptions.AlreadyExistsException as error:
                raise taken(table) from error

    def drop(self, table: TableName) -> bool:
        """Remove a table from Glue, keeping all its files."""
        if len(table.namespace) != 1:
            return False
        with self._errors():
            try:
                self._glue.delete_table(DatabaseName=_database(table), Name=table.name)
            except self._glue.exceptions.EntityNotFoundException:
                return False
            return True

    def swap(self, base: LoadedTable, edited: raw.Metadata, location: str) -> bool:
        """Update the table, unless another writer has updated it since it was looked at."""
        found = self._found(base.name)
        if found is None or _location(found) != base.metadata_location:
            return False
        given = {key: found[key] for key in _INPUT if key in found}
        given["Parameters"] = found["Parameters"] | _parameters(base, edited, location)
        with self._errors():
            try:
                self._glue.update_table(
                    DatabaseName=_database(base.name),
                    TableInput=given,
                    VersionId=found["VersionId"],  # the compare of this compare-and-set
                    SkipArchive=self.properties.get("glue.skip-archive", "true").lower() == "true",
                )
            except self._glue.exceptions.ConcurrentModificationException:
                # The library repeats what was not answered: it may have collided with its own first attempt.
                return self.has_had(base.name, location)
        return True

    def namespace_location(self, namespace: tuple[str, ...]) -> str | None:
        """Return the location of a database."""
        if len(namespace) != 1:
            return None
        with self._errors():
            try:
                found = self._glue.get_database(Name=namespace[0])["Database"]
            except self._glue.exceptions.EntityNotFoundException:
                return None
            return found.get("LocationUri") or None

    def namespaces(self) -> list[tuple[str, ...]]:
        """Return the databases."""
        with self._errors():
            pages = self._glue.get_paginator("get_databases").paginate()
            return [(database["Name"],) for page in pages for database in page["DatabaseList"]]

    def tables(self, namespace: tuple[str, ...]) -> list[str]:
        """Return the names of a database's Iceberg tables."""
        if len(namespace) != 1:
            return []
        with self._errors():
            try:
                pages = list(self._glue.get_paginator("get_tables").paginate(DatabaseName=namespace[0]))
            except self._glue.exceptions.EntityNotFoundException:
                return []
            found = (table for page in pages for table in page["TableList"])
            return [f"{namespace[0]}.{table['Name']}" for table in found if _location(table) is not None]

    def _found(self, table: TableName) -> dict[str, Any] | None:
        """Return a table, a view, or None."""
        if len(table.namespace) != 1:
            return None
        with self._errors():
            try:
                found: dict[str, Any] = self._glue.get_table(DatabaseName=table.namespace[0], Name=table.name)["Table"]
            except self._glue.exceptions.EntityNotFoundException:
                return None
            return found

    def _create_database(self, name: str) -> None:
        try:
            self._glue.get_database(Name=name)
        except self._glue.exceptions.EntityNotFoundException:
            warehouse = self.properties.get("warehouse", "")
            located = {"LocationUri": f"{warehouse.rstrip('/')}/{name}"} if "/" in warehouse else {}
            try:
                self._glue.create_database(DatabaseInput={"Name": name, **located})
            except self._glue.exceptions.AlreadyExistsException:
                return  # another process created it meanwhile

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn errors of AWS and its library into ours."""
        try:
            yield
        except ImportError as error:
            raise SettingsInvalid(
                f"The catalog {self.name} is a Glue catalog, and the package for it is not installed: {error}",
                remedy="pip install 'calve[glue]'",
                catalog=self.name,
            ) from error
        except LakeError:
            raise
        except Exception as error:
            if (found := _explained(self.name, error)) is None:
                raise
            raise found from error


def _client(properties: Mapping[str, str]) -> Any:
    """Return a client that gives up after some minutes; the library alone would go on for a quarter of an hour."""
    import boto3
    from botocore.config import Config

    def given(key: str) -> str | None:
        return properties.get(f"glue.{key}") or properties.get(f"client.{key}")

    session = boto3.Session(
        profile_name=given("profile-name"),
        region_name=given("region"),
        aws_access_key_id=given("access-key-id"),
        aws_secret_access_key=given("secret-access-key"),
        aws_session_token=given("session-token"),
    )
    retries = {"max_attempts": int(properties.get("glue.max-retries", "3")), "mode": "standard"}
    limits = Config(connect_timeout=10, read_timeout=60, retries=retries)
    client = session.client("glue", endpoint_url=properties.get("glue.endpoint"), config=limits)
    if catalog := properties.get("glue.id"):

        def add_catalog(params: dict[str, Any], **_: Any) -> None:
            params.setdefault("CatalogId", catalog)

        client.meta.events.register("provide-client-params.glue", add_catalog)
    return client


def _explained(catalog: str, error: Exception) -> LakeError | SettingsInvalid | None:
    """Return the error for one of botocore's; None if it is none."""
    from botocore import exceptions as aws

    where, glue = {"catalog": catalog}, f"The catalog {catalog} in AWS Glue"
    match error:
        case aws.NoRegionError():
            remedy = f'Set "glue.region" in [catalogs.{catalog}], or AWS_REGION.'
            return SettingsInvalid(f"{glue} has no region.", remedy=remedy, **where)
        case (
            aws.NoCredentialsError()
            | aws.PartialCredentialsError()
            | aws.CredentialRetrievalError()
            | aws.ProfileNotFound()
            | aws.SSOError()
        ):
            remedy = (
                f'Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "glue.profile-name" in [catalogs.{catalog}], or '
                "give the machine a role."
            )
            return SettingsInvalid(f"{glue} has no credentials: {error}", remedy=remedy, **where)
        case aws.ClientError():
            return _answered(glue, error, where)
        case aws.ParamValidationError():
            return LakeError(f"{glue} refuses the request: {error}", **where)
        case aws.HTTPClientError() | aws.BotoCoreError():
            remedy = f'Check the network, and "glue.endpoint" and "glue.region" in [catalogs.{catalog}].'
            return LakeUnavailable(f"{glue} cannot be reached: {error}", remedy=remedy, **where)
        case ValueError():  # of an endpoint or a number
            return SettingsInvalid(f"{glue} cannot be used: {error}", **where)
        case _:
            return None


def _answered(glue: str, error: Any, where: Mapping[str, str]) -> LakeError:
    """Return the error for one that AWS reported."""
    code = str(error.response.get("Error", {}).get("Code", ""))
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code.startswith(_REFUSED) or status in {401, 403}:
        remedy = "Check the credentials, and that their policy allows these actions of Glue (and of Lake Formation)."
        return CatalogRefused(f"{glue} refuses access: {error}", remedy=remedy, **where)
    if code.startswith(_PASSING) or status >= 500:
        return LakeUnavailable(f"{glue} cannot answer now: {error}", remedy="Try again later.", **where)
    return LakeError(f"{glue} reports: {error}", **where)


def _database(table: TableName) -> str:
    if len(table.namespace) != 1:
        raise TableMissing(
            f"There can be no table {table}: the databases of AWS Glue have no levels.",
            remedy="Write database.table or catalog.database.table.",
            table=str(table),
        )
    return table.namespace[0]


def _location(found: Mapping[str, Any]) -> str | None:
    """Return the pointer of an Iceberg table; None of anything else."""
    parameters = found.get("Parameters", {})
    return parameters.get(_POINTER) if parameters.get(_TYPE, "").lower() == "iceberg" else None


def _external(table: TableName, metadata: raw.Metadata, location: str) -> dict[str, Any]:
    """Return a table for Glue."""
    columns = [
        {
            "Name": field["name"],
            "Type": kind,
            "Parameters": {
                "iceberg.field.id": str(field["id"]),
                "iceberg.field.optional": str(not field.get("required", False)).lower(),
                "iceberg.field.current": "true",
            },
        }
        for field, kind in hive_types.columns(metadata, "timestamp")
    ]
    return {
        "Name": table.name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {_TYPE: "ICEBERG", _POINTER: location},
        "StorageDescriptor": {"Columns": columns, "Location": metadata["location"]},
    }


def _parameters(base: LoadedTable, edited: raw.Metadata, location: str) -> dict[str, str]:
    before, after = base.metadata.get("properties", {}), edited.get("properties", {})
    changed = {key: value for key, value in after.items() if before.get(key) != value}
    return {**changed, _POINTER: location, _PREVIOUS: base.metadata_location}
