"""The models: what they take, what they refuse, and what they write."""

from typing import Any

import pytest
from pydantic import ValidationError
from tests.unit.definition.placing import definition, step

from calve.definition.model import Definition, ParamMode, Rule, TypedStep, Workflow


def _read(document: dict[str, Any]) -> Definition:
    return Definition.model_validate(document)


def _refused(document: dict[str, Any]) -> set[str]:
    with pytest.raises(ValidationError) as error:
        _read(document)
    # pydantic calls a list too short whose items are all wrong
    return {line["type"] for line in error.value.errors()} - {"too_short"}


FULL: dict[str, Any] = {
    "properties": {
        "owner": {"name": "dana", "team": "data"},
        "run_strategy": {"rule": "PARALLEL", "workflow_concurrency": 5},
        "step_concurrency": 7,
        "alerting": {
            "emails": ["a@example.com"],
            "slack": {"channels": ["#data"]},
            "type_configs": {"STEP_FAILURE": {"granularity": "STEP"}},
            "tct": {"completed_by_hour": 5, "tz": "UTC"},
        },
        "tags": ["one", {"name": "two", "namespace": "PLATFORM", "colour": "blue"}],
    },
    "workflow": {
        "id": "w",
        "timeout": "2 hours",
        "time_triggers": [
            {"type": "CRON", "cron": "0 5 * * *", "timezone": "UTC"},
            {"type": "PREDEFINED", "expression": "@daily"},
            {"type": "INTERVAL", "interval": "15m"},
        ],
        "signal_triggers": [
            {
                "definitions": {
                    "a": {"match_params": {"x": {"value": 1, "operator": ">="}}, "join_keys": ["k"]},
                    "b": {"join_keys": ["l"]},
                },
                "condition": "true",
            }
        ],
        "incremental_triggers": [{"source_tables": ["db.t"], "min_files": 2, "debounce": 60}],
        "criticality": "HIGH",
        "params": {
            "m": {"type": "MAP", "value": {"x": {"type": "LONG", "value": 1}}, "mode": "CONSTANT"},
            "e": {"type": "STRING", "value": "", "tags": ["t"]},
            "empty": {"type": "LONG_ARRAY", "value": []},
            "none": {"type": "STRING_MAP", "value": {}},
        },
        "steps": [
            {
                "step": {
                    "id": "a",
                    "type": "Spark",
                    "targets": ["db.t"],
                    "retry_policy": {"error_retry_limit": 3, "backoff": {"type": "FIXED_BACKOFF"}},
                    "signal_dependencies": [
                        {
                            "name": "s",
                            "match_params": {"p": {"param": {"type": "LONG", "expression": "1"}, "operator": ">"}},
                        }
                    ],
                    "signal_outputs": [{"name": "o", "params": {"p": {"type": "STRING", "value": "x"}}}],
                    "transition": {"successors": {"b": "true"}},
                }
            },
            {"subworkflow": {"id": "b", "sync": False}},
            {
                "foreach": {
                    "id": "c",
                    "concurrency": 3,
                    "steps": [{"while": {"id": "d", "condition": "true", "steps": [step("e")]}}],
                }
            },
            {"template": {"id": "f", "sub_type": "incremental"}},
        ],
    },
    "is_active": False,
    "git_info": {"sha": "abc"},
    "extra_info": {"ticket": 1},
}


def test_a_definition_written_is_read_again_as_it_was() -> None:
    """All shapes and fields at once."""
    once = _read(FULL)
    assert _read(once.as_json()) == once


def test_what_is_at_its_default_is_not_written() -> None:
    """So a definition stays as small as its author made it."""
    tidy = {"step": {"id": "a", "type": "NoOp"}}
    assert _read(definition(step("a"))).as_json() == {"workflow": {"id": "w", "steps": [tidy]}}


def test_a_null_is_as_good_as_nothing() -> None:
    """As in Maestro."""
    assert _read(definition(step("a", tags=None, timeout=None), params=None)) == _read(definition(step("a")))


def test_every_step_is_found_however_deep() -> None:
    """Those inside loops come after the loop."""
    assert [found.id for found in _read(FULL).workflow.all_steps()] == ["a", "b", "c", "d", "e", "f"]


@pytest.mark.parametrize(
    ("given", "rule", "concurrency"),
    [
        ("sequential", Rule.SEQUENTIAL, 1),
        ("Parallel", Rule.PARALLEL, 20),
        (5, Rule.PARALLEL, 5),
        ({"rule": "parallel", "workflow_concurrency": 3}, Rule.PARALLEL, 3),
        ({"rule": "LAST_ONLY", "workflow_concurrency": None}, Rule.LAST_ONLY, 1),
    ],
)
def test_a_run_strategy_may_be_a_word_or_a_number(given: Any, rule: Rule, concurrency: int) -> None:
    """Any case will do."""
    strategy = _read({**definition(step("a")), "properties": {"run_strategy": given}}).properties.run_strategy
    assert strategy is not None
    assert (strategy.rule, strategy.concurrency) == (rule, concurrency)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"rule": "FIRST_ONLY", "workflow_concurrency": 2}, "not_parallel"),
        (0, "greater_than_equal"),
        (1001, "less_than_equal"),
        (True, "model_type"),
        ([], "model_type"),
        ({"rule": 3}, "enum"),
    ],
)
def test_a_run_strategy_that_makes_no_sense_is_refused(given: Any, code: str) -> None:
    """Only PARALLEL runs several at once."""
    assert _refused({**definition(step("a")), "properties": {"run_strategy": given}}) == {code}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", "name_empty"),
        ("x" * 129, "name_too_long"),
        ("a b", "name_malformed"),
        ("-a", "name_malformed"),
        ("maestro_x", "name_reserved"),
        ("Maestro_x", "name_reserved"),
        ("x_maestro", "name_reserved"),
    ],
)
def test_a_workflow_id_must_match_its_pattern(name: str, code: str) -> None:
    """Maestro's rules."""
    assert _refused({"workflow": {"id": name, "steps": [step("a")]}}) == {code}


@pytest.mark.parametrize(
    ("name", "code"), [("1a", "name_malformed"), ("a__b", "name_malformed"), ("maestro_a", "name_reserved")]
)
def test_a_step_id_has_a_form_of_its_own(name: str, code: str) -> None:
    """No digit first, and no separator."""
    assert _refused(definition(step(name))) == {code}


def test_a_step_id_may_end_in_maestro_and_a_workflow_id_may_start_with_a_digit() -> None:
    """The other way round neither may."""
    assert _read({"workflow": {"id": "1w", "steps": [step("x_maestro")]}}).workflow.id == "1w"


@pytest.mark.parametrize(
    ("workflow", "code"),
    [
        ({"tags": ["a", "a"]}, "tag_twice"),
        ({"tags": ["a*"]}, "name_malformed"),
        ({"tags": [3]}, "model_type"),
        ({"tags": [{"name": "x_maestro"}]}, "name_reserved"),
        ({"params": {"p": {"type": "LONG", "value": 1, "expression": "1"}}}, "param_twice"),
        ({"params": {"p": {"type": "LONG", "value": 2**63}}}, "less_than"),
        ({"params": {"p": {"type": "LONG", "value": True}}}, "int_type"),
        ({"params": {"p": {"type": "DOUBLE", "value": float("nan")}}}, "finite_number"),
        ({"signal_triggers": [{"definitions": {"a": {"join_keys": ["x"]}, "b": {}}}]}, "join_keys_differ"),
        (
            {"signal_triggers": [{"definitions": {"a": {"join_keys": ["x"], "match_params": {"x": {"value": 1}}}}}]},
            "join_key_matched",
        ),
        ({"signal_triggers": [{"definitions": {str(number): {} for number in range(9)}}]}, "too_long"),
    ],
)
def test_what_maestro_refuses_is_refused(workflow: dict[str, Any], code: str) -> None:
    """Each rule of its own."""
    assert _refused(definition(step("a"), **workflow)) == {code}


def test_a_signal_dependency_has_one_range_at_most() -> None:
    """Two could not be told apart."""
    ranged = {"param": {"type": "LONG", "value": 1}, "operator": ">"}
    assert _refused(
        definition(step("a", signal_dependencies=[{"name": "s", "match_params": {"x": ranged, "y": ranged}}]))
    ) == {"ranges_many"}


def test_a_time_to_be_complete_is_given_once() -> None:
    """By hour, by duration or by timestamp."""
    alerting = {"tct": {"completed_by_hour": 5, "duration_minutes": 5}}
    assert _refused({**definition(step("a")), "properties": {"alerting": alerting}}) == {"tct_times"}


def test_an_owner_is_a_name_or_more() -> None:
    """A bare name is written bare."""
    short = _read({**definition(step("a")), "properties": {"owner": "dana"}})
    assert short.as_json()["properties"] == {"owner": "dana"}
    assert _read(FULL).as_json()["properties"]["owner"] == {"name": "dana", "team": "data"}
    assert _refused({**definition(step("a")), "properties": {"owner": 3}}) == {"model_type"}


def test_modes_grow_stricter_in_their_order() -> None:
    """From anybody to nobody."""
    assert [mode.strictness for mode in ParamMode] == [0, 1, 2, 3, 4]


def test_a_param_is_a_literal_or_an_expression() -> None:
    """And says which."""
    params = _read(
        definition(step("a"), params={"l": {"type": "LONG", "value": 1}, "e": {"type": "LONG", "expression": "1"}})
    )
    assert [param.is_literal for param in params.workflow.params.values()] == [True, False]


def test_a_workflow_can_be_made_of_models() -> None:
    """As programs make it."""
    made = Workflow(id="w", steps=(TypedStep(id="a", type="NoOp"),))
    assert made == _read({"workflow": {"id": "w", "steps": [{"step": {"id": "a", "type": "NoOp"}}]}}).workflow
