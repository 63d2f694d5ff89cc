"""What starts a workflow, in the talk's words and in Maestro's."""

from typing import Any

import pytest
from tests.unit.definition.forms.writing import Written, written

BODY = "Workflow: {id: w, jobs: [job: {id: a, type: NoOp}]}\n"


def triggered(trigger: str) -> Written:
    """Return a workflow with a trigger beside it."""
    return written(f"{BODY}Trigger: {trigger}\n")


def by_time(trigger: str) -> Any:
    """Return the time triggers that a trigger gives."""
    return triggered(trigger).workflow["time_triggers"]


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        ("{cron: '@daily'}", {"type": "PREDEFINED", "expression": "@daily"}),
        ("{Cron: '@Daily'}", {"type": "PREDEFINED", "expression": "@daily"}),
        ("{cron: hourly}", {"type": "PREDEFINED", "expression": "@hourly"}),
        ("'@weekly'", {"type": "PREDEFINED", "expression": "@weekly"}),
        ("{cron: 0 5 * * *}", {"type": "CRON", "cron": "0 5 * * *"}),
        ("0 5 * * *", {"type": "CRON", "cron": "0 5 * * *"}),
        ("{cron: 5}", {"type": "CRON", "cron": 5}),
        ("{interval: 15m}", {"type": "INTERVAL", "interval": "15m"}),
        (
            "{cron: '@daily', timezone: UTC, fuzzy_max_delay: 30s}",
            {"type": "PREDEFINED", "expression": "@daily", "timezone": "UTC", "fuzzy_max_delay": "30s"},
        ),
        (
            "{interval: 15m, catch_up: latest}",
            {"type": "INTERVAL", "interval": "15m", "catch_up": "LATEST"},
        ),
        ("{cron: hourly, catch_up: None}", {"type": "PREDEFINED", "expression": "@hourly", "catch_up": "NONE"}),
        (
            "{type: cron, cron: 0 5 * * *, catch_up: all}",
            {"type": "CRON", "cron": "0 5 * * *", "catch_up": "ALL"},
        ),
        ("{type: cron, cron: 0 5 * * *}", {"type": "CRON", "cron": "0 5 * * *"}),
        ("{expression: Daily}", {"type": "PREDEFINED", "expression": "@daily"}),
    ],
)
def test_a_time(trigger: str, expected: dict[str, Any]) -> None:
    """A word, a cron expression or an interval, with what belongs to it."""
    assert by_time(trigger) == [expected]


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        ("{signal: ready}", {"definitions": {"ready": {}}}),
        ("{signals: [a, b]}", {"definitions": {"a": {}, "b": {}}}),
        ("{signals: [a, {b: {join_keys: [k]}}]}", {"definitions": {"a": {}, "b": {"join_keys": ["k"]}}}),
        (
            "{signal: {a: {match_params: {x: 5, y: {value: 1, operator: '>'}}}, b: }}",
            {"definitions": {"a": {"match_params": {"x": {"value": 5}, "y": {"value": 1, "operator": ">"}}}, "b": {}}},
        ),
        ("{signal: {a: 5}}", {"definitions": {"a": 5}}),
        ("{signal: {a: {match_params: 5}}}", {"definitions": {"a": {"match_params": 5}}}),
        (
            "{signal: {definitions: {a: }, condition: 1 > 0, params: {x: 1}}}",
            {"definitions": {"a": {}}, "condition": "1 > 0", "params": {"x": {"type": "LONG", "value": 1}}},
        ),
        ("{definitions: {a: }}", {"definitions": {"a": {}}}),
        (
            "{valid_through: db.t}",
            {
                "definitions": {"vtts/db.t": {}},
                "params": {
                    "VALID_THROUGH": {"type": "LONG", "expression": "params.getFromSignal('vtts/db.t', 'through')"}
                },
            },
        ),
        (
            "{valid_through: [a, b]}",
            {
                "definitions": {"vtts/a": {"join_keys": ["through"]}, "vtts/b": {"join_keys": ["through"]}},
                "params": {
                    "VALID_THROUGH": {"type": "LONG", "expression": "params.getFromSignal('vtts/a', 'through')"}
                },
            },
        ),
    ],
)
def test_signals(trigger: str, expected: dict[str, Any]) -> None:
    """A name, several that must all have come, or a trigger in full."""
    assert triggered(trigger).workflow["signal_triggers"] == [expected]


@pytest.mark.parametrize("trigger", ["{valid_through: []}", "{valid_through: [1]}", "{valid_through: {a: b}}"])
def test_a_trigger_by_complete_tables_names_them(trigger: str) -> None:
    """One, or several."""
    assert triggered(trigger).said == [("signal_malformed", "valid_through must be a table or a list of tables")]


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        ("{incremental: db.t}", {"source_tables": ["db.t"]}),
        ("{incremental: [a, b]}", {"source_tables": ["a", "b"]}),
        (
            "{incremental: {source_tables: a, data_operations: append, min_files: 5, max_delay: 1h}}",
            {"source_tables": ["a"], "data_operations": ["append"], "min_files": 5, "max_delay": "1h"},
        ),
        ("{source_tables: [a]}", {"source_tables": ["a"]}),
        ("{incremental: 5}", 5),
    ],
)
def test_a_change_of_source_tables(trigger: str, expected: Any) -> None:
    """A table, several, or a map that says how much change is needed."""
    assert triggered(trigger).workflow["incremental_triggers"] == [expected]


def test_several_triggers_each_start_the_workflow() -> None:
    """In a list, in one map, inside and beside the workflow, beside Maestro's own lists."""
    found = written("""
        TRIGGERS:
          - {cron: '@daily', signal: a}
          - {interval: 15m, incremental: t}
        Workflow:
          id: w
          trigger: {cron: 0 5 * * *}
          time_triggers:
            - {cron: 0 6 * * *, timezone: UTC}
            - {type: predefined, expression: '@hourly'}
            - {interval: 1h}
            - {when: never}
            - 5
          signal_triggers:
            - {definitions: {s: {join_keys: [k]}}, params: {x: {type: long, value: 1}, y: 2}}
            - {condition: 1 > 0}
            - 5
          incremental_triggers: [{source_tables: u}]
          jobs: [job: {id: a, type: NoOp}]
        """).workflow
    assert found["time_triggers"] == [
        {"type": "CRON", "cron": "0 6 * * *", "timezone": "UTC"},
        {"type": "PREDEFINED", "expression": "@hourly"},
        {"type": "INTERVAL", "interval": "1h"},
        {"when": "never"},
        5,
        {"type": "CRON", "cron": "0 5 * * *"},
        {"type": "PREDEFINED", "expression": "@daily"},
        {"type": "INTERVAL", "interval": "15m"},
    ]
    one, two = {"type": "LONG", "value": 1}, {"type": "LONG", "value": 2}
    assert found["signal_triggers"] == [
        {"definitions": {"s": {"join_keys": ["k"]}}, "params": {"x": one, "y": two}},
        {"condition": "1 > 0"},
        5,
        {"definitions": {"a": {}}},
    ]
    assert found["incremental_triggers"] == [{"source_tables": ["u"]}, {"source_tables": ["t"]}]


def test_a_list_of_the_wrong_shape_is_left_to_the_model() -> None:
    """Nothing is added to it."""
    text = "Trigger: {cron: '@daily'}\nWorkflow: {id: w, time_triggers: 5, jobs: [job: {id: a, type: NoOp}]}"
    assert written(text).workflow["time_triggers"] == 5


@pytest.mark.parametrize(
    ("trigger", "said"),
    [
        ("{}", ("trigger_malformed", "the trigger does not define what starts the workflow")),
        ("{timezone: UTC}", ("trigger_malformed", "the trigger does not define what starts the workflow")),
        ("[5]", ("trigger_malformed", "a trigger is a map")),
        ("{corn: '@daily'}", ("unknown_key", "corn is not a key of a trigger")),
        ("{signal: a, timezone: UTC}", ("misplaced_key", "timezone belongs next to cron or interval")),
        ("{signals: [5]}", ("signal_malformed", "this is not the name of a signal")),
        ("{cron: '@daily', CRON: '@daily'}", ("said_twice", "CRON means the same as cron, which is already given")),
    ],
)
def test_what_starts_nothing_is_reported(trigger: str, said: tuple[str, str]) -> None:
    """Rather than a workflow that never runs."""
    assert triggered(trigger).said == [said]
