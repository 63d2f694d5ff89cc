"""Which workflows lie below namespaces."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, ColumnElement, false, func, or_, true


def is_below(workflow_id: Column[Any], namespaces: Sequence[str]) -> ColumnElement[bool]:
    """Match the workflows below one of the namespaces; the empty one is above all.

    Not by LIKE, which takes a for A on SQLite.
    """
    if "" in namespaces:
        return true()
    parts = [func.substr(workflow_id, 1, len(name) + 1) == f"{name}." for name in namespaces]
    return or_(*parts) if parts else false()
