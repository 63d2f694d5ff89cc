"""The lake: its catalogs, files and Spark, all configured from one definition."""

from calve.lake.catalogs import Catalog, LoadedTable
from calve.lake.files import Files, local_path
from calve.lake.lake import Lake
from calve.lake.names import TableName, quoted

__all__ = ["Catalog", "Files", "Lake", "LoadedTable", "TableName", "local_path", "quoted"]
