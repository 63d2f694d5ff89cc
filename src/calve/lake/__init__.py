"""The lake: its catalogs, files and Spark, all configured from one definition."""

from calve.lake.catalogs import Catalog, LoadedTable
from calve.lake.damage import MAX_METADATA_BYTES, decoding, shown, too_large
from calve.lake.files import Files, local_path
from calve.lake.lake import Lake
from calve.lake.names import TableName, quoted

__all__ = [
    "MAX_METADATA_BYTES",
    "Catalog",
    "Files",
    "Lake",
    "LoadedTable",
    "TableName",
    "decoding",
    "local_path",
    "quoted",
    "shown",
    "too_large",
]
