"""What became of a commit to a REST catalog, by the answer that it gave. Pure."""

import re
from enum import Enum, auto


class Outcome(Enum):
    """What a caller knows about a request, and so what it does next."""

    DONE = auto()
    CONFLICT = auto()
    """Not done: another writer was faster, so load the table again and decide again."""
    BUSY = auto()
    """Not done: the catalog asks to come back later."""
    UNKNOWN = auto()
    """Possibly done, or still to be done: look, and send exactly the same again if it did not happen."""
    MISSING = auto()
    """Not done: the table, view or namespace does not exist."""
    REFUSED = auto()
    """Not done, and the same request will never be."""


_CONFLICTS = re.compile(
    r"requirement failed"
    r"|validation failed, please retry"
    r"|cannot add snapshot with sequence number \S+ older than last sequence number"
    r"|first-row-id is behind table next-row-id"
    # the rest is ours: a repeated request whose first copy was carried out, or a snapshot that expired since
    r"|snapshot already exists for id"
    r"|cannot set \S+ to unknown snapshot",
    re.IGNORECASE,
)
"""Messages of Iceberg's own checks of a commit, which its servers answer with 400 although a retry helps."""


def outcome_of(status: int | None, kind: str = "", message: str = "") -> Outcome:
    """Return what became of a request that changes something.

    Args:
        status: of the response; None if there was none, though the request may have reached the server.
        kind: the ``type`` of the error in the response.
        message: its text.
    """
    match status:
        case None | 408:
            return Outcome.UNKNOWN
        case 409 | 412:
            return Outcome.CONFLICT
        case 404:
            return Outcome.MISSING
        case 429:
            return Outcome.BUSY
        # A load balancer also answers 503 when it lost its connection to the catalog, after passing the request on.
        case 503:
            return Outcome.BUSY if kind == "SlowDownException" else Outcome.UNKNOWN
        case 501 | 505:
            return Outcome.REFUSED
        case _ if status < 400:
            return Outcome.DONE
        case _ if status >= 500:
            return Outcome.UNKNOWN
        case _:
            is_conflict = kind == "CommitFailedException" or _CONFLICTS.search(message)
            return Outcome.CONFLICT if is_conflict else Outcome.REFUSED
