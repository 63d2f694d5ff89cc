"""PyIceberg's catalogs, guarded: they purge no files of other tables, and read only checked metadata."""

import io
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from calve.errors import LakeError, SettingsInvalid
from calve.lake import metadata as raw
from calve.lake.files import Files
from calve.lake.metadata_checks import MAX_METADATA_BYTES, decoding
from calve.lake.object_stores import open_io, with_own_io

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.io import FileIO, InputFile
    from pyiceberg.table.metadata import TableMetadata


def open_guarded(name: str, properties: Mapping[str, str], max_bytes: int = MAX_METADATA_BYTES) -> "Catalog":
    """Open a PyIceberg catalog that purges no table with ``gc.enabled=false``, and reads only checked metadata.

    PyIceberg itself ignores that property, and would delete the files of a capture's source. It unzips metadata without
    a limit, waits for pipes, and lets a table's properties name the class that reads its files.
    """
    from pyiceberg.catalog import AVAILABLE_CATALOGS, CatalogType, infer_catalog_type
    from pyiceberg.exceptions import NotInstalledError

    try:
        given = properties.get("type")
        kind = CatalogType(given.lower()) if given else infer_catalog_type(name, {**properties})
        if kind is None:
            raise SettingsInvalid(f"The catalog {name} has no type.", catalog=name)
        catalog = AVAILABLE_CATALOGS[kind](name, dict(with_own_io(properties, properties.get("warehouse", ""))))
    except (ValueError, NotInstalledError) as error:
        raise SettingsInvalid(f"The catalog {name} cannot be opened: {error}", catalog=name) from error
    purge = catalog.purge_table

    def purge_owned(identifier: str | tuple[str, ...]) -> None:
        owns = catalog.load_table(identifier).metadata.properties.get("gc.enabled", "true")
        if owns.lower() == "false":
            raise LakeError(
                f"{identifier} does not own its files (gc.enabled=false) and cannot be purged.",
                remedy="Drop it instead.",
                table=str(identifier),
            )
        purge(identifier)

    catalog.purge_table = purge_owned  # type: ignore[method-assign]
    _check_first(max_bytes)
    _ignore_storage_of_tables(catalog)
    return catalog


def _ignore_storage_of_tables(catalog: "Catalog") -> None:
    """Ignore a table's properties when its files are opened: only the catalog's own count.

    PyIceberg gives them precedence. A table of an untrusted writer could name a class (``py-io-impl``), or an endpoint
    (``s3.endpoint``) to which the catalog's credentials would be sent.
    """
    # A REST catalog sends credentials with each response, and PyIceberg opens the files within that call. By thread,
    # because tables are loaded concurrently.
    told = threading.local()

    def load_files(properties: Mapping[str, str] | None = None, location: str | None = None) -> "FileIO":
        del properties  # a table's, and under a REST catalog what it told, which comes first
        return open_io({**catalog.properties, **getattr(told, "properties", {})}, location or "")

    def wrapped(answered: Callable[..., Any]) -> Callable[..., Any]:
        def respond(identifier: tuple[str, ...], response: Any) -> Any:
            credentials = rest._resolve_storage_credentials(response.storage_credentials, response.metadata_location)  # noqa: SLF001 - as PyIceberg does
            told.properties = {**response.config, **credentials}
            try:
                return answered(identifier, response)
            finally:
                del told.properties

        return respond

    catalog._load_file_io = load_files  # type: ignore[method-assign] # noqa: SLF001 - the one place where tables get their files
    rest: Any = catalog
    for name in ("_response_to_table", "_response_to_staged_table"):
        if hasattr(rest, name):
            setattr(rest, name, wrapped(getattr(rest, name)))


_limits: list[int] = []
"""The largest limit of this process's catalogs; empty until PyIceberg is patched."""


def _check_first(max_bytes: int) -> None:
    """Let PyIceberg read only metadata that passed our checks.

    There is one function that all its catalogs read a ``metadata.json`` with, for the whole process.
    """
    from pyiceberg.serializers import Compressor, FromByteStream, FromInputFile

    is_first = not _limits
    # The patch holds for the process, so a catalog with a smaller limit must not lower that of another one.
    _limits.append(max(max_bytes, *_limits, 0))
    del _limits[:-1]
    if not is_first:
        return

    def table_metadata(input_file: "InputFile", encoding: str = "utf-8") -> "TableMetadata":
        location, limit = input_file.location, _limits[0]
        content = Files(max_bytes=limit).read(location, through=input_file)
        with decoding(location):
            raw.decode(content, limit)
            compressor = Compressor.get_compressor(location)
            return FromByteStream.table_metadata(io.BytesIO(content), encoding, compressor)

    FromInputFile.table_metadata = staticmethod(table_metadata)  # type: ignore[method-assign]
