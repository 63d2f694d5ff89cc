"""Made-up playback events, by Spark SQL alone: random-looking, and the same every time. Pure."""

from dataclasses import dataclass
from datetime import date, timedelta

from calve.demo.payload import DEVICE, PAYLOAD

FIRST_DAY = date(2026, 1, 1)
WINDOW = 14
"""The days of the lookback: no event is later than that allows."""
_RESENT = 0.01
"""Events that are delivered twice on their day."""
_CORRECTED = 10
"""Of a hundred late deliveries, those of an event that was there already, with other content."""
_ROWS_A_TASK = 260_000
"""Rows of a file: two million a day make eight, which two cores and more read without one that is idle."""
_PRIME = 1_000_000_007


@dataclass(frozen=True, slots=True)
class Shape:
    """How many events there are, and how many of them are late."""

    rows: int
    """Events a day that come in time."""
    late: float
    """Late ones, as a part of these."""

    @property
    def late_rows(self) -> int:
        """Late deliveries a day."""
        return round(self.rows * self.late)

    @property
    def deliveries(self) -> int:
        """Everything that arrives on a day."""
        return self.rows + self._resent + self.late_rows

    @property
    def _resent(self) -> int:
        return round(self.rows * _RESENT)

    def arrivals(self, first: int, days: int) -> str:
        """Return the query for what arrives on some days, counted from 0."""
        tasks = days * max(2, -(-self.deliveries // _ROWS_A_TASK))
        ids = f"range({first * self.deliveries}, {(first + days) * self.deliveries}, 1, {tasks})"
        return f"{self._drawn(ids)}\n{_event(accounts=max(1, self.rows // 10))}"

    def _drawn(self, ids: str) -> str:
        """Return which events the deliveries are of, with random numbers: r of the delivery, a and b of the event.

        The number c is of the event and the day of its delivery: a correction says something else, a copy does not.
        """
        in_time, due = self.rows, self.rows + self._resent
        return f"""WITH delivered AS (
  SELECT CAST(id DIV {self.deliveries} AS INT) AS arrival, id % {self.deliveries} AS n,
    pmod(xxhash64(id, 7), {_PRIME}) AS r
  FROM {ids}
), placed AS (
  SELECT arrival, n >= {in_time} AS is_again, n >= {due} AS is_late, r,
    CASE WHEN n < {due} THEN arrival ELSE arrival - least(arrival, 1 + r % {WINDOW - 1}) END AS day,
    CASE
      WHEN n < {in_time} THEN n
      WHEN n < {due} OR r % 100 < {_CORRECTED} THEN r % {in_time}
      ELSE {in_time} + arrival * {self.late_rows} + n - {due}
    END AS i
  FROM delivered
), drawn AS (
  SELECT *, pmod(xxhash64(day, i), {_PRIME}) AS a, pmod(xxhash64(i, day), {_PRIME}) AS b,
    pmod(xxhash64(day, i, arrival), {_PRIME}) AS c, md5(concat(day, '-', i)) AS h
  FROM placed
)"""


def day(number: int) -> date:
    """Return a day by its number."""
    return FIRST_DAY + timedelta(days=number)


def _event(*, accounts: int) -> str:
    """Return the columns of playback_table."""
    epoch = (FIRST_DAY - date(1970, 1, 1)).days
    return f"""SELECT
  shiftleft({epoch}L + day, 34) + ((i * 2654435769) & 17179869183) AS event_id,
  timestamp_millis(({epoch}L + arrival) * 86400000 + least(86399999, CASE
    WHEN is_late THEN r % 86400000
    WHEN is_again THEN a % 86400000 + 600000 + r % 3600000
    ELSE a % 86400000 + c % 240000
  END)) AS arrived_at,
  timestamp_millis(({epoch}L + day) * 86400000 + a % 86400000) AS event_at,
  b % {accounts} AS account_id,
  {DEVICE} AS device,
  {PAYLOAD} AS payload
FROM drawn"""
