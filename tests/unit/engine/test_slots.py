"""The free hands of a worker."""

import pytest

from calve.engine.slots import Slots


@pytest.mark.parametrize(("asked", "got"), [(2, 2), (9, 3), (0, 0), (-1, 0)])
def test_as_many_are_reserved_as_there_are(asked: int, got: int) -> None:
    """Never more, and none for nothing."""
    slots = Slots(3)
    assert slots.reserve(asked) == got
    assert slots.free == 3 - got


def test_who_gives_the_first_one_back_ends_a_shortage() -> None:
    """Then somebody has to look for work."""
    slots = Slots(2)
    assert not slots.give(0)
    slots.reserve(2)
    assert not slots.give(0)
    assert slots.give(1)
    assert not slots.give(1)
    assert slots.free == 2
