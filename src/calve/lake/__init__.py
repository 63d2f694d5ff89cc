"""The lake: its catalogs, files and Spark, all configured from one definition."""

from calve.lake.catalogs import Catalog, LoadedTable
from calve.lake.damage import MAX_METADATA_BYTES, decoding, shown, too_large
from calve.lake.files import Files, local_path
from calve.lake.lake import Lake
from calve.lake.names import TableName, quoted
from calve.lake.rights import CurrentRights, Right, TableRights, all_open, no_table

__all__ = [
    "MAX_METADATA_BYTES",
    "Catalog",
    "CurrentRights",
    "Files",
    "Lake",
    "LoadedTable",
    "Right",
    "TableName",
    "TableRights",
    "all_open",
    "decoding",
    "local_path",
    "no_table",
    "quoted",
    "shown",
    "too_large",
]
