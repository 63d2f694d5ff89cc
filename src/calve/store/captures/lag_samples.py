"""The lag of consumers over time (the port is ``calve.capture.inspection.lag_history.LagSamples``)."""

from collections.abc import Sequence

from sqlalchemy import and_, func, or_, select

from calve.capture.inspection import LagSample
from calve.lake import TableName
from calve.store.captures.rows import TABLE, is_about
from calve.store.codec import Codec
from calve.store.database import Transaction, Transactions
from calve.store.tables import lag_sample

SAMPLE = Codec(LagSample, lag_sample, {"table": TABLE})
_columns = lag_sample.c


class SqlLagSamples:
    """Stores samples of lag until their retention has expired."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def add(self, samples: Sequence[LagSample]) -> None:
        """Store samples; skip those that another process took at the same time."""

        def work(transaction: Transaction) -> None:
            insert = transaction.insert(lag_sample).on_conflict_do_nothing()
            transaction.connection.execute(insert, [SAMPLE.to_row(one) for one in samples])

        if samples:
            self._transactions.write("add_lag_samples", work)

    def samples(self, table: TableName, since: int, step: int) -> list[LagSample]:
        """Return the samples of a table from a time on, at multiples of ``step``, and the newest ones.

        Ordered by consumer and time.
        """
        newest = select(func.max(_columns.at)).where(is_about(lag_sample, table)).scalar_subquery()
        is_shown = or_(_columns.at % step == 0, _columns.at == newest)
        query = select(lag_sample).where(is_about(lag_sample, table), _columns.at >= since, is_shown)
        with self._transactions.read() as connection:
            rows = connection.execute(query.order_by(_columns.consumer, _columns.at))
            return [SAMPLE.from_row(row) for row in rows]

    def newest(self, since: int) -> list[LagSample]:
        """Return the newest sample of every consumer and table, if it is not older than a time."""
        place = (_columns.consumer, _columns.catalog, _columns.table_name)
        last = select(*place, func.max(_columns.at).label("at")).where(_columns.at >= since).group_by(*place).subquery()
        is_last = and_(*(_columns[name] == last.c[name] for name in ("consumer", "catalog", "table_name", "at")))
        with self._transactions.read() as connection:
            return [SAMPLE.from_row(row) for row in connection.execute(select(lag_sample).join(last, is_last))]
