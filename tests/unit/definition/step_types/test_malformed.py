"""Whatever a document holds, the checks note problems and do not break."""

from typing import Any

from hypothesis import given, settings, strategies as st
from tests.scope import in_ci
from tests.unit.definition.placing import placed

from calve.definition.document import all_steps, entry
from calve.definition.problems import Problems
from calve.definition.step_types import STEP_TYPES, StepTypes
from calve.definition.templates import JobTemplates, expand, shipped

TEMPLATES = JobTemplates.of(shipped())
TYPES = StepTypes(templates=TEMPLATES)
FIELDS = sorted({item.name for declared in STEP_TYPES.values() for item in (*declared.fields, *declared.params)})
CONFIGS = sorted({declared.config for declared in STEP_TYPES.values() if declared.config})

_scalars = st.none() | st.booleans() | st.integers() | st.sampled_from(["", "x", "${x}", "db.t", "append", *STEP_TYPES])
_keys = st.sampled_from([*FIELDS, *CONFIGS, "type", "value", "expression", "params", "steps", "successors", "id"])
_trees = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3),
    max_leaves=12,
)
_params = st.dictionaries(
    st.sampled_from([*CONFIGS, "sleep_seconds", "loop_params"]),
    _trees | st.fixed_dictionaries({"type": st.sampled_from(["MAP", "STRING_MAP", "STRING", "LONG"]), "value": _trees}),
    max_size=2,
)
_steps = st.fixed_dictionaries(
    {"id": _scalars, "type": st.sampled_from(list(STEP_TYPES)) | _trees, "params": _params | _trees},
    optional={"sub_type": st.sampled_from(["incremental", "write_audit_publish"]) | _trees, "transition": _trees},
)
_wrapped = st.dictionaries(st.sampled_from(["step", "foreach", "template", "other"]), _steps | _trees, max_size=2)


@given(_steps | _trees, st.sampled_from(["step", "subworkflow", "foreach", "while", "template"]))
@settings(max_examples=in_ci(50, otherwise=150), deadline=None)
def test_any_step_can_be_checked(step: Any, kind: str) -> None:
    """Its outputs can be told too."""
    node = placed(step)
    TYPES.check(node, Problems(), kind=kind)
    TYPES.check_references([node, node], Problems())
    TYPES.stubs(node, kind=kind)


@given(st.lists(_wrapped | _trees, max_size=3) | _trees)
@settings(max_examples=in_ci(50, otherwise=150), deadline=None)
def test_any_document_can_be_expanded(steps: Any) -> None:
    """What cannot be expanded stays as it is."""
    document = placed({"workflow": {"id": "w", "steps": steps}})
    found = expand(document, TEMPLATES, Problems())
    for kind, step in all_steps(entry(found, "workflow")):
        TYPES.check(step, Problems(), kind=kind)
