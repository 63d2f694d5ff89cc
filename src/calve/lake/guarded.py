"""PyIceberg's catalogs, kept from deleting files that a table does not own."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from calve.errors import LakeError, SettingsInvalid

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog


def open_guarded(name: str, properties: Mapping[str, str]) -> "Catalog":
    """Open a PyIceberg catalog that purges no table with ``gc.enabled=false``.

    PyIceberg itself ignores that property, and would delete the files of a capture's source.
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
    return catalog
