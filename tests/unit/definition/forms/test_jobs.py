"""Jobs of each kind become steps."""

from typing import Any

import pytest
from tests.unit.definition.forms.writing import Written, written


def job(text: str) -> Written:
    """Return a workflow with one job."""
    return written(f"Workflow:\n  id: w\n  jobs:\n  - {text}\n")


def step(text: str) -> Any:
    """Return the step that one job becomes."""
    return job(text).steps[0]


def test_a_job_has_all_that_a_step_can_have() -> None:
    """Also what Maestro's YAML has no words for."""
    assert step("""job:
        id: a
        name: A
        description: does a
        type: noop
        failure_mode: ignore_failure
        tags: [x, {name: y, namespace: platform}]
        timeout: 30min
        retry_policy: {error_retry_limit: 2, backoff: {type: fixed_backoff}}
        targets: [db.t]
        signal_dependencies: ready
        signal_outputs: [done]
        limit: 5
        params: {'!more<long>': 1 + 1}
        """)["step"] == {
        "id": "a",
        "name": "A",
        "description": "does a",
        "type": "NoOp",
        "failure_mode": "IGNORE_FAILURE",
        "tags": ["x", {"name": "y", "namespace": "PLATFORM"}],
        "timeout": "30min",
        "retry_policy": {"error_retry_limit": 2, "backoff": {"type": "FIXED_BACKOFF"}},
        "targets": ["db.t"],
        "signal_dependencies": [{"name": "ready"}],
        "signal_outputs": [{"name": "done"}],
        "params": {"limit": {"type": "LONG", "value": 5}, "more": {"type": "LONG", "expression": "1 + 1"}},
    }


def test_a_job_template_stands_before_the_step_type_behind_it() -> None:
    """Its name and version are kept; the version chooses the type."""
    assert step("job: {id: a, type: etl, spark: {script: x}}")["step"] == {
        "id": "a",
        "type": "Spark",
        "sub_type": "etl",
        "params": {"spark": {"type": "MAP", "value": {"script": {"type": "STRING", "value": "x"}}}},
    }
    assert step("job: {id: a, type: etl, type_version: 2}")["step"] == {
        "id": "a",
        "type": "NoOp",
        "sub_type": "etl",
        "sub_type_version": "2",
    }


def test_a_type_that_is_not_known_is_left_to_those_who_know_types() -> None:
    """So are a missing one, and one that is no text."""
    assert step("job: {id: a, type: Sprak}")["step"] == {"id": "a", "type": "Sprak"}
    assert step("job: {id: a, type: 5}")["step"] == {"id": "a", "type": 5}
    assert step("job: {id: a}")["step"] == {"id": "a"}


def test_a_config_map_is_a_map_of_params() -> None:
    """Even if all its values are texts; maps inside it are what they look like."""
    assert step("job: {id: a, type: Spark, spark: {conf: {a: b}, '!file': x}}")["step"]["params"] == {
        "spark": {
            "type": "MAP",
            "value": {
                "conf": {"type": "STRING_MAP", "value": {"a": "b"}},
                "file": {"type": "STRING", "expression": "x"},
            },
        }
    }
    assert step("job: {id: a, type: Spark, spark<map>: {script: b}}")["step"]["params"]["spark"]["type"] == "MAP"
    assert step("job: {id: a, type: Spark, params: {spark: {script: b}}}")["step"]["params"]["spark"]["type"] == "MAP"
    assert step("job: {id: a, type: Spark, spark: '${c}'}")["step"]["params"]["spark"]["type"] == "STRING"


def test_only_change_capture_may_leave_out_its_config_map() -> None:
    """It was written so before there were config maps; elsewhere such a key is a param of the step."""
    icdc = step("job: {id: a, type: icdc, sourceTable: s, target_table: t, mode: net, icdc: {limit: 5}}")["step"]
    assert list(icdc["params"]) == ["icdc"]
    assert {name: param["value"] for name, param in icdc["params"]["icdc"]["value"].items()} == {
        "limit": 5,
        "source_table": "s",
        "target_table": "t",
        "mode": "net",
    }
    spark = step("job: {id: a, type: Spark, script: s}")["step"]
    assert spark["params"] == {"script": {"type": "STRING", "value": "s"}}


def test_a_field_of_the_config_is_said_once() -> None:
    """On the job or in the map."""
    found = job("job: {id: a, type: ICDC, sourceTable: s, icdc: {source_table: t}}")
    assert found.said == [("said_twice", "source_table is already given in icdc")]


def test_a_subworkflow_names_the_workflow_it_runs() -> None:
    """By either key; else it runs the workflow of its own id, unless a param says which."""
    assert step("subworkflow: {id: a, subworkflow_id: x, version: 3, sync: false, explicit_params: true}") == {
        "subworkflow": {
            "id": "a",
            "sync": False,
            "explicit_params": True,
            "params": {
                "subworkflow_id": {"type": "STRING", "value": "x"},
                "subworkflow_version": {"type": "STRING", "value": "3"},
            },
        }
    }
    assert step("subworkflow: {id: a}")["subworkflow"]["params"] == {"subworkflow_id": {"type": "STRING", "value": "a"}}
    chosen = step("subworkflow: {id: a, '!subworkflow_id': which}")["subworkflow"]["params"]
    assert chosen == {"subworkflow_id": {"type": "STRING", "expression": "which"}}
    assert "params" not in step("subworkflow: {name: a}")["subworkflow"]


def test_a_version_by_the_wrong_name_is_a_param_with_a_warning() -> None:
    """Maestro's Python client writes it so, and Maestro takes it for a param of the child."""
    found = job("subworkflow: {id: a, workflow_version: '3'}")
    assert found.codes == ["version_is_param"]
    assert job("subworkflow: {id: a, workflow_version: '3', version: 3}").codes == []


def test_a_param_is_given_once() -> None:
    """Whether by a key of its own, in params, or by what the kind of job makes of its keys."""
    assert job("job: {id: a, type: NoOp, x: 1, params: {x: 2}}").codes == ["said_twice"]
    assert job("subworkflow: {id: a, workflow_id: x, '!subworkflow_id': y}").codes == ["said_twice"]
    assert job("foreach: {id: a, '!loop_params<pmap>': x, params: {i: [1]}}").codes == ["said_twice"]


def test_a_foreach_runs_over_lists_and_ranges() -> None:
    """A range is an expression, whose bounds may be expressions too."""
    loop = step("""foreach:
        id: a
        job_concurrency: 5
        strict_ordering: true
        params: {date: [1, 2]}
        ranges: {hour: {from: 0, to: 24}, x: {from: 5, to: n, increment: -1}, y: [0, 3], z: {to: 2}}
        other: 1
        jobs: [job: {id: b, type: NoOp}]
        """)["foreach"]
    ranges = {"hour": "0, 24, 1", "x": "5, n, -1", "y": "0, 3, 1", "z": "0, 2, 1"}
    over = {name: {"type": "LONG_ARRAY", "expression": f"Util.intsBetween({text});"} for name, text in ranges.items()}
    assert loop == {
        "id": "a",
        "concurrency": 5,
        "strict_ordering": True,
        "params": {
            "other": {"type": "LONG", "value": 1},
            "loop_params": {"type": "MAP", "value": {"date": {"type": "LONG_ARRAY", "value": [1, 2]}, **over}},
        },
        "steps": [{"step": {"id": "b", "type": "NoOp"}}],
    }


@pytest.mark.parametrize(
    ("loop", "code"),
    [
        ("ranges: {x: {from: 1}}", "range_malformed"),
        ("ranges: {x: 5}", "range_malformed"),
        ("ranges: {x: [1]}", "range_malformed"),
        ("ranges: {x: {to: 1.5}}", "range_malformed"),
        ("ranges: {x: {to: true}}", "range_malformed"),
        ("ranges: {x: {to: [1]}}", "range_malformed"),
        ("ranges: {x: {to: 1, by: 1}}", "unknown_key"),
        ("ranges: [x]", "map_expected"),
        ("loop_params: [x]", "map_expected"),
        ("loop_params: {x: [1]}, ranges: {x: {to: 1}}", "said_twice"),
    ],
)
def test_a_loop_says_what_it_runs_over(loop: str, code: str) -> None:
    """Each mistake at its place."""
    assert job(f"foreach: {{id: a, {loop}}}").codes == [code]


def test_a_while_has_a_condition() -> None:
    """And loop params that its steps change."""
    assert step(
        "while: {id: a, condition: i < 5, params: {i: 0}, jobs: [job: {id: b, type: NoOp, '!i<long>': i + 1}]}"
    ) == {
        "while": {
            "id": "a",
            "condition": "i < 5",
            "params": {"loop_params": {"type": "MAP", "value": {"i": {"type": "LONG", "value": 0}}}},
            "steps": [{"step": {"id": "b", "type": "NoOp", "params": {"i": {"type": "LONG", "expression": "i + 1"}}}}],
        }
    }


def test_a_template_names_the_steps_it_stands_for() -> None:
    """By type, or by the names of Maestro's JSON."""
    expected = {"template": {"id": "a", "sub_type": "x", "sub_type_version": "1"}}
    assert step("template: {id: a, type: x, type_version: 1}") == expected
    assert step("template: {id: a, sub_type: x, sub_type_version: '1'}") == expected
    assert step("template: {id: a, n: 1}") == {"template": {"id": "a", "params": {"n": {"type": "LONG", "value": 1}}}}


@pytest.mark.parametrize("text", ["subworkflow: {id: a, retry_policy: {}}", "job: {id: a, strict_ordering: true}"])
def test_a_key_of_another_kind_is_no_param(text: str) -> None:
    """Where Maestro's YAML has no such key, it is a mistake."""
    assert job(text).codes == ["misplaced_key"]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("step: {id: a}", "step is not a kind of job", "did you mean job?"),
        ("forech: {id: a}", "forech is not a kind of job", "did you mean foreach?"),
        ("{id: a, type: NoOp}", "a job is a map with one key, its kind", None),
        ("a", "a job is a map with one key, its kind", None),
    ],
)
def test_an_item_that_is_not_a_job_gets_a_hint(text: str, message: str, hint: str | None) -> None:
    """It is left out, and the others are read."""
    found = job(text)
    assert found.said == [("job_malformed", message)]
    assert next(iter(found.problems)).hint == (
        hint or "write - job: {id: …, type: …}, or subworkflow, foreach, while or template instead of job"
    )


def test_wrong_shapes_are_left_to_the_model() -> None:
    """It knows what each field may be, and the places are kept."""
    assert step("job: 5") == {"step": 5}
    assert step("job: {id: [5], type: NoOp}") == {"step": {"id": [5], "type": "NoOp"}}
    assert written("Workflow: {id: w, jobs: 5}").steps == 5
    assert written("Workflow: {id: w, jobs: }").workflow == {"id": "w"}
    assert job("job: {id: a, type: NoOp, params: 5}").said == [
        ("map_expected", "params must be a map of names to values")
    ]


def test_an_id_that_looks_like_a_number_is_a_text() -> None:
    """As in Maestro, whose ids are texts however they are written."""
    found = written("Workflow: {id: 20260101, jobs: [job: {id: a1, name: 1.5, type: NoOp}, job: {id: true}]}")
    assert found.workflow["id"] == "20260101"
    assert found.steps[0]["step"]["name"] == "1.5"
    assert found.steps[1]["step"]["id"] is True


@pytest.mark.parametrize(
    ("through", "param"),
    [
        ("5", {"type": "LONG", "value": 5}),
        ("RUN_TS - 1", {"type": "LONG", "expression": "RUN_TS - 1"}),
        ("'${RUN_TS}'", {"type": "LONG", "expression": "RUN_TS"}),
    ],
)
def test_a_table_may_be_awaited_until_it_is_complete(through: str, param: object) -> None:
    """Through a time that is a number, an expression, or a reference."""
    text = f"job: {{id: a, type: NoOp, signal_dependencies: [{{table: db.t, valid_through: {through}}}]}}"
    match = {"through": {"operator": ">=", "param": param}}
    assert step(text)["step"]["signal_dependencies"] == [{"name": "vtts/db.t", "match_params": match}]


@pytest.mark.parametrize(
    "item", ["{table: db.t}", "{table: db.t, valid_through: 1, name: x}", "{table: 5, valid_through: 1}"]
)
def test_a_table_is_awaited_by_its_name_and_a_time(item: str) -> None:
    """Nothing else says anything of it."""
    found = written(f"Workflow: {{id: w, jobs: [{{job: {{id: a, type: NoOp, signal_dependencies: [{item}]}}}}]}}")
    assert found.said == [("signal_malformed", "a dependency on a table has only the keys table and valid_through")]


def test_a_signal_may_be_awaited_with_bare_values() -> None:
    """Or with params in full, as in Maestro's JSON, and with another operator."""
    found = step("""job:
        id: a
        type: NoOp
        signal_dependencies:
          - name: ready
            match_params:
              a: x
              b: {value: 5, operator: '>='}
              c: {param: {value: 5, type: long}, operator: <}
              d: {param: y}
              e: {type: LONG, expression: 1 + 1}
              f: {type: LONG, value: 1, operator: '='}
          - {name: other, match_params: wrong}
          - 5
        signal_outputs:
          - {name: done, params: {a: x, b: {type: LONG, value: 5}, '!c<long>': 1}, payload: {p: 1}}
        """)["step"]
    five, text = {"type": "LONG", "value": 5}, {"type": "STRING", "value": "x"}
    assert found["signal_dependencies"] == [
        {
            "name": "ready",
            "match_params": {
                "a": {"param": text},
                "b": {"param": five, "operator": ">="},
                "c": {"param": five, "operator": "<"},
                "d": {"param": {"type": "STRING", "value": "y"}},
                "e": {"param": {"type": "LONG", "expression": "1 + 1"}},
                "f": {"param": {"type": "LONG", "value": 1}, "operator": "="},
            },
        },
        {"name": "other", "match_params": "wrong"},
        5,
    ]
    assert found["signal_outputs"] == [
        {
            "name": "done",
            "params": {"a": text, "b": five, "c": {"type": "LONG", "expression": "1"}},
            "payload": {"p": 1},
        }
    ]


def test_a_list_of_signals_may_be_wrapped() -> None:
    """Maestro writes it with and without ``definitions``."""
    found = step("job: {id: a, type: NoOp, signal_dependencies: {definitions: [x]}, signal_outputs: 5}")["step"]
    assert found["signal_dependencies"] == [{"name": "x"}]
    assert found["signal_outputs"] == 5


def test_params_of_a_signal_are_given_once() -> None:
    """In full or in short."""
    found = job("job: {id: a, type: NoOp, signal_outputs: [{name: x, params: {a: 1, '!a': x}}]}")
    assert found.codes == ["said_twice"]
    assert job("job: {id: a, type: NoOp, signal_dependencies: [{name: x, match_params: {a: }}]}").codes == [
        "param_without_value"
    ]
