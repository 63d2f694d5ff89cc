"""Pages: a limit, a cursor from the page before, and Maestro's ``first`` and ``last``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query

from calve.errors import RequestInvalid

LIMIT = 200
DEFAULT = 50
LOOKS = 10
"""How many parts of a list one request looks through for what its caller may see."""
_T = TypeVar("_T")
_Number = Annotated[int | None, Query(ge=1, le=LIMIT)]


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list is wanted."""

    limit: int
    cursor: str | None
    is_backward: bool

    def number(self) -> int | None:
        """Return the cursor of a list that goes by numbers.

        Raises:
            RequestInvalid: it is none.
        """
        if self.cursor is None:
            return None
        if not (self.cursor.isascii() and self.cursor.isdecimal() and len(self.cursor) <= 18):
            raise bad_cursor(self.cursor)
        return int(self.cursor)

    def forward(self) -> "Page":
        """Return the page, if it is not to be read from the end.

        Raises:
            RequestInvalid: it is.
        """
        if self.is_backward:
            raise RequestInvalid("This list cannot be read from its end.", remedy="Give limit or first, not last.")
        return self


def bad_cursor(cursor: str) -> RequestInvalid:
    """Say that a cursor is none of ours."""
    return RequestInvalid(
        f"{cursor!r} is no cursor of this list.", remedy="Take end_cursor of the page before, or leave it out."
    )


async def _page(
    limit: _Number = None,
    first: _Number = None,
    last: _Number = None,
    cursor: Annotated[str | None, Query(max_length=256)] = None,
) -> Page:
    given = [number for number in (limit, first, last) if number is not None]
    if len(given) > 1:
        raise RequestInvalid("Give one of limit, first and last.")
    return Page(given[0] if given else DEFAULT, cursor or None, last is not None)


Paged = Annotated[Page, Depends(_page)]
"""The page that a request wants; ``first`` is ``limit``, ``last`` reads from the end."""


def page_json(
    found: Sequence[_T],
    page: Page,
    as_json: Callable[[_T], Any],
    cursor_of: Callable[[_T], str],
    onward: str | None = None,
) -> dict[str, Any]:
    """Return a page of what was found, which was read one further than the page goes.

    Args:
        found: what was found.
        page: which page.
        as_json: how one is shown.
        cursor_of: where the list goes on after one.
        onward: where it goes on, if nobody has looked as far as the page may go.
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
    """Return what a page may show of a list with much that its caller may not see, and where to look on.

    Args:
        page: which page.
        cursor: from where.
        look: gives what may be seen of the next part, and the cursor after it; None if there is no more.
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
    """Return a page of a short list that is there as a whole, the highest number first."""
    cursor = page.number()
    if page.is_backward:
        found = [one for one in numbered if cursor is None or number_of(one) > cursor][-page.limit - 1 :]
    else:
        found = [one for one in numbered if cursor is None or number_of(one) < cursor][: page.limit + 1]
    return page_json(found, page, as_json, lambda one: str(number_of(one)))
