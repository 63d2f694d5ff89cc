from .catalogs import Catalog as Catalog, LoadedTable as LoadedTable
from .files import Files as Files, local_path as local_path
from .grants import (
    CurrentRights as CurrentRights,
    Right as Right,
    TableRights as TableRights,
    all_open as all_open,
    no_table as no_table,
)
from .lake import Lake as Lake
from .metadata import (
    MAIN_BRANCH as MAIN_BRANCH,
    Metadata as Metadata,
    TableCommit as TableCommit,
    ancestors as ancestors,
    branch_head as branch_head,
    decode as decode,
    metadata_folder as metadata_folder,
    snapshots_by_id as snapshots_by_id,
)
from .metadata_checks import (
    MAX_METADATA_BYTES as MAX_METADATA_BYTES,
    decoding as decoding,
    shown as shown,
    too_large as too_large,
    whole_number as whole_number,
)
from .spark import (
    SparkProgress as SparkProgress,
    hush as hush,
    make_catalogs as make_catalogs,
    prepare_spark as prepare_spark,
    session as session,
)
from .spark_conf import (
    catalog_conf as catalog_conf,
    context_conf as context_conf,
    launch_conf as launch_conf,
    session_conf as session_conf,
)
from .sql_catalog import SqlCatalog as SqlCatalog
from .table_name import TableName as TableName
