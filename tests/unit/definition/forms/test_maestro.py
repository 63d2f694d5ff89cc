"""Maestro's JSON passes almost unchanged."""

import json
from typing import Any

import pytest
from tests.unit.definition.forms.writing import Written, written


def request(*steps: Any, **more: Any) -> Written:
    """Return a request with these steps, and more in the workflow."""
    return written(json.dumps({"properties": {"owner": "me"}, "workflow": {"id": "w", "steps": steps, **more}}))


def test_a_request_keeps_what_it_says() -> None:
    """Transitions with predecessors, params in full, loops, triggers, signals, git."""
    said = {
        "properties": {
            "owner": {"name": "me", "team": "x"},
            "run_strategy": {"rule": "PARALLEL"},
            "step_concurrency": 5,
        },
        "workflow": {
            "id": "w",
            "tags": ["t", {"name": "u", "namespace": "PLATFORM"}],
            "criticality": "HIGH",
            "params": {"m": {"type": "MAP", "value": {"x": {"type": "LONG", "value": 1, "mode": "CONSTANT"}}}},
            "time_triggers": [{"type": "CRON", "cron": "0 5 * * *", "timezone": "US/Pacific"}],
            "signal_triggers": [
                {"definitions": {"s": {"join_keys": ["k"]}}, "params": {"p": {"type": "STRING", "value": "x"}}}
            ],
            "steps": [
                {
                    "foreach": {
                        "id": "loop",
                        "params": {
                            "loop_params": {
                                "type": "MAP",
                                "value": {"i": {"type": "LONG_ARRAY", "expression": "Util.intsBetween(0, 3, 1);"}},
                            }
                        },
                        "steps": [
                            {
                                "step": {
                                    "id": "a",
                                    "type": "NoOp",
                                    "failure_mode": "FAIL_IMMEDIATELY",
                                    "transition": {"predecessors": [], "successors": {"b": "true"}},
                                }
                            },
                            {"step": {"id": "b", "type": "NoOp", "transition": {"predecessors": ["a"]}}},
                        ],
                    }
                },
                {
                    "step": {
                        "id": "c",
                        "type": "NoOp",
                        "signal_dependencies": [
                            {
                                "name": "s",
                                "match_params": {"p": {"param": {"type": "LONG", "value": 1}, "operator": ">"}},
                            }
                        ],
                        "signal_outputs": [{"name": "o", "params": {"p": {"type": "LONG", "value": 1}}}],
                    }
                },
            ],
        },
        "is_active": False,
        "git_info": {"branch": "main"},
    }
    assert written(json.dumps(said)).plain == said


def test_words_may_be_in_any_case() -> None:
    """Where Maestro takes them so; a run strategy may be a word or a number."""
    found = written(
        json.dumps(
            {
                "properties": {
                    "run_strategy": "first_only",
                    "alerting": {
                        "pagerduty_config": {"severity": "info"},
                        "type_configs": {"LONG_RUNNING": {"granularity": "step"}},
                    },
                },
                "workflow": {
                    "id": "w",
                    "criticality": "low",
                    "params": {"x": {"type": "long", "value": 1, "mode": "immutable", "internal_mode": "optional"}},
                    "time_triggers": [{"type": "predefined", "expression": "DAILY"}],
                    "steps": [
                        {
                            "step": {
                                "id": "a",
                                "type": "noop",
                                "failure_mode": "ignore_failure",
                                "retry_policy": {"backoff": {"type": "fixed_backoff"}},
                                "tags": [{"name": "t", "namespace": "system"}],
                            }
                        }
                    ],
                },
            }
        )
    ).plain
    assert found == {
        "properties": {
            "run_strategy": {"rule": "FIRST_ONLY"},
            "alerting": {
                "pagerduty_config": {"severity": "INFO"},
                "type_configs": {"LONG_RUNNING": {"granularity": "STEP"}},
            },
        },
        "workflow": {
            "id": "w",
            "criticality": "LOW",
            "params": {"x": {"type": "LONG", "value": 1, "mode": "IMMUTABLE", "internal_mode": "OPTIONAL"}},
            "time_triggers": [{"type": "PREDEFINED", "expression": "@daily"}],
            "steps": [
                {
                    "step": {
                        "id": "a",
                        "type": "NoOp",
                        "failure_mode": "IGNORE_FAILURE",
                        "retry_policy": {"backoff": {"type": "FIXED_BACKOFF"}},
                        "tags": [{"name": "t", "namespace": "SYSTEM"}],
                    }
                }
            ],
        },
    }


@pytest.mark.parametrize(
    ("param", "hint"),
    [
        ({"value": 5}, 'write "type": "LONG" next to its value'),
        ({"value": ["a"]}, 'write "type": "STRING_ARRAY" next to its value'),
        ({"expression": "1 + 1"}, 'write "type": "STRING" next to its value'),
        ({"value": [None]}, 'write "type": "STRING" next to its value'),
        (5.5, 'write "type": "DOUBLE" next to its value'),
        ([{}], 'write "type": "STRING" next to its value'),
    ],
)
def test_a_param_without_a_type_is_told_the_one_it_would_have(param: Any, hint: str) -> None:
    """Maestro refuses it without a word."""
    found = request({"step": {"id": "a", "type": "NoOp"}}, params={"x": param})
    assert found.said == [("param_without_type", "the param x has no type")]
    assert next(iter(found.problems)).hint == hint


def test_a_param_inside_a_map_says_its_type_too() -> None:
    """And a param that is null has no value."""
    found = request(
        {"step": {"id": "a", "type": "NoOp"}}, params={"m": {"type": "MAP", "value": {"x": {"value": 1}}}, "n": None}
    )
    assert found.said == [
        ("param_without_type", "the param x has no type"),
        ("param_without_value", "the param n has no value"),
    ]


def test_null_is_as_good_as_absent() -> None:
    """In the request, the workflow, its steps and their transitions."""
    text = {
        "properties": {"owner": "me", "alerting": None},
        "git_info": None,
        "workflow": {
            "id": "w",
            "tags": None,
            "steps": [{"step": {"id": "a", "type": "NoOp", "params": None, "transition": {"predecessors": None}}}],
        },
    }
    assert written(json.dumps(text)).plain == {
        "properties": {"owner": "me"},
        "workflow": {"id": "w", "steps": [{"step": {"id": "a", "type": "NoOp", "transition": {}}}]},
    }


@pytest.mark.parametrize(
    ("step", "message", "hint"),
    [
        ({"job": {"id": "a"}}, "job is not a kind of step", "did you mean step?"),
        ({"forech": {"id": "a"}}, "forech is not a kind of step", "did you mean foreach?"),
        (
            {"id": "a", "type": "NoOp"},
            "a step is a map with one key, its kind",
            'write {"step": {"id": …, "type": …}}, or subworkflow, foreach, while or template instead of step',
        ),
    ],
)
def test_a_step_without_its_wrapper_is_told_how_to_have_one(step: Any, message: str, hint: str) -> None:
    """Beside others that have one."""
    found = request({"step": {"id": "b", "type": "NoOp"}}, step)
    assert found.said == [("step_malformed", message)]
    assert next(iter(found.problems)).hint == hint


def test_wrong_shapes_are_left_to_the_model() -> None:
    """It says what each field may be."""
    assert request({"step": 5}).steps == [{"step": 5}]
    assert request({"step": {"id": "a", "type": 5, "params": 5}}).steps == [
        {"step": {"id": "a", "type": 5, "params": 5}}
    ]
    assert written('{"workflow": {"id": "w", "steps": 5}}').steps == 5
    assert written('{"workflow": {"id": "w", "steps": []}}').steps == []
    assert written('{"workflow": {"id": "w", "steps": null}}').workflow == {"id": "w"}
    assert written('{"workflow": {"id": "w", "steps": [{"foreach": {"id": "a", "steps": 5}}]}}').steps == [
        {"foreach": {"id": "a", "steps": 5}}
    ]


def test_a_bare_workflow_may_hold_its_properties() -> None:
    """There is no other place for them."""
    found = written('{"id": "w", "owner": "me", "is_active": false, "steps": [{"step": {"id": "a", "type": "NoOp"}}]}')
    assert found.plain == {
        "properties": {"owner": "me"},
        "is_active": False,
        "workflow": {"id": "w", "steps": [{"step": {"id": "a", "type": "NoOp"}}]},
    }


def test_what_is_beside_the_workflow_is_kept() -> None:
    """As Maestro does, unless it is a slip of a key that is known."""
    body = {"workflow": {"id": "w", "steps": [{"step": {"id": "a", "type": "NoOp"}}]}}
    assert written(json.dumps({**body, "team": "x"})).plain["extra_info"] == {"team": "x"}
    assert written(json.dumps({**body, "extra_info": {"a": 1}})).plain["extra_info"] == {"a": 1}
    both = written(json.dumps({**body, "team": "x", "extra_info": {"a": 1}}))
    assert both.plain["extra_info"] == {"team": "x", "a": 1}
    assert written(json.dumps({**body, "team": "x", "extra_info": 5})).plain["extra_info"] == 5
    slip = written(json.dumps({**body, "propertes": {}}))
    assert slip.said == [("unknown_key", "propertes is not a known key next to a workflow")]
    assert next(iter(slip.problems)).hint == "did you mean properties?"
