"""The tables that steps read and wrote (the port is ``calve.lineage.EdgeState``)."""

from collections.abc import Sequence

from sqlalchemy import select

from calve.lake import TableName
from calve.lineage import Edge
from calve.store.captures.rows import TABLE, columns_of
from calve.store.codec import Codec
from calve.store.database import Transaction, Transactions, chunks
from calve.store.tables import lineage_edge

EDGE = Codec(Edge, lineage_edge, {"table": TABLE})
_columns = lineage_edge.c
_KEY = ("workflow_id", "step_id", "direction", "catalog", "table_name")


class SqlLineage:
    """Stores the newest edge of each step and table."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def keep(self, edges: Sequence[Edge]) -> None:
        """Store edges; each replaces the one of the same step and table, unless that is newer."""

        def work(transaction: Transaction) -> None:
            insert = transaction.insert(lineage_edge)
            values = {column.name: insert.excluded[column.name] for column in _columns if column.name not in _KEY}
            upsert = insert.on_conflict_do_update(
                index_elements=list(_KEY), set_=values, where=_columns.at <= insert.excluded.at
            )
            for edge in edges:
                transaction.connection.execute(upsert, EDGE.to_row(edge))

        if edges:
            self._transactions.write("keep_lineage", work)

    def edges(self, workflows: Sequence[str], tables: Sequence[TableName], limit: int) -> list[Edge]:
        """Return the edges of some workflows, and those of some tables."""
        found: list[Edge] = []
        with self._transactions.read() as connection:
            for some in chunks(workflows):
                query = select(lineage_edge).where(_columns.workflow_id.in_(some)).limit(limit)
                found += [EDGE.from_row(row) for row in connection.execute(query)]
            for named in chunks([columns_of(table) for table in tables]):
                names = sorted({one["table_name"] for one in named})
                query = select(lineage_edge).where(_columns.table_name.in_(names)).limit(limit)
                found += [EDGE.from_row(row) for row in connection.execute(query)]
        wanted, of = set(tables), set(workflows)
        return [edge for edge in found if edge.table in wanted or edge.workflow_id in of]

    def newest(self, limit: int) -> list[Edge]:
        """Return edges, newest first."""
        query = select(lineage_edge).order_by(_columns.at.desc(), *(_columns[name] for name in _KEY)).limit(limit)
        with self._transactions.read() as connection:
            return [EDGE.from_row(row) for row in connection.execute(query)]
