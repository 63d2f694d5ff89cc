"""The request of a merge, and its clauses in SQL."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from calve.errors import RequestInvalid
from calve.merging.bounds import KeyRange, all_hold
from calve.merging.identifiers import parts
from calve.texts import quoted

WhenMatched = Literal["update", "ignore", "delete"]
WhenNotMatched = Literal["insert", "ignore"]
DELETED = "__calve_deleted"  # marks the rows of the source that come from `deletes`, and those that go
HAD = "__calve_had_{}"  # the keys that a row had before it is rewritten


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """A merge: what it does with rows that match by key, and with those that do not."""

    into: tuple[str, ...]
    keys: tuple[str, ...]
    when_matched: WhenMatched | Mapping[str, str]
    when_not_matched: WhenNotMatched
    delete_when: str | None
    has_deletes: bool

    @property
    def target(self) -> str:
        """Return the target's name, quoted."""
        return quoted(*self.into)

    @property
    def inserts(self) -> bool:
        """Tell whether rows without a match are inserted."""
        return self.when_not_matched == "insert"

    @property
    def changes_matched(self) -> bool:
        """Tell whether rows that match are changed in any way."""
        return self.when_matched != "ignore" or self.delete_when is not None or self.has_deletes

    @property
    def replaces(self) -> bool:
        """Tell whether a row of the source replaces the one that it matches, whatever that held."""
        is_plain = self.delete_when is None and not self.has_deletes
        return self.inserts and self.when_matched == "update" and is_plain

    @property
    def rewrites(self) -> bool:
        """Tell whether the new value of a matching row can be computed from it and the row of the source."""
        gives_rows = self.when_matched == "update" or not isinstance(self.when_matched, str)
        return self.inserts and gives_rows and not self.has_deletes

    @property
    def accumulates(self) -> bool:
        """Tell whether a second execution may give another result: a deleted row would be inserted."""
        deletes = self.when_matched == "delete" or self.delete_when is not None
        return not isinstance(self.when_matched, str) or (deletes and self.inserts)

    def on(self, bounds: Iterable[KeyRange] = (), hashed: str | None = None) -> str:
        """Return the condition under which two rows match; the bounds follow from the keys and prune the target.

        With ``hashed``, Spark looks rows up by that key alone, and compares the others with what it finds: with one
        whole number it does so in half the time.
        """
        equal = self._equal("t", "s", hashed)
        bounds = tuple(bounds)
        return f"{equal} AND {all_hold(bounds, 't')}" if bounds else equal

    def statement(self, source: str, columns: Sequence[str], bounds: Iterable[KeyRange], *, inserts: bool) -> str:
        """Return the MERGE of a view."""
        clauses = self._matched(columns) + (self._not_matched(columns) if inserts else [])
        return "\n".join([f"MERGE INTO {self.target} t USING {source} s ON {self.on(bounds)}", *clauses])

    def removal(self, source: str, bounds: Iterable[KeyRange], hashed: str | None = None) -> str:
        """Return the DELETE of every row that matches one of a view."""
        # Names that no column has: within the subquery, a column called t would be taken for the target.
        t, s = "__calve_target", "__calve_source"
        sent = f"SELECT /*+ BROADCAST({s}) */ 1 FROM {source} {s} WHERE {self._equal(t, s, hashed)}"
        return f"DELETE FROM {self.target} {t} WHERE {all_hold(tuple(bounds), t)} AND EXISTS ({sent})"

    def rewritten(self, source: str, columns: Sequence[str], bounds: Iterable[KeyRange], hashed: str | None) -> str:
        """Return the query for the new values of matching rows, with their old keys and whether they are deleted."""
        assigned = {} if isinstance(self.when_matched, str) else {c.lower(): v for c, v in self.when_matched.items()}
        other = "s" if self.when_matched == "update" else "t"
        values = [f"{assigned.get(name.lower(), f'{other}.{quoted(name)}')} AS {quoted(name)}" for name in columns]
        had = [f"s.{quoted(key)} AS {quoted(HAD.format(at))}" for at, key in enumerate(self.keys)]
        goes = f"coalesce({self.delete_when or 'false'}, false) AS {quoted(DELETED)}"
        selected = ", ".join([*values, *had, goes])
        return (
            f"SELECT /*+ BROADCAST(s) */ {selected} FROM {self.target} t JOIN {source} s ON {self.on(bounds, hashed)}"
        )

    def _equal(self, t: str, s: str, hashed: str | None) -> str:
        def compared(key: str) -> str:
            mine, theirs = f"{t}.{quoted(key)}", f"{s}.{quoted(key)}"
            # BETWEEN is not an equality to Spark's planner: it hashes by one number, and compares the other keys
            # afterwards.
            return f"{mine} = {theirs}" if hashed in {None, key} else f"{mine} BETWEEN {theirs} AND {theirs}"

        return " AND ".join(map(compared, self.keys))

    def _matched(self, columns: Sequence[str]) -> list[str]:
        clauses: list[str] = []
        if self.has_deletes:
            clauses.append(f"WHEN MATCHED AND s.{quoted(DELETED)} THEN DELETE")
        if self.delete_when is not None:
            clauses.append(f"WHEN MATCHED AND ({self.delete_when}) THEN DELETE")
        match self.when_matched:
            case "delete":
                clauses.append("WHEN MATCHED THEN DELETE")
            case "update":
                clauses.append(f"WHEN MATCHED THEN UPDATE SET {_assigned({c: f's.{quoted(c)}' for c in columns})}")
            case Mapping() as assigned:
                clauses.append(f"WHEN MATCHED THEN UPDATE SET {_assigned(assigned)}")
        return clauses

    def _not_matched(self, columns: Sequence[str]) -> list[str]:
        names = ", ".join(quoted(column) for column in columns)
        values = ", ".join(f"s.{quoted(column)}" for column in columns)
        condition = f" AND NOT s.{quoted(DELETED)}" if self.has_deletes else ""
        return [f"WHEN NOT MATCHED{condition} THEN INSERT ({names}) VALUES ({values})"]


def _assigned(values: Mapping[str, str]) -> str:
    return ", ".join(f"t.{quoted(column)} = {expression}" for column, expression in values.items())


def request(
    *,
    into: str,
    keys: Sequence[str],
    when_matched: str | Mapping[str, str],
    when_not_matched: str,
    delete_when: str | None,
    has_deletes: bool,
) -> MergeRequest:
    """Check the arguments of a merge, and return the request.

    Raises:
        RequestInvalid: they contradict each other.
    """
    if isinstance(keys, str) or not keys or len({key.lower() for key in keys}) < len(keys):
        raise RequestInvalid(f"merge needs a list of different key columns, not {keys!r}", remedy="Name them in keys.")
    if isinstance(when_matched, str) and when_matched not in {"update", "ignore", "delete"}:
        raise RequestInvalid(
            f"when_matched is {when_matched!r}",
            remedy="Use update, ignore, delete or {column: expression over t and s}.",
        )
    if when_not_matched not in {"insert", "ignore"}:
        raise RequestInvalid(f"when_not_matched is {when_not_matched!r}", remedy="Use insert or ignore.")
    made = MergeRequest(
        into=_parts(into),
        keys=tuple(keys),
        when_matched=cast("WhenMatched | Mapping[str, str]", when_matched or "ignore"),
        when_not_matched=cast("WhenNotMatched", when_not_matched),
        delete_when=delete_when,
        has_deletes=has_deletes,
    )
    if not made.changes_matched and not made.inserts:
        raise RequestInvalid("A merge that ignores both matching and new rows does nothing.")
    return made


def _parts(into: str) -> tuple[str, ...]:
    try:
        found = parts(into)
    except ValueError as error:
        raise RequestInvalid(f"The target of a merge is a table: {error}.") from error
    if len(found) > 1 and found[-1].startswith(("branch_", "tag_")):
        raise RequestInvalid(
            f"{into} names a branch.", remedy="Name the table, and set spark.wap.branch in the session to the branch."
        )
    return found
