"""What several pages share: the number of an instance, and the paging of lists that an operation returns as a whole."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Path

from calve.operations import Page as Part, page_of_list

Document = dict[str, Any]
InstanceId = Annotated[int, Path(ge=0, lt=2**63)]
"""A number that the state database can look up; instance 0 does not exist."""


def part_of(rows: Sequence[Document], part: Part, *keys: str) -> Document:
    """Return a page of a list; the cursor is made of the ``keys`` of its last element, which identify it."""
    return page_of_list(rows, part, lambda one: one, lambda one: " ".join(str(one.get(key)) for key in keys))
