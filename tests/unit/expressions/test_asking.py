"""What a program asks ``params`` for can be told from its text."""

from calve.expressions import ParamCall, calls, parse


def test_calls_of_params_are_found_in_the_order_of_the_text() -> None:
    """Wherever they stand; an argument that is no plain text is not known."""
    program = parse("if (params.getFromStep('a', \"b\") > 0) x = params.get(y + 'c'); return params.nextUniqueId();")
    assert calls(program) == (
        ParamCall("getFromStep", ("a", "b")),
        ParamCall("get", (None,)),
        ParamCall("nextUniqueId", ()),
    )


def test_what_is_no_call_of_params_is_none() -> None:
    """A field, another object, and what is called on the result."""
    assert calls(parse("params.b + other.getFromStep('a', 'b') + params.get(1).size();")) == (
        ParamCall("get", (None,)),
    )


def test_an_index_asks_as_get_does() -> None:
    """Whether its text is known or not."""
    assert calls(parse("params['a'] + params['b' + 'c'];")) == (ParamCall("get", ("a",)), ParamCall("get", (None,)))
