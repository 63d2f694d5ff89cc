"""Which namespace may use which tables, by the patterns of the settings. Pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache

from calve.errors import TableMissing
from calve.lake.names import TableName
from calve.namespaces import ROOT, covers

EVERY_NAMESPACE = "*"
"""Stands in the settings for all namespaces."""


class Right(StrEnum):
    """What calve does with a table for somebody."""

    READ = "read"
    """Tell what has changed in it: plans, lag, checkpoints, triggers, how far it is complete."""
    CAPTURE = "capture"
    """Capture its changes, and move a checkpoint over them; whoever may do that may read it too."""
    WRITE = "write"
    """Deliver to it, merge into it, or give its name to a captured change."""


Patterns = Mapping[Right, Mapping[str, Sequence[str]]]
"""The patterns of tables, by right and namespace."""


@dataclass(frozen=True, slots=True)
class TableRights:
    """What each namespace may do with which tables."""

    is_closed: bool = False
    """Whether a namespace may use only what it was granted; otherwise every table is for all."""
    patterns: Patterns = field(default_factory=dict)
    catalogs: tuple[str, ...] = ()
    """All catalogs, the default one first."""

    def allow(self, namespace: str, right: Right, table: TableName) -> bool:
        """Tell whether workflows of a namespace may do that with a table; those without a namespace may do all."""
        if namespace == ROOT or not self.is_closed:
            return True
        return any(
            _expression(pattern).fullmatch(name)
            for granted, patterns in self._granted(right)
            if granted == EVERY_NAMESPACE or covers(granted, namespace)
            for pattern in patterns
            for name in self._names(table)
        )

    def require(self, namespace: str, right: Right, table: TableName) -> None:
        """Refuse a table that a namespace may not use, as one that does not exist.

        Raises:
            TableMissing: it may not.
        """
        if not self.allow(namespace, right, table):
            raise no_table(table)

    def _granted(self, right: Right) -> list[tuple[str, Sequence[str]]]:
        rights = (Right.READ, Right.CAPTURE) if right is Right.READ else (right,)
        return [each for one in rights for each in self.patterns.get(one, {}).items()]

    def _names(self, table: TableName) -> list[str]:
        """Return what a table is called in patterns: by its full name, and in the default catalog without that.

        A name whose first part is that of a catalog means a table of that catalog, as everywhere.
        """
        is_default = bool(self.catalogs) and table.catalog == self.catalogs[0]
        is_clear = len(table.identifier) == 2 or table.identifier[0] not in self.catalogs
        return [str(table), *([".".join(table.identifier)] if is_default and is_clear else [])]


CurrentRights = Callable[[], TableRights]
"""Gives what holds now: it changes when people of other namespaces are let in."""


def all_open() -> TableRights:
    """Return that every namespace may use every table."""
    return TableRights()


def no_table(table: TableName | str) -> TableMissing:
    """Return the one answer for a table that does not exist and for one that the caller may not use."""
    return TableMissing(
        f"There is no table {table}, or it is not for the namespace that asks.",
        remedy="Check its name, and what [access.tables] of the settings grants.",
        table=str(table),
    )


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    """Return what a pattern matches: ``*`` any text without a dot, ``**`` any text."""
    parts = re.split(r"(\*\*|\*)", pattern)
    return re.compile("".join({"*": "[^.]*", "**": ".*"}.get(part, re.escape(part)) for part in parts), re.DOTALL)
