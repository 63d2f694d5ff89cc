"""What became of a commit, by the answer of the catalog."""

import pytest

from calve.lake.commit_outcomes import Outcome, outcome_of

NUMBERS = "Cannot add snapshot with sequence number 7 older than last sequence number 7"
ROW_IDS = "Cannot add a snapshot, first-row-id is behind table next-row-id: 3 < 6"


@pytest.mark.parametrize(
    ("status", "kind", "message", "outcome"),
    [
        (200, "", "", Outcome.DONE),
        (204, "", "", Outcome.DONE),
        (304, "", "", Outcome.DONE),
        (409, "CommitFailedException", "Requirement failed: branch main has changed", Outcome.CONFLICT),
        (409, "AlreadyExistsException", "Table already exists", Outcome.CONFLICT),
        (412, "", "", Outcome.CONFLICT),
        (400, "ValidationException", NUMBERS, Outcome.CONFLICT),
        (400, "ValidationException", ROW_IDS, Outcome.CONFLICT),
        (
            400,
            "IllegalArgumentException",
            "Requirement failed: branch or tag x is missing, expected 1",
            Outcome.CONFLICT,
        ),
        (400, "ValidationException", "Cannot set main to unknown snapshot: 5", Outcome.CONFLICT),
        (400, "ValidationException", "Snapshot already exists for id: 5", Outcome.CONFLICT),
        (422, "CommitFailedException", "", Outcome.CONFLICT),
        (400, "BadRequestException", "Malformed request", Outcome.REFUSED),
        (401, "NotAuthorizedException", "", Outcome.REFUSED),
        (403, "ForbiddenException", "", Outcome.REFUSED),
        (404, "NoSuchTableException", "", Outcome.MISSING),
        (501, "", "", Outcome.REFUSED),
        (429, "", "", Outcome.BUSY),
        (503, "SlowDownException", "", Outcome.BUSY),
        (503, "", "", Outcome.UNKNOWN),
        (408, "", "", Outcome.UNKNOWN),
        (500, "CommitStateUnknownException", "", Outcome.UNKNOWN),
        (502, "", "", Outcome.UNKNOWN),
        (504, "", "", Outcome.UNKNOWN),
        (599, "", "", Outcome.UNKNOWN),
        (None, "", "Connection aborted", Outcome.UNKNOWN),
    ],
)
def test_answers_are_sorted(status: int | None, kind: str, message: str, outcome: Outcome) -> None:
    """Conflicts are decided again, lost answers looked after, and refusals given up."""
    assert outcome_of(status, kind, message) is outcome
