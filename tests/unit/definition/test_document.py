"""A document holds values with their places."""

from calve.definition.document import Mark, Node


def _tree() -> Node:
    leaf = Node(1, Mark(2, 6), "jobs[0]")
    jobs = Node([leaf], Mark(2, 3), "jobs", Mark(1, 1))
    return Node({"jobs": jobs}, Mark(1, 1), "")


def test_a_node_gives_its_value_without_places() -> None:
    """Lists and mappings of nodes become lists and mappings of values."""
    assert _tree().plain() == {"jobs": [1]}


def test_steps_lead_to_the_deepest_node_there_is() -> None:
    """Steps that lead nowhere are left out, so a problem always has a place."""
    tree = _tree()
    assert tree.at(("jobs", 0)).path == "jobs[0]"
    assert tree.at(("jobs", 7)).path == "jobs"
    assert tree.at(("steps",)) is tree
    assert tree.at(("jobs", 0, "id")).value == 1


def test_a_value_that_was_made_stands_where_its_origin_stands() -> None:
    """Values inside of it are placed there too, and nodes keep their place."""
    jobs = _tree().at(("jobs",))
    kept = Node("x", Mark(9, 9), "elsewhere")
    made = jobs.made({"a": [True, kept], "b": (None,)})
    assert made.plain() == {"a": [True, "x"], "b": [None]}
    assert (made.mark, made.path, made.key_mark) == (jobs.mark, "jobs", Mark(1, 1))
    assert made.at(("a", 0)).mark == jobs.mark
    assert made.at(("a", 1)) is kept
