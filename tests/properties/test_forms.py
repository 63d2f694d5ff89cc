"""Whatever a document holds, it becomes a definition or a list of problems, and nothing falls over."""

from typing import Any

from hypothesis import given, strategies as st
from tests.unit.definition.forms.writing import FewTypes
from tests.unit.definition.placing import placed

from calve.definition import Node, Problems
from calve.definition.forms import canonical
from calve.definition.forms.keys import KEYS, WRAPPERS
from calve.definition.forms.yaml_form import WORKFLOW_KEYS as WORKFLOW
from calve.definition.validation import validated

_WORDS = [
    *"abc",
    "x > 1",
    "a -> b",
    "IF x THEN a",
    "OTHERWISE b",
    "sequential",
    "ICDC",
    "NoOp",
    "etl",
    "@daily",
    "foreach",
]
_PARTS = ["type", "value", "expression", "param", "operator", "definitions", "match_params", "successors", "from", "to"]
_MORE = [
    "sourceTable",
    "icdc",
    "cron",
    "signal",
    "incremental",
    "timezone",
    "step",
    "IF x",
    "OTHERWISE",
    "!e",
    "m<pmap>",
]

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(_WORDS)
keys = st.text(max_size=5) | st.sampled_from(
    [
        *WORKFLOW,
        *WRAPPERS,
        *{key for known in KEYS.values() for key in known},
        *_PARTS,
        *_MORE,
        "workflow",
        "properties",
    ]
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4), max_leaves=20
)
kinds = st.sampled_from([*WRAPPERS, "step"])
jobs = st.lists(
    st.dictionaries(kinds, st.dictionaries(keys, values, max_size=6), min_size=1, max_size=1)
    | st.dictionaries(keys, values, max_size=5)
    | values,
    max_size=4,
)
bodies = st.builds(
    lambda body, name, items: {**body, name: items},
    st.dictionaries(keys, values, max_size=6),
    st.sampled_from(["jobs", "steps"]),
    jobs,
)
documents = st.builds(
    lambda beside, body: {**beside, "Workflow": body}, st.dictionaries(keys, values, max_size=3), bodies
)


@given(values | bodies | documents)
def test_no_document_makes_it_fall_over(document: Any) -> None:
    """Neither reading its form nor checking what comes out raises anything."""
    problems = Problems()
    found = canonical(placed(document), problems, FewTypes())
    if found is None:
        assert problems.errors
    else:
        validated(found, problems)


@given(bodies | documents)
def test_every_place_is_one_of_the_documents(document: Any) -> None:
    """Nothing in the definition stands where the user wrote nothing."""
    node = placed(document)
    found = canonical(node, Problems(), FewTypes())
    assert found is None or _paths(found) <= _paths(node)


def _paths(node: Node) -> set[str]:
    match node.value:
        case list() as items:
            inner = items
        case dict() as entries:
            inner = list(entries.values())
        case _:
            inner = []
    return {node.path}.union(*map(_paths, inner))
