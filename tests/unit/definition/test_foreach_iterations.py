"""The combinations of a foreach."""

import pytest

from calve.definition.composites import ITERATIONS, LoopLists, count_iterations, iteration_values
from calve.errors import ParamError


def test_the_first_list_varies_fastest() -> None:
    """As the digits of a number do that is written from left to right."""
    lists: LoopLists = {"a": [1, 2], "b": ["x", "y", "z"]}
    assert count_iterations(lists) == 6
    assert [tuple(iteration_values(lists, index).values()) for index in range(6)] == [
        (1, "x"),
        (2, "x"),
        (1, "y"),
        (2, "y"),
        (1, "z"),
        (2, "z"),
    ]


def test_an_empty_list_leaves_nothing_to_do() -> None:
    """Whatever the others hold."""
    assert count_iterations({"a": [1, 2], "b": []}) == 0


def test_there_is_a_limit() -> None:
    """Exactly so many are allowed."""
    assert count_iterations({"a": [0] * ITERATIONS}) == ITERATIONS
    with pytest.raises(ParamError, match=r"\[25001\] iterations"):
        count_iterations({"a": [0] * (ITERATIONS + 1)})


def test_what_is_no_list_is_refused() -> None:
    """By name."""
    with pytest.raises(ParamError, match=r"\[b\] is not a list"):
        count_iterations({"a": [1], "b": "text"})


def test_no_list_at_all_is_refused() -> None:
    """There would be one iteration of nothing."""
    with pytest.raises(ParamError, match="at least one list"):
        count_iterations({})
