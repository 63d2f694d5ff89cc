"""What the params of a definition will be, as far as that can be told before a run."""

import json

import pytest

from calve.definition import installed, load
from calve.definition.dry_run.resolution import PATIENCE, resolve

LONG = "x = 0; for (i = 0; i < 20000; i += 1) { x = x + 1; } return x;"


def test_all_expressions_of_a_definition_share_a_time_limit() -> None:
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


CAPTURE = """
Workflow:
  id: w
  day<long>: 3
  {workflow}
  jobs:
    - job: {{id: c, type: IpCapture, ip_capture: {{source_tables: {{ev: db.events}}}}{capture}}}
    - job: {{id: other, type: NoOp}}
    {job}
"""
SHELL = "- job: {{id: s, type: Shell, shell: {{command: '{}'}}{}}}"


def _told(*, workflow: str = "", capture: str = "", job: str = "") -> list[tuple[str, str, str]]:
    """Return what is said of a workflow with a capture: the code, the message and the hint of each problem."""
    written = CAPTURE.format(workflow=workflow, capture=capture, job=job)
    loaded = load(written, name="test.yaml", vocabulary=installed())
    return [
        (each.code, each.message, each.hint)
        for each in loaded.problems
        if each.code in {"unknown_output", "param_not_given"}
    ]


OPEN = "- job: {id: o, type: ICDC, icdc: {source_table: '${day}', target_table: a.b}, transition: [IF x == 1 THEN p]}\n"
OPEN += "    - job: {id: p, type: NoOp}"
NOOP = "{job: {id: x, type: NoOp}}"
RELATION = "did you mean relation?"
NO_RELATIO = "step c has no output relatio"


@pytest.mark.parametrize(
    ("parts", "message", "hint"),
    [
        (
            {"job": SHELL.format("echo ${c.relatio}", "")},
            f"shell.command refers to c.relatio: {NO_RELATIO} (line 1, column 6)",
            RELATION,
        ),
        (
            {"job": SHELL.format("echo ${c__relatio}", "")},
            f"shell.command refers to c__relatio: {NO_RELATIO} (line 1, column 6)",
            RELATION,
        ),
        (
            {"job": SHELL.format("echo ${c.ev.relatio}", "")},
            "shell.command refers to c.ev.relatio: step c has no output ev.relatio (line 1, column 6)",
            "did you mean ev.relation?",
        ),
        ({"job": SHELL.format("echo", ", x: '${c.relatio}'")}, f"x refers to c.relatio: {NO_RELATIO}", RELATION),
        ({"job": SHELL.format("echo", ", '!x': c__relatio")}, f"x refers to c__relatio: {NO_RELATIO}", RELATION),
        (
            {"job": SHELL.format("echo", """, "!x": "params.getFromStep('c', 'relatio')" """)},
            f"params.getFromStep: {NO_RELATIO}",
            RELATION,
        ),
        (
            {"capture": ", transition: ['IF c__chnged THEN other']"},
            "the condition of other refers to c__chnged: step c has no output chnged",
            "did you mean changed?",
        ),
        (
            {"capture": ", transition: ['IF c.changed THEN other']"},
            "the condition of other refers to c: c is a step, not a param",
            "write c__NAME for an output of it",
        ),
        (
            {"job": "- job: {id: s, type: Spark, spark: {script: SELECT 1}, targets: ['${c.source_tble}']}"},
            "targets refers to c.source_tble: step c has no output source_tble",
            "did you mean source_table?",
        ),
        (
            {"job": "- subworkflow: {id: s, subworkflow_id: x, t: '${c.relatio}'}"},
            f"t refers to c.relatio: {NO_RELATIO}",
            RELATION,
        ),
        (
            {"job": f"- foreach: {{id: s, loop_params: {{'!i<array<long>>': c__record}}, jobs: [{NOOP}]}}"},
            "loop_params refers to c__record: step c has no output record",
            "did you mean records?",
        ),
        (
            {
                "job": "- while: {id: s, condition: 'i < c__record && loop_index < 9', loop_params: {i: {value: 1}}, "
                "jobs: [{job: {id: x, type: NoOp}}]}"
            },
            "condition refers to c__record: step c has no output record",
            "did you mean records?",
        ),
        (
            {
                "job": "- foreach: {id: s, loop_params: {i: [1]}, jobs: [{job: {id: x, type: NoOp}}]}\n"
                """    - job: {id: t, type: NoOp, "!y<array<string>>": "params.getFromForeach('s', 'x', 'nope')"}"""
            },
            "params.getFromForeach: step x has no output nope",
            "one of step_attempt_id, step_id, step_instance_uuid, workflow_instance_id",
        ),
        (
            {"workflow": "odd: '${c.relation}'"},
            "odd refers to c.relation: params of the workflow are evaluated before any step runs",
            "move it to the step that uses it",
        ),
    ],
)
def test_a_typo_in_a_reference_to_a_step_is_an_error(parts: dict[str, str], message: str, hint: str) -> None:
    """Wherever it stands: in params, conditions, targets, loops, subworkflows and calls; with the nearest output."""
    assert _told(**parts) == [("unknown_output", message, hint)]


@pytest.mark.parametrize(
    ("parts", "message", "hint"),
    [
        (
            {"capture": ", transition: ['IF recrds > 3 THEN other']"},
            "the condition of other refers to recrds, which is not defined",
            "did you mean records?",
        ),
        (
            {"job": SHELL.format("echo ${cc.relation}", "")},
            "shell.command refers to cc.relation, which is not defined (line 1, column 6)",
            "did you mean c.relation?",
        ),
        (
            {"job": SHELL.format("echo ${dya}", "")},
            "shell.command refers to dya, which is not defined (line 1, column 6)",
            "did you mean day?",
        ),
    ],
)
def test_what_the_start_might_give_is_warned_of(parts: dict[str, str], message: str, hint: str) -> None:
    """With the nearest name that is known at the place."""
    assert _told(**parts) == [("param_not_given", message, hint)]


@pytest.mark.parametrize(
    "parts",
    [
        {"capture": ", transition: ['IF changed && c__records > 1 && day > 2 THEN other']"},
        {"capture": """, transition: ["IF params.getFromStep('c', 'MAESTRO_STEP_STATUS') != '' THEN other"]"""},
        {"job": SHELL.format("echo ${c.ev.relation} ${c.relation} ${other.step_id}", "")},
        {"job": "- job: {id: s, type: Spark, spark: {script: SELECT 1}, targets: ['${c.source_table}', db.t]}"},
        {"job": OPEN},
    ],
)
def test_references_that_hold_are_not_told_of(parts: dict[str, str]) -> None:
    """Own outputs and those of other steps, facts of every step, and what an open step may give."""
    assert _told(**parts) == []
