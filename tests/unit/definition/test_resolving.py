"""What the params of a definition will be, as far as that can be told before a run."""

import json

from calve.definition import installed, load
from calve.definition.resolving import PATIENCE, resolve

LONG = "x = 0; for (i = 0; i < 20000; i += 1) { x = x + 1; } return x;"


def test_all_expressions_of_a_definition_together_have_so_much_time() -> None:
    """One that would take longer than what the others have left of it fails; a short one does not."""
    params = {
        "a": {"type": "LONG", "expression": LONG},
        "b": {"type": "LONG", "expression": "return a + 1;"},
        "c": {"type": "LONG", "expression": "return 2;"},
    }
    step = {"step": {"id": "job", "type": "NoOp", "params": {"d": {"type": "LONG", "expression": LONG}}}}
    written = json.dumps({"workflow": {"id": "w", "params": params, "steps": [step]}})
    definition = load(written, name="test", vocabulary=installed()).required()
    in_time = resolve(definition, installed(), run={}, clock=lambda: 0)
    assert not in_time.failures
    assert in_time.workflow["b"].result == 20_001
    times = iter([0])
    late = resolve(definition, installed(), run={}, clock=lambda: next(times, 2 * PATIENCE))
    assert [(failure.step_id, failure.param) for failure in late.failures] == [(None, "a"), ("job", "d")]
    assert "c" in late.workflow
    assert "b" not in late.workflow
