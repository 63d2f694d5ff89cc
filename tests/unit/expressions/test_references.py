"""What a program asks ``params`` for can be told from its text."""

from calve.expressions import ParamCall, calls, parse, reads


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


def test_the_params_that_a_program_reads() -> None:
    """By their names, or by asking ``params`` for them; not its own variables."""
    program = parse("x = a; return x + params.get('b') + params['c'] + params.getFromStep('s', 'd');")
    assert reads(program) == frozenset({"a", "b", "c"})


def test_where_a_name_is_computed_the_params_that_are_read_are_not_known() -> None:
    """Nor where ``params`` itself is used for something else."""
    assert reads(parse("params.get('a' + b);")) is None
    assert reads(parse("x = params; return x.get('a');")) is None
