"""Pages of lists that an operation returns as a whole."""

from collections.abc import Sequence
from typing import Any

from calve.operations import Page as Part, page_of_list

Document = dict[str, Any]


def part_of(rows: Sequence[Document], part: Part, *keys: str) -> Document:
    """Return a part of a list whose elements differ by some keys; the keys of its last element are its cursor."""
    return page_of_list(rows, part, lambda one: one, lambda one: " ".join(str(one.get(key)) for key in keys))
