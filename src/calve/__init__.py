"""Incremental processing for data lakes on Apache Iceberg.

``connect`` opens a project or a server, ``merge`` merges a change into a table, and ``dsl`` describes workflows.

    with calve.connect() as lake:
        with lake.capture("db.events", consumer="daily", operations="all") as change:
            rows = change.to_arrow()  # or change.dataframe(), change.to_polars()

The change is committed when its block ends, and abandoned if the block raises an error. A connection also has ``plan``,
``lag``, ``sql``, ``push``, ``run`` and ``instances``, and in ``operations`` everything that the REST API has.
"""

from lazy_loader import attach_stub

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
