"""Which steps can run in one run."""

from calve.definition.captures.branches import Branches, Runs


def runs(**edges: dict[str, str]) -> Runs:
    """Return the runs of a graph of which nothing is known but its conditions."""
    steps = {*edges, *(target for targets in edges.values() for target in targets)}
    return Branches({step: edges.get(step, {}) for step in sorted(steps)}).under(lambda _, __: None)


DIAMOND = runs(a={"b": "x", "c": "!x"}, b={"d": "true"}, c={"d": "true"})


def test_what_lies_before_a_step_is_known() -> None:
    """Over other steps too."""
    assert DIAMOND.graph.before == {"a": set(), "b": {"a"}, "c": {"a"}, "d": {"a", "b", "c"}}
    assert DIAMOND.graph.path("a", "d") == ("a", "b", "d")
    assert DIAMOND.graph.path("b", "c") == ()


def test_branches_that_exclude_each_other_have_no_run_in_common() -> None:
    """Both have one with what comes before and after."""
    assert DIAMOND.beside("b") == {"a", "b", "d"}
    assert DIAMOND.paths_to_both("b", "c") is None
    assert DIAMOND.paths_to_both("c", "d") == (("a", "c"), ("a", "c", "d"))


def test_branches_that_do_not_exclude_each_other_do() -> None:
    """And steps that nothing leads to always run."""
    found = runs(a={"b": "x", "c": "y"}, e={})
    assert found.beside("b") == {"a", "b", "c", "e"}
    assert found.paths_to_both("b", "e") == (("a", "b"), ("e",))


def test_two_ways_over_one_step_agree_on_what_follows_it() -> None:
    """Though they part before it."""
    found = runs(a={"b": "true", "c": "true"}, b={"m": "true"}, c={"m": "true"}, m={"d": "x", "e": "!x"})
    assert "e" not in found.beside("d")
    assert found.beside("c") == {"a", "b", "c", "m", "d", "e"}


def test_a_step_that_no_run_comes_to_is_beside_nothing() -> None:
    """Its condition never holds."""
    assert runs(a={"b": "false"}).beside("b") == set()


def test_a_path_around_is_found() -> None:
    """If no step that is to be avoided has to run."""
    assert DIAMOND.path_around("d", {"b"}) == ("a", "c", "d")
    assert DIAMOND.path_around("d", {"b", "c"}) is None
    assert DIAMOND.path_around("d", {"a"}) is None


def test_a_step_that_runs_beside_the_way_is_not_avoided() -> None:
    """It is not on the way, and runs all the same."""
    both = runs(a={"b": "true", "c": "true"}, b={"d": "true"}, c={"d": "true"})
    assert both.path_around("d", {"b"}) is None
    maybe = runs(a={"b": "x", "c": "true"}, b={"d": "true"}, c={"d": "true"})
    assert maybe.path_around("d", {"b"}) == ("a", "c", "d")
    other = runs(a={"c": "true"}, b={"d": "true"}, c={"d": "true"})
    assert other.path_around("d", {"b"}) is None


def test_steps_after_the_goal_do_not_matter() -> None:
    """Only what leads to it does."""
    assert runs(a={"b": "true", "c": "true"}).path_around("b", {"c"}) == ("a", "b")
