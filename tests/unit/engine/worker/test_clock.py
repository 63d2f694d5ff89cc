"""A clock that follows the database's."""

from calve.engine import AnchoredClock


def test_time_continues_from_what_the_database_said() -> None:
    """By this machine's clock that never jumps."""
    here = [100.0]
    clock = AnchoredClock(lambda: 5_000, lambda: here[0])
    assert clock() == 5_000
    here[0] += 1.5
    assert clock() == 6_500


def test_a_clock_that_others_follow_too_is_taken_over() -> None:
    """One of our own is not: it jumps as this machine does."""
    shared, own = (AnchoredClock(lambda: 5_000, lambda: 100.0, is_shared=is_shared) for is_shared in (True, False))
    for clock in (shared, own):
        clock.anchor(9_000)
    assert (shared(), own()) == (9_000, 5_000)
