"""Captures and checkpoints as rows, and back."""

from typing import Any

from sqlalchemy import ColumnElement, Row, Table, and_, true

from calve.capture import StoredCapture, StoredCheckpoint
from calve.errors import RequestInvalid
from calve.lake import TableName
from calve.store.codec import Codec, Form, Spread
from calve.store.tables import capture, checkpoint


def dotted(table: TableName) -> str:
    """Return the name of a table inside its catalog, as the database stores it.

    Raises:
        RequestInvalid: a part of the name contains a dot.
    """
    if any("." in part for part in table.identifier):
        raise RequestInvalid(f"{table}: a part of the name contains a dot.", table=str(table))
    return ".".join(table.identifier)


def _table(catalog: str, dotted_name: str) -> TableName:
    *namespace, name = dotted_name.split(".")
    return TableName(catalog, tuple(namespace), name)


TABLE = Spread(_table, {"catalog": ("catalog", None), "": ("table_name", dotted)})
"""A table, in two columns."""
CHECKPOINT = Codec(StoredCheckpoint, checkpoint, {"table": TABLE})
CAPTURE = Codec(StoredCapture, capture, {"capture_id": Form("id")})


def table_of(row: Row[Any]) -> TableName:
    """Return the table of a row."""
    return _table(row.catalog, row.table_name)


def columns_of(table: TableName) -> dict[str, str]:
    """Return the columns that name a table."""
    return {"catalog": table.catalog, "table_name": dotted(table)}


def is_about(columns: Table, table: TableName) -> ColumnElement[bool]:
    """Match the rows about a table."""
    return and_(*(columns.c[name] == value for name, value in columns_of(table).items()))


def is_of_consumer(columns: Table, consumer: str | None) -> ColumnElement[bool]:
    """Match the rows of one consumer, or of all."""
    return true() if consumer is None else columns.c.consumer == consumer
