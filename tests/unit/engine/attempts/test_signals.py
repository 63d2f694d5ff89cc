"""What can be a signal."""

from typing import Any

import pytest

from calve.definition.model import NAME_BYTES
from calve.engine.model import PARAMS, TEXT, Announcement
from calve.errors import RequestInvalid


@pytest.mark.parametrize("value", [True, None, 1.5, [1], {}, 2**63, "\0", "\ud800", "é" * TEXT, b"x"])
def test_a_param_is_a_text_or_a_whole_number(value: Any) -> None:
    """Of a size that can be indexed."""
    with pytest.raises(RequestInvalid, match="The param p of a signal cannot be"):
        Announcement("x", {"p": value})


@pytest.mark.parametrize("value", ["", "é" * (TEXT // 2), -(2**63), 2**63 - 1])
def test_what_fits_is_taken(value: str | int) -> None:
    """To the last byte."""
    assert Announcement("x", {"p": value}).params == {"p": value}


@pytest.mark.parametrize("name", ["", " x", "x\n", "x" * (NAME_BYTES + 1), "\ud800"])
def test_a_name_can_be_printed(name: str) -> None:
    """And has no blanks around it."""
    with pytest.raises(RequestInvalid, match="is not a valid name of a signal"):
        Announcement(name)


def test_a_signal_has_not_too_many_params() -> None:
    """Each is indexed."""
    params = {f"p{number}": number for number in range(PARAMS + 1)}
    with pytest.raises(RequestInvalid, match="more than 32 params"):
        Announcement("x", params)


def test_an_announcement_is_known_by_its_request_or_by_what_it_says() -> None:
    """In whatever order it says it."""
    one, two = Announcement("x", {"a": 1, "b": "1"}), Announcement("x", {"b": "1", "a": 1})
    assert one.instance_id == two.instance_id
    assert Announcement("y", one.params).instance_id != one.instance_id
    assert Announcement("x", {"a": 1, "b": 1}).instance_id != one.instance_id
    assert Announcement("x", request_id="r").instance_id == "r"
