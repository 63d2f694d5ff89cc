"""PyIceberg's catalogs, kept from deleting files that a table does not own, and from believing what strangers wrote."""

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from calve.errors import LakeError, SettingsInvalid
from calve.lake import metadata as raw
from calve.lake.damage import MAX_METADATA_BYTES, decoding
from calve.lake.files import Files

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.io import FileIO


def open_guarded(name: str, properties: Mapping[str, str], max_bytes: int = MAX_METADATA_BYTES) -> "Catalog":
    """Open a PyIceberg catalog that purges no table with ``gc.enabled=false``, and reads only metadata that we checked.

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
        catalog = AVAILABLE_CATALOGS[kind](name, dict(properties))
    except (ValueError, NotInstalledError) as error:
        raise SettingsInvalid(f"The catalog {name} cannot be opened: {error}", catalog=name) from error
    purge = catalog.purge_table

    def purge_owned(identifier: str | tuple[str, ...]) -> None:
        owns = catalog.load_table(identifier).metadata.properties.get("gc.enabled", "true")
        if owns.lower() == "false":
            raise LakeError(
                f"{identifier} does not own its files (gc.enabled=false), so it cannot be purged.",
                remedy="Drop it instead.",
                table=str(identifier),
            )
        purge(identifier)

    catalog.purge_table = purge_owned  # type: ignore[method-assign]
    load = catalog._load_file_io  # noqa: SLF001 - the one place where tables get their files

    def load_checked(properties: Mapping[str, str] | None = None, location: str | None = None) -> "FileIO":
        given = {key: value for key, value in (properties or {}).items() if key != _IMPLEMENTATION}
        return _checked(load(given, location), max_bytes)

    catalog._load_file_io = load_checked  # type: ignore[method-assign] # noqa: SLF001
    return catalog


_IMPLEMENTATION = "py-io-impl"


def _checked(files: "FileIO", max_bytes: int) -> "FileIO":
    """Return PyIceberg's files with the reading of metadata put in front that is ours."""
    from pyiceberg.io import InputFile

    ours = Files(files.properties, max_bytes=max_bytes)
    new_input = files.new_input

    class CheckedInput(InputFile):
        """A metadata file that is believed before PyIceberg sees it."""

        def __len__(self) -> int:
            return len(new_input(self.location))

        def exists(self) -> bool:
            return ours.exists(self.location)

        def open(self, seekable: bool = True) -> Any:  # noqa: ARG002, FBT001, FBT002 - PyIceberg's signature
            content = ours.read(self.location)
            with decoding(self.location):
                raw.decode(content, max_bytes)
            return io.BytesIO(content)

    def checked_input(location: str) -> InputFile:
        is_metadata = ".metadata.json" in location or location.endswith(".json")
        return CheckedInput(location) if is_metadata else new_input(location)

    files.new_input = checked_input  # type: ignore[method-assign]
    return files
