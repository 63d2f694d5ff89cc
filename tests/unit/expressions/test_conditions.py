"""Which conditions can hold at the same time, told from their texts."""

import pytest

from calve.expressions import Atom, Constant, ParamRead, atoms_of, satisfiable
from calve.expressions.conditions import ATOMS, Other
from calve.expressions.tree import Operator


def sets(*texts: str) -> set[str]:
    """Return which of some conditions hold together: ``ab`` for the first two, an empty text for none."""
    named = {chr(ord("a") + number): text for number, text in enumerate(texts)}
    return {"".join(sorted(found)) for found in satisfiable(named)}


def test_conditions_that_say_nothing_of_each_other_are_independent() -> None:
    """Both, one or none of them may hold."""
    assert sets("x", "y") == {"", "a", "b", "ab"}


@pytest.mark.parametrize("text", ["true", "", " ; ", "!false", "true || x", "true == true"])
def test_what_always_holds_is_in_every_set(text: str) -> None:
    """An edge without condition, say."""
    assert all("a" in found for found in sets(text, "x"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x", "!x"),
        ("x", "!!!(x)"),
        ("x", "x == false"),
        ("x == true", "true != x"),
        ("n > 5", "n <= 5"),
        ("n < 5", "n >= 5"),
        ("(n) < 5", "(n) >= (5)"),
        ("n > 5", "!(5 < n)"),
        ("n == 5", "n != 5"),
        ("x && y", "!(x && y)"),
        ("x || y", "!((x) || (y))"),
        ("params.getFromStep('a', 'b') == 'c'", "!((params.getFromStep( 'a','b' ) == \"c\"))"),
        ("f[0] == 1", "f[0] != 1"),
        ("a + 1 > b.size()", "a + 1 <= b.size()"),
        ("params.get('n') > 1", "params['n'] <= 1"),
        ("params.n == 1", "n != 1"),
    ],
)
def test_of_a_condition_and_its_opposite_exactly_one_holds(one: str, other: str) -> None:
    """However it is written."""
    assert sets(one, other) == {"a", "b"}


def test_nothing_equals_two_constants() -> None:
    """One or the other, or neither."""
    assert sets("kind == 'full'", "'new' == kind") == {"", "a", "b"}
    assert sets("kind == 'full'", "other == 'new'") == {"", "a", "b", "ab"}
    assert sets("n == 1", "n == 1") == {"", "ab"}


def test_what_differs_in_a_detail_is_something_else() -> None:
    """Another element, another function, another program."""
    assert sets("f[0] == 1", "f[1] != 1") == {"", "a", "b", "ab"}
    assert sets("params.getFromSignal('s', 'p')", "params.getFromStep('s', 'p')") == {"", "a", "b", "ab"}
    assert sets("-n > 1", "n <= 1") == {"", "a", "b", "ab"}
    assert sets("a = 1; return a == 1;", "b") == {"", "a", "b", "ab"}
    assert sets("params.getFromStep(n, 'p')", "params.getFromStep('n', 'p')") == {"", "a", "b", "ab"}
    assert sets("x ? y : z", "x") == {"", "a", "b", "ab"}


def test_what_is_known_is_not_tried() -> None:
    """An atom that holds, and one that does not."""
    known = {Atom(ParamRead("changed")): True, Atom(ParamRead("n"), Operator.GREATER, Constant(1, "int")): False}
    assert satisfiable({"a": "changed", "b": "n > 1", "c": "x"}, known.get) == {frozenset("a"), frozenset("ac")}


def test_too_many_conditions_count_as_independent_two_by_two() -> None:
    """Nothing is asked of more than two at once; what always or never holds is told all the same."""
    names = [f"x{number}" for number in range(ATOMS + 1)]
    found = satisfiable({**{name: name for name in names}, "always": "true", "never": "false"})
    assert frozenset({"always"}) in found
    assert frozenset({"always", "x0", "x12"}) in found
    assert all("always" in one and "never" not in one and len(one) <= 3 for one in found)


def test_atoms_are_reported() -> None:
    """What a condition asks, by step and name."""
    assert atoms_of("changed && params.getFromStep('k', 'records') > 0") == {
        Atom(ParamRead("changed")),
        Atom(ParamRead("records", "k"), Operator.GREATER, Constant(0, "int")),
    }
    assert atoms_of("return n == 'ü';") == {Atom(ParamRead("n"), Operator.EQUAL, Constant("ü", "str"))}
    assert atoms_of("true") == set()
    (atom,) = atoms_of("params.other('x')")
    assert isinstance(atom.left, Other)
