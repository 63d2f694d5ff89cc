"""Pages: a limit, a cursor from the page before, and Maestro's ``first`` and ``last``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from calve.errors import RequestInvalid

LIMIT = 200
DEFAULT = 50
LOOKS = 10
"""How many parts of a list one request searches for elements that its caller may see."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list to return."""

    limit: int = DEFAULT
    cursor: str | None = None
    is_backward: bool = False

    def number(self) -> int | None:
        """Return the cursor of a list that is ordered by numbers.

        Raises:
            RequestInvalid: it is not a number.
        """
        if self.cursor is None:
            return None
        if not (self.cursor.isascii() and self.cursor.isdecimal() and len(self.cursor) <= 18):
            raise bad_cursor(self.cursor)
        return int(self.cursor)

    def forward(self) -> "Page":
        """Return the page if it is read from the beginning of the list.

        Raises:
            RequestInvalid: it is read from the end.
        """
        if self.is_backward:
            raise RequestInvalid("This list cannot be read from its end.", remedy="Give limit or first, not last.")
        return self


FIRST = Page()
"""The first page."""


def bad_cursor(cursor: str) -> RequestInvalid:
    """Return the error for a cursor that does not belong to a list."""
    return RequestInvalid(
        f"{cursor!r} is not a cursor of this list.", remedy="Use end_cursor of the previous page, or omit the cursor."
    )


def page_json(
    found: Sequence[_T],
    page: Page,
    as_json: Callable[[_T], Any],
    cursor_of: Callable[[_T], str],
    onward: str | None = None,
) -> dict[str, Any]:
    """Return a page of elements; one more than fits on the page means that there is a next page.

    Args:
        found: the elements.
        page: which page.
        as_json: returns an element as a document.
        cursor_of: returns the cursor after an element.
        onward: where the list continues, if the search ended before the page was full.
    """
    has_more = len(found) > page.limit or onward is not None
    shown = found[-page.limit :] if page.is_backward else found[: page.limit]
    is_inside = page.cursor is not None
    return {
        "elements": [as_json(one) for one in shown],
        "page_info": {
            "start_cursor": cursor_of(shown[0]) if shown else None,
            "end_cursor": onward or (cursor_of(shown[-1]) if shown else None),
            "has_previous_page": has_more if page.is_backward else is_inside,
            "has_next_page": is_inside if page.is_backward else has_more,
        },
    }


def look_through(
    page: Page, cursor: str | None, look: Callable[[str | None], tuple[Sequence[_T], str | None]]
) -> tuple[list[_T], str | None]:
    """Return the elements of a page that the caller may see, and the cursor to continue from.

    Args:
        page: which page.
        cursor: where to start.
        look: reads the next part of the list; returns what the caller may see of it, and the next cursor or None.
    """
    found: list[_T] = []
    for _ in range(LOOKS):
        some, cursor = look(cursor)
        found += some
        if cursor is None or len(found) > page.limit:
            return found, None
    return found, cursor


def page_of_numbers(
    numbered: Sequence[_T], page: Page, number_of: Callable[[_T], int], as_json: Callable[[_T], Any]
) -> dict[str, Any]:
    """Return a page of a short, complete list, the highest number first."""
    cursor = page.number()
    if page.is_backward:
        found = [one for one in numbered if cursor is None or number_of(one) > cursor][-page.limit - 1 :]
    else:
        found = [one for one in numbered if cursor is None or number_of(one) < cursor][: page.limit + 1]
    return page_json(found, page, as_json, lambda one: str(number_of(one)))


def page_of_list(
    whole: Sequence[_T], page: Page, as_json: Callable[[_T], Any], cursor_of: Callable[[_T], str]
) -> dict[str, Any]:
    """Return a page of a complete list."""
    page, rest = page.forward(), list(whole)
    if page.cursor is not None:
        cursors = [cursor_of(one) for one in rest]
        rest = rest[cursors.index(page.cursor) + 1 :] if page.cursor in cursors else []
    return page_json(rest[: page.limit + 1], page, as_json, cursor_of)
