"""When something has been kept for long enough."""

from dataclasses import replace

import pytest

from calve.retention import Ages, OldRecord, RecordKind, goes

NOW = 1_000
AGES = Ages({RecordKind.ALERTS: 100, RecordKind.SIGNALS: 100}, {RecordKind.SIGNALS: 500})
YOUNG, OLD, ANCIENT = OldRecord((1,), 900), OldRecord((1,), 899), OldRecord((1,), 499)


@pytest.mark.parametrize(
    ("old", "expected"),
    [
        (YOUNG, False),
        (OLD, True),
        (replace(OLD, is_needed=True), False),
        (replace(OLD, is_used=False), False),
        (replace(ANCIENT, is_used=False), True),
        (replace(ANCIENT, is_used=False, is_needed=True), False),
    ],
)
def test_what_is_old_and_not_needed_goes(old: OldRecord, *, expected: bool) -> None:
    """What nobody has used yet stays longer."""
    assert goes(RecordKind.SIGNALS, old, AGES, NOW) is expected


def test_a_kind_without_an_age_stays() -> None:
    """However old it is."""
    assert not goes(RecordKind.AUDIT, OldRecord((1,), 0), AGES, NOW)
    assert AGES.before(RecordKind.AUDIT, NOW) is None
    assert AGES.before(RecordKind.ALERTS, NOW) == 900


def test_what_is_unused_may_stay_for_ever() -> None:
    """And where nothing else is said of it, it goes with the others."""
    assert not goes(
        RecordKind.SIGNALS, replace(ANCIENT, is_used=False), replace(AGES, unused={RecordKind.SIGNALS: None}), NOW
    )
    assert goes(RecordKind.SIGNALS, replace(OLD, is_used=False), replace(AGES, unused={}), NOW)
