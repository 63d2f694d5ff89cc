"""What counts as text, and where something else stands."""

import pytest

from calve.errors import RequestInvalid
from calve.texts import check_text, only_text, text_fault

HALF = "\ud83d"


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (HALF, "p holds \\ud83d, half of a surrogate pair."),
        ("a\udfff", "p holds \\udfff, half of a surrogate pair."),
        ("\0", "p holds \\u0000 (NUL)."),
        ({"x": HALF}, "p.x holds \\ud83d, half of a surrogate pair."),
        ({"x": [1, {"y z": ["ok", HALF]}]}, "p.x[1]['y z'][1] holds \\ud83d, half of a surrogate pair."),
        ({"x": {HALF: 1}}, "A key in p.x holds \\ud83d, half of a surrogate pair."),
        (("ok", HALF), "p[1] holds \\ud83d, half of a surrogate pair."),
    ],
)
def test_what_is_no_character_is_found_with_its_place(value: object, fault: str) -> None:
    """In texts and in keys, however deep."""
    assert text_fault(value, "p") == fault
    with pytest.raises(RequestInvalid, match="holds"):
        check_text(value, "p")


@pytest.mark.parametrize("value", ["", "é \t\n\x01\ufffe", "\U0001f600", None, 1, 1.5, True, {"a": [], 1: {}}, {}])
def test_all_else_is_text(value: object) -> None:
    """Whole characters beyond the first plane, control characters, and what holds no text."""
    assert text_fault(value) is None
    check_text(value)


def test_without_a_path_the_place_is_named_in_words() -> None:
    """A text alone, or the outermost keys."""
    assert text_fault(HALF) == "The text holds \\ud83d, half of a surrogate pair."
    assert text_fault({HALF: 1}) == "A key in the document holds \\ud83d, half of a surrogate pair."
    assert text_fault({"x" * 200: HALF}) == f"['{'x' * 100}'] holds \\ud83d, half of a surrogate pair."


def test_a_value_may_be_nested_as_deep_as_it_likes() -> None:
    """JSON that could be read can be checked."""
    value: object = HALF
    for _ in range(5_000):
        value = [value]
    assert text_fault(value) is not None


def test_messages_are_kept_with_a_mark_where_no_character_was() -> None:
    """They are what programs say."""
    assert only_text(f"é {HALF} \0") == "é \ufffd \ufffd"
    assert only_text("plain\n") == "plain\n"


def test_numbers_among_texts_are_skipped() -> None:
    """The places of the others stay what they are."""
    assert text_fault([1, 2.5, True, None, HALF], "p") == "p[4] holds \\ud83d, half of a surrogate pair."
