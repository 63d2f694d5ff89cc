"""What the tables of the example hold, and what was written to them."""

from dataclasses import dataclass

from calve.lake import Lake

RAW = "playback.playback_table"
TABLES = {"daily": "playback_daily_table", "aggregates": "playback_daily_agg_table"}
"""The table that each stage writes; each pipeline has its own, in a namespace of its name."""


@dataclass(frozen=True, slots=True)
class Written:
    """What some snapshots of a table added."""

    rows: int
    bytes: int


class Ledger:
    """Tells what was written to a table since it last looked: from the summaries of its snapshots."""

    def __init__(self, lake: Lake) -> None:
        self._catalog = lake.catalog(lake.default_catalog).pyiceberg()
        self._seen: dict[str, set[int]] = {}

    def written(self, table: str) -> Written:
        """Return what was added since the last call."""
        seen = self._seen.setdefault(table, set())
        fresh = [found for found in self._catalog.load_table(table).snapshots() if found.snapshot_id not in seen]
        seen.update(found.snapshot_id for found in fresh)
        summaries = [found.summary.additional_properties for found in fresh if found.summary is not None]
        return Written(
            sum(int(summary.get("added-records", 0)) for summary in summaries),
            sum(int(summary.get("added-files-size", 0)) for summary in summaries),
        )


def compared() -> str:
    """Return the query for a fingerprint of each table that does not depend on the order of its rows."""
    return "\nUNION ALL\n".join(
        f"SELECT '{lane}' AS lane, '{stage}' AS stage, count(*) AS records, "
        f"CAST(sum(CAST(xxhash64(*) AS DECIMAL(38, 0))) AS STRING) AS total, bit_xor(xxhash64(*)) AS folded "
        f"FROM {lane}.{table}"
        for stage, table in TABLES.items()
        for lane in ("lookback", "incremental")
    )
