"""Which namespace may use which tables, by the patterns of the settings. Pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache

from calve.errors import TableMissing
from calve.lake.table_name import TableName
from calve.namespaces import ROOT, covers

EVERY_NAMESPACE = "*"
"""Means all namespaces, in the settings."""


class Right(StrEnum):
    """What a namespace may do with a table."""

    READ = "read"
    """See what changed in it: plans, lag, checkpoints, triggers, watermarks."""
    CAPTURE = "capture"
    """Capture its changes, and move a checkpoint over them; includes reading."""
    WRITE = "write"
    """Deliver to it, merge into it, or give its name to a captured change."""


Patterns = Mapping[Right, Mapping[str, Sequence[str]]]
"""The patterns of tables, by right and namespace."""


@dataclass(frozen=True, slots=True)
class TableRights:
    """What each namespace may do with which tables."""

    is_closed: bool = False
    """Whether a namespace may use only what it was granted; otherwise every table is open to all."""
    patterns: Patterns = field(default_factory=dict)
    catalogs: tuple[str, ...] = ()
    """All catalogs, the default one first."""

    def allow(self, namespace: str, right: Right, table: TableName) -> bool:
        """Tell whether workflows of a namespace may use a table in a certain way; those without a namespace may."""
        if namespace == ROOT or not self.is_closed:
            return True
        return any(
            _expression(pattern).fullmatch(name)
            for granted, patterns in self._granted(right)
            if granted == EVERY_NAMESPACE or covers(granted, namespace)
            for pattern in patterns
            for name in self._names(table)
        )

    def allow_within(self, namespaces: Sequence[str], right: Right, table: TableName) -> bool:
        """Tell whether workflows of some of the namespaces, or of namespaces below them, may do that with a table."""
        if not self.is_closed:
            return bool(namespaces)
        below = [one for one, _ in self._granted(right) if any(covers(each, one) for each in namespaces)]
        return any(self.allow(one, right, table) for one in (*namespaces, *below))

    def require(self, namespace: str, right: Right, table: TableName) -> None:
        """Refuse a table that a namespace may not use, as if it did not exist.

        Raises:
            TableMissing: the namespace lacks the permission.
        """
        if not self.allow(namespace, right, table):
            raise no_table(table)

    def _granted(self, right: Right) -> list[tuple[str, Sequence[str]]]:
        rights = (Right.READ, Right.CAPTURE) if right is Right.READ else (right,)
        return [each for one in rights for each in self.patterns.get(one, {}).items()]

    def _names(self, table: TableName) -> list[str]:
        """Return a table's names for patterns: the full name and, in the default catalog, the one without the catalog.

        A name whose first part is that of a catalog means a table of that catalog, as everywhere.
        """
        is_default = bool(self.catalogs) and table.catalog == self.catalogs[0]
        is_clear = len(table.identifier) == 2 or table.identifier[0] not in self.catalogs
        return [str(table), *([".".join(table.identifier)] if is_default and is_clear else [])]


CurrentRights = Callable[[], TableRights]
"""Returns the rights that hold now: they change when members of other namespaces get access."""


def all_open() -> TableRights:
    """Return rights under which every namespace may use every table."""
    return TableRights()


def no_table(table: TableName | str) -> TableMissing:
    """Return the error for a table that does not exist, and for one that the caller may not use."""
    # One message for both, so that names cannot be found by trying.
    return TableMissing(
        f"Table {table} does not exist, or the namespace has no permission for it.",
        remedy="Check its name, and the grants in [access.tables] of the settings.",
        table=str(table),
    )


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    """Return what a pattern matches: ``*`` any text without a dot, ``**`` any text."""
    parts = re.split(r"(\*\*|\*)", pattern)
    return re.compile("".join({"*": "[^.]*", "**": ".*"}.get(part, re.escape(part)) for part in parts), re.DOTALL)
