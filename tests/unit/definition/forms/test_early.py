"""The early form: flat steps."""

from tests.unit.definition.forms.writing import edges, written


def test_steps_without_edges_run_side_by_side() -> None:
    """As everywhere else, unless there is a dag."""
    assert edges(written("{id: w, steps: [{id: a, type: NoOp}, {id: b, type: NoOp}]}").steps) == {}
    ordered = written("{id: w, steps: [{id: a, type: NoOp}, {id: b, type: NoOp}], dag: sequential}")
    assert edges(ordered.steps) == {("a", "b"): "true"}


def test_a_name_stands_for_an_id() -> None:
    """Of the workflow and of its steps."""
    found = written("Workflow: {name: w, steps: [{name: a, type: NoOp}, {name: b, type: NoOp, dependsOn: a}]}")
    assert found.workflow["id"] == "w"
    assert edges(found.steps) == {("a", "b"): "true"}


def test_known_keys_may_have_humps() -> None:
    """Those of the workflow, of steps, and of their config; a param keeps the name it has."""
    found = written("""
        Workflow:
          id: w
          runStrategy: first_only
          instanceStepConcurrency: 5
          someParam: 1
          steps:
            - {id: a, type: ICDC, sourceTable: s, retryPolicy: {error_retry_limit: 1}, myParam: 2}
        """)
    assert found.plain["properties"] == {"run_strategy": {"rule": "FIRST_ONLY"}}
    assert found.workflow["instance_step_concurrency"] == 5
    assert found.workflow["params"] == {"someParam": {"type": "LONG", "value": 1}}
    assert found.steps[0]["step"] == {
        "id": "a",
        "type": "ICDC",
        "retry_policy": {"error_retry_limit": 1},
        "params": {
            "myParam": {"type": "LONG", "value": 2},
            "icdc": {"type": "MAP", "value": {"source_table": {"type": "STRING", "value": "s"}}},
        },
    }


def test_a_type_may_be_a_kind_of_step() -> None:
    """Loops hold flat steps too."""
    found = written("""
        id: w
        steps:
          - {id: a, type: subworkflow, workflowId: x}
          - id: b
            type: Foreach
            loopParams: {i: [1]}
            steps: [{id: c, type: NoOp}, {id: d, type: NoOp, dependsOn: c}]
          - {id: e, type: template, subType: t}
        """)
    assert found.steps == [
        {"subworkflow": {"id": "a", "params": {"subworkflow_id": {"type": "STRING", "value": "x"}}}},
        {
            "foreach": {
                "id": "b",
                "params": {"loop_params": {"type": "MAP", "value": {"i": {"type": "LONG_ARRAY", "value": [1]}}}},
                "steps": [
                    {"step": {"id": "c", "type": "NoOp", "transition": {"successors": {"d": "true"}}}},
                    {"step": {"id": "d", "type": "NoOp"}},
                ],
            }
        },
        {"template": {"id": "e", "sub_type": "t"}},
    ]


def test_a_step_is_a_map() -> None:
    """Anything else is reported and left out."""
    found = written("{id: w, steps: [{id: a, type: NoOp}, b, {id: c, type: 5}]}")
    assert found.said == [("step_malformed", "a step is a map")]
    assert found.node is not None
    assert len(found.node.plain()["workflow"]["steps"]) == 2


def test_a_misspelt_key_is_an_error_here_too() -> None:
    """Also one of the config, which may stand on the step."""
    found = written("{id: w, steps: [{id: a, type: ICDC, sourceTabel: s, dependOn: b}]}")
    assert found.said == [
        ("misspelt_key", "sourceTabel looks like sourceTable"),
        ("misspelt_key", "dependOn looks like dependsOn"),
    ]
